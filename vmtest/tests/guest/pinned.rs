// guest rows: exact
//! Pinned events, more than there are counters.

use perfmon::{Count, Reason};

use crate::helper::{Guest, counts_of, is_of_loop, pfmon, program, repeated, started};

/// Check that pinned events beyond the counters have the reason of their own, and that those before are exact.
#[test]
fn pinned_events_in_error_are_named() {
    let Some(guest) = Guest::exact("pinned_events_in_error_are_named") else { return };
    let mut session = started(&repeated("instructions:uD", guest.counters + 2));
    let counts = counts_of(&mut session, 1_000_000);
    let (counted, others): (Vec<_>, Vec<_>) =
        counts.iter().map(|row| &row.tally.count).partition(|count| count.exact().is_some());
    assert_eq!(counted.len(), guest.counters);
    assert!(
        counted.iter().all(|count| is_of_loop(count.exact().unwrap(), 1_000_000)),
        "{counts:?}"
    );
    assert_eq!(others, [&Count::NotCounted(Reason::InError); 2]);
}

/// Check the same of a command, which has ended when its events are read.
#[test]
fn pinned_events_of_commands_are_named() {
    let Some(guest) = Guest::exact("pinned_events_of_commands_are_named") else { return };
    let list = repeated("instructions:uD", guest.counters + 2);
    let result = pfmon("stat", &["-e", &list, "--", &program("perfmon-known"), "spin", "1000000"]);
    let in_state = |state: &str| {
        let rows = result["events"].as_array().unwrap().iter();
        rows.filter(|row| row["state"] == state).cloned().collect::<Vec<_>>()
    };
    assert_eq!(in_state("exact").len(), guest.counters, "{result}");
    let others = in_state("not_counted");
    assert_eq!(others.len(), 2, "{result}");
    for row in others {
        let reason = row["reason"].as_str().unwrap();
        assert!(reason.starts_with("pinned, and the kernel could not keep it on the PMU"), "{row}");
    }
}
