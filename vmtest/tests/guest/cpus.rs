// guest rows: 2-cpus
//! Whole CPUs, each with its own PMU. (Emulation lets instructions of one leak into the other's counts.)

use crate::helper::{Guest, exact_counts, of_loop, pfmon, program, skipped};

/// Check that each CPU has a row of each event, and that the rows have a loop that ran meanwhile.
#[test]
fn each_cpu_has_rows() {
    const NAME: &str = "each_cpu_has_rows";
    if Guest::found().is_none_or(|guest| guest.cpus != 2) {
        return skipped(NAME, "needs a guest of two CPUs");
    }
    let known = program("perfmon-known");
    let args = ["-a", "-A", "-e", "instructions,cycles", "--", &known, "spin", "10000000"];
    let result = pfmon("stat", &args);
    let rows = result["events"].as_array().unwrap().iter();
    let names: Vec<_> =
        rows.map(|row| (row["event"].as_str().unwrap(), row["scope"].as_str().unwrap())).collect();
    let expected = [
        ("instructions", "cpu:0"),
        ("instructions", "cpu:1"),
        ("cycles", "cpu:0"),
        ("cycles", "cpu:1"),
    ];
    assert_eq!(names, expected);
    let counts = exact_counts(&result);
    assert!(counts[0] + counts[1] > of_loop(10_000_000), "{counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}
