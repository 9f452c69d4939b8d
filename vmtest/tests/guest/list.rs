// guest rows: exact
//! Which of the PMU's events open, by `pfmon list`.

use serde_json::Value;

use crate::helper::{Guest, pfmon};

/// Whether the event `name` opens, and why not.
fn opens(result: &Value, name: &str) -> (String, Option<String>) {
    let mut rows = result["events"].as_array().unwrap().iter();
    let is_called = |row: &&Value| {
        row["name"] == name || row["also"].as_array().unwrap().contains(&name.into())
    };
    let row = rows.find(is_called).unwrap_or_else(|| panic!("{name}: {result}"));
    (row["opens"].as_str().unwrap().to_owned(), row["reason"].as_str().map(str::to_owned))
}

/// Check that the generic events that the emulated PMU has open, and that the others have a reason.
#[test]
fn events_open_or_say_why_not() {
    if Guest::exact("events_open_or_say_why_not").is_none() {
        return;
    }
    let pattern = "^(cpu-cycles|instructions|branch-misses|page-faults)$";
    let result = pfmon("list", &["-r", pattern]);
    for name in ["cycles", "instructions", "page-faults"] {
        assert_eq!(opens(&result, name), ("yes".to_owned(), None));
    }
    let (opens, reason) = opens(&result, "branch-misses");
    assert_eq!(opens, "no");
    let expected = "this machine's PMU does not count it (ENOENT from perf_event_open)";
    assert!(reason.as_ref().is_some_and(|reason| reason.starts_with(expected)), "{reason:?}");
}
