// guest rows: arm64-6.1
//! 64-bit virtual counters on counters of 32 bits.

use perfmon::{Inherit, Scope, Session};

use crate::helper::{Guest, counts_of, of_loop, started};

/// Their instructions are more than 32 bits hold.
const ITERATIONS: u64 = 2_200_000_000;

/// Check that counts go on where the counter wraps: of a session that reads the counter in user mode, and of one that
/// reads it by system call.
#[test]
fn counts_go_on() {
    let Some(guest) = Guest::exact("counts_go_on") else { return };
    assert_eq!(guest.counter_bits, 32);
    let mut by_call = Session::new("instructions:u").unwrap();
    let own = Scope::Processes { pids: vec![std::process::id()], inherit: Inherit::Tree };
    by_call.load(&own).unwrap();
    by_call.start().unwrap();
    let mut by_page = started("instructions:u");
    let mut count = |iterations| {
        let mut inner = None;
        let ((), outer) = by_call.region(|| inner = Some(counts_of(&mut by_page, iterations)));
        [inner.unwrap(), outer].map(|counts| counts.exact("instructions:u").unwrap())
    };
    let _ = count(1);
    let short = count(1);
    let long = count(1 + ITERATIONS);
    for (short, long) in short.iter().zip(long) {
        assert!(long > 1 << 32);
        assert_eq!(long - short, of_loop(ITERATIONS));
    }
    assert!(by_page.hardware_index(0).is_some(), "it read by system call");
}
