// guest rows: exact
//! Instructions of the calling thread, through a session.

use crate::helper::{assert_instructions, counts_instructions, counts_of, of_loop, started};

const ITERATIONS: u64 = 1_000_000;

/// Check that a loop's instructions are counted, and twice alike.
#[test]
fn a_loop_is_counted() {
    if !counts_instructions("a_loop_is_counted") {
        return;
    }
    let mut session = started("instructions:u");
    let mut count =
        |iterations| counts_of(&mut session, iterations).exact("instructions:u").unwrap();
    // The first region finds its pages and caches cold.
    let _ = count(1);
    let around = count(1) - of_loop(1);
    for _ in 0..2 {
        assert_instructions(count(ITERATIONS), around + of_loop(ITERATIONS));
    }
}

/// Check that the events of a group count the same loop alike, beside a clock and page faults.
#[test]
fn groups_are_counted() {
    if !counts_instructions("groups_are_counted") {
        return;
    }
    let mut session = started("{instructions:u,cycles:u,instructions:u},task-clock,page-faults:u");
    let mut count = |iterations| -> Vec<u64> {
        let counts = counts_of(&mut session, iterations);
        let rows = counts.iter().map(|row| row.tally.count.exact());
        rows.map(|count| count.unwrap_or_else(|| panic!("{counts:?}"))).collect()
    };
    let _ = count(1);
    let short = count(1);
    let long = count(1 + ITERATIONS);
    assert_instructions(long[0] - short[0], of_loop(ITERATIONS));
    assert_instructions(long[2] - short[2], of_loop(ITERATIONS));
    assert!(long[1] > short[1] && long[3] > short[3], "{short:?} {long:?}");
    assert_eq!((short[4], long[4]), (0, 0), "a loop faults no page");
}

/// Check that a session counts on after a stop, and nothing while it is stopped.
#[test]
fn stopped_sessions_count_nothing() {
    if !counts_instructions("stopped_sessions_count_nothing") {
        return;
    }
    let mut session = started("instructions:u");
    let mut total = |iterations, stopped| {
        session.stop().unwrap();
        perfmon_vmtest::spin(stopped);
        session.start().unwrap();
        perfmon_vmtest::spin(iterations);
        session.stop().unwrap();
        session.read();
        let total = session.tally(0).count.exact().unwrap();
        session.start().unwrap();
        total
    };
    let totals = [(1, 1), (1, 1), (1, 1 + ITERATIONS), (1 + ITERATIONS, 1)]
        .map(|(iterations, stopped)| total(iterations, stopped));
    let grown: Vec<u64> = totals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_instructions(grown[1], grown[0]);
    assert_instructions(grown[2], grown[0] + of_loop(ITERATIONS));
}
