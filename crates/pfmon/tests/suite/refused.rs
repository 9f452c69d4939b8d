// guest rows: arm64-64bit, arm64-no-pmu, x86_64-6.1
use crate::helper::{can_count, json, rows, run, skipped, stat};

/// Check that a bad list of events is shown with the place, and with what may have been meant.
#[test]
fn bad_lists_are_pointed_at() {
    let (text, status) = run(stat(["-e", "task-clock,cylces:u", "true"]));
    let expected = "pfmon: expected an event, found 'cylces'\n  task-clock,cylces:u\n             ^\n\
                    did you mean 'cycles'?\n";
    assert_eq!((text.as_str(), status), (expected, 125));
    let (text, status) = run(stat(["-e", "task-clock", "-e", "{page-faults", "true"]));
    assert!(text.contains("expected ',' or '}', found nothing"), "{text}");
    assert_eq!(status, 125);
}

/// Check that an event that this machine does not have is that event's reason, and the others count.
#[test]
fn unknown_tracepoints_spoil_nothing_else() {
    if !can_count("unknown_tracepoints_spoil_nothing_else", "page-faults:u") {
        return;
    }
    let result = json(&["-e", "page-faults:u,no_such_group:no_such_event", "true"]);
    let rows = rows(&result);
    assert!(matches!(rows[0], ("page-faults:u", None, "exact", Some(1..))), "{result}");
    assert!(matches!(rows[1], (_, None, "unsupported", None)), "{result}");
    assert!(result["events"][1]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

/// Check that pairs of event and modifier that always read 0 are unsupported with the reason, never 0.
#[test]
fn blind_pairs_are_unsupported() {
    for (event, why) in [
        ("context-switches:u", "this event happens in the kernel: without 'k' it always reads 0; "),
        ("task-clock:u", "the clocks ignore 'u', 'k' and 'h': this would count all time; "),
        ("dummy", "this event counts nothing: it only carries samples, and always reads 0; "),
    ] {
        let result = json(&["-e", event, "true"]);
        assert_eq!(rows(&result), [(event, None, "unsupported", None)]);
        let reason = result["events"][0]["reason"].as_str().unwrap();
        assert!(reason.starts_with(why), "{reason}");
    }
}

/// Check that a hardware event on a machine without a PMU is null, with reason and errno.
#[test]
fn hardware_events_need_a_pmu() {
    if !can_count("hardware_events_need_a_pmu", "page-faults:u") {
        return;
    }
    if perfmon::has_core_pmu() {
        return skipped("hardware_events_need_a_pmu", "this machine has a core PMU");
    }
    const REASON: &str = "this machine has no PMU that counts it (ENOENT from perf_event_open); in a \
                          virtual machine, ask for a virtual PMU; software events and tracepoints work \
                          without";
    let result = json(&["-e", "cycles:u,page-faults:u", "true"]);
    assert_eq!(rows(&result)[0], ("cycles:u", None, "unsupported", None));
    assert_eq!(result["events"][0]["reason"], REASON);
    assert!(matches!(rows(&result)[1], ("page-faults:u", None, "exact", Some(1..))), "{result}");
}

/// Check that a group without one of its events has none, and that events beside it count.
#[test]
fn groups_are_all_or_nothing() {
    if !can_count("groups_are_all_or_nothing", "page-faults:u") {
        return;
    }
    if perfmon::has_core_pmu() {
        return skipped("groups_are_all_or_nothing", "this machine has a core PMU");
    }
    let result = json(&["-e", "{page-faults:u,cycles:u},minor-faults:u", "true"]);
    let rows = rows(&result);
    assert_eq!(rows[0], ("page-faults:u", None, "unsupported", None));
    assert_eq!(rows[1], ("cycles:u", None, "unsupported", None));
    assert!(matches!(rows[2], ("minor-faults:u", None, "exact", Some(1..))), "{result}");
    let reason = result["events"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("a group is all or nothing, and another event"), "{reason}");
    assert!(reason.contains("ENOENT from perf_event_open"), "{reason}");
}

/// Check that a value of a row is null exactly where its state says that there is none, and has a reason.
#[test]
fn no_count_is_never_zero() {
    let result = json(&["-e", "cycles,page-faults:u,context-switches:u,no:such,{r1,cs}", "true"]);
    for row in result["events"].as_array().unwrap() {
        let has_value = matches!(row["state"].as_str(), Some("exact" | "estimated"));
        assert_eq!(row["value"].is_u64(), has_value, "{row}");
        assert_eq!(row["reason"].is_null(), row["state"] == "exact", "{row}");
    }
}
