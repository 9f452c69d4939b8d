// guest rows: exact
//! Groups at the size of the PMU, and one event larger.

use perfmon::{Count, Reason, Scope, Session};

use crate::helper::{Guest, counts_of, is_of_loop, pfmon, program, repeated, started};

const ITERATIONS: u64 = 1_000_000;
const TOO_LARGE: &str = "the event does not fit into its group: too many events";

/// Check that a group with an event for each counter is exact, with the cycle counter beside them.
#[test]
fn full_groups_are_exact() {
    let Some(guest) = Guest::exact("full_groups_are_exact") else { return };
    let list = format!("{{{},cycles:u}}", repeated("instructions:u", guest.counters));
    let mut session = started(&list);
    let counts = counts_of(&mut session, ITERATIONS);
    let counts: Vec<u64> = counts
        .iter()
        .map(|row| row.tally.count.exact().unwrap_or_else(|| panic!("{row:?}")))
        .collect();
    let (cycles, instructions) = counts.split_last().unwrap();
    assert_eq!(instructions.len(), guest.counters);
    assert!(is_of_loop(instructions[0], ITERATIONS), "{counts:?}");
    assert_eq!(instructions, vec![instructions[0]; guest.counters]);
    // An emulated instruction takes two cycles.
    assert_eq!(*cycles, 2 * instructions[0]);
}

/// Check that a group of one event too many, which the kernel takes and never schedules, is refused and named, and
/// that the events beside it are counted.
#[test]
fn groups_that_never_fit_are_named() {
    let Some(guest) = Guest::exact("groups_that_never_fit_are_named") else { return };
    let list = repeated("instructions:u", guest.counters + 1);
    let mut session = started(&format!("{{{list}}},instructions:u,page-faults:u"));
    let counts = counts_of(&mut session, ITERATIONS);
    let rows: Vec<_> = counts.iter().collect();
    let mut named = 0;
    for row in &rows[..guest.counters + 1] {
        let Count::Unsupported(Reason::Refused(refusal)) = &row.tally.count else {
            panic!("{row:?}")
        };
        named += usize::from(refusal.to_string().starts_with(TOO_LARGE));
        assert!(refusal.to_string().contains(TOO_LARGE), "{refusal}");
    }
    assert_eq!(named, 1, "one event is the one too many");
    assert!(is_of_loop(rows[guest.counters + 1].tally.count.exact().unwrap(), ITERATIONS));
    assert_eq!(rows[guest.counters + 2].tally.count, Count::Exact(0));
}

/// Check the same of a command, whose events wait for its exec.
#[test]
fn groups_of_commands_are_named() {
    let Some(guest) = Guest::exact("groups_of_commands_are_named") else { return };
    let list = repeated("instructions:u", guest.counters + 1);
    let list = format!("{{{list}}},instructions:u");
    let result = pfmon("stat", &["-e", &list, "--", &program("perfmon-known"), "spin", "1000000"]);
    let rows = result["events"].as_array().unwrap();
    let (last, group) = rows.split_last().unwrap();
    assert_eq!(group.len(), guest.counters + 1);
    for row in group {
        assert_eq!((&row["state"], &row["value"]), (&"unsupported".into(), &().into()));
        assert!(row["reason"].as_str().unwrap().contains(TOO_LARGE), "{row}");
    }
    assert_eq!(last["state"], "exact");
}

/// Check that an event that never gets a counter is not counted, with the reason, and not 0.
#[test]
fn events_that_never_run_are_not_zero() {
    let Some(guest) = Guest::exact("events_that_never_run_are_not_zero") else { return };
    let mut all = Session::new(&repeated("instructions:D", guest.counters)).unwrap();
    all.load(&Scope::Cpus(vec![0])).unwrap();
    all.start().unwrap();
    let mut session = started("instructions:u,page-faults:u");
    let counts = counts_of(&mut session, ITERATIONS);
    let rows: Vec<_> = counts.iter().map(|row| &row.tally.count).collect();
    assert_eq!(rows, [&Count::NotCounted(Reason::NeverScheduled), &Count::Exact(0)]);
}
