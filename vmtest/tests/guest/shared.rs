// guest rows: exact
//! More events than counters.

use perfmon::Count;

use crate::helper::{Guest, counts_of, number, of_loop, pfmon, program, repeated, started};

/// Some hundred turns of the kernel's rotation, which takes 4 ms here.
const ITERATIONS: u64 = 400_000_000;

/// Whether `value` is within a thousandth of `truth`.
fn is_near(value: u64, truth: u64) -> bool {
    value.abs_diff(truth) <= truth / 1000
}

/// Check that twelve events on six counters are estimates of half the time, each within a thousandth of the truth.
#[test]
fn estimates_are_near_the_truth() {
    let Some(guest) = Guest::exact("estimates_are_near_the_truth") else { return };
    let mut session = started(&repeated("instructions:u", 2 * guest.counters));
    let iterations = ITERATIONS / 2;
    let counts = counts_of(&mut session, iterations);
    assert_eq!(counts.iter().count(), 12);
    for row in counts.iter() {
        let Count::Estimated(estimate) = &row.tally.count else { panic!("{row:?}") };
        assert!((0.45..0.55).contains(&row.tally.coverage()), "{row:?}");
        assert!(is_near(estimate.value, of_loop(iterations)), "{row:?}");
        assert!(estimate.counted < estimate.value);
    }
}

/// Check that `pfmon stat` marks them, with their share, and that they are near what a pinned event counts exactly beside
/// them, once the loop is all that runs.
#[test]
fn estimates_are_marked() {
    let Some(guest) = Guest::exact("estimates_are_marked") else { return };
    let list = format!("instructions:uD,{}", repeated("instructions:u", 2 * guest.counters));
    let known = program("perfmon-known");
    let work = ["--", &known, "spin", &number(ITERATIONS)];
    let result = pfmon("stat", &[&["--delay", "50ms", "-e", &list], &work[..]].concat());
    let (pinned, shared) = result["events"].as_array().unwrap().split_first().unwrap();
    assert_eq!(pinned["state"], "exact");
    let truth = pinned["value"].as_u64().unwrap();
    assert!((of_loop(ITERATIONS) / 10 * 9..of_loop(ITERATIONS)).contains(&truth), "{result}");
    assert_eq!(shared.len(), 12);
    for row in shared {
        assert_eq!(row["state"], "estimated");
        // Five counters for twelve events.
        assert!((0.37..0.47).contains(&row["coverage"].as_f64().unwrap()), "{row}");
        assert!(is_near(row["value"].as_u64().unwrap(), truth), "{row} instead of {truth}");
        assert!(row["reason"].as_str().unwrap().contains("shared the PMU"), "{row}");
    }
}
