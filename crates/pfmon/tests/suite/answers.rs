// guest rows: arm64-newest, arm64-2cpus, x86_64-6.1, x86_64-6.12
use crate::helper::{
    WRITES, can_count, json, leaves_records, only, rows, scaled, workload, writes_of,
};

/// Faults that two runs of one program may differ by: address layout, environment.
const FAULTS_AROUND: u64 = 24;

/// Check that the writes of a program that makes a million are a million.
#[test]
fn a_million_writes() {
    if can_count("a_million_writes", WRITES) {
        let writes = scaled(1_000_000);
        let count = format!("count={writes}");
        let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", &count, "status=none"];
        assert_eq!(writes_of(&dd), writes);
    }
}

/// Check that N fresh pages are N faults more than none.
#[test]
fn fresh_pages() {
    const PAGES: u64 = 20_000;
    if !can_count("fresh_pages", "page-faults:u,minor-faults:u") {
        return;
    }
    for event in ["page-faults:u", "minor-faults:u"] {
        let faults =
            |pages: u64| only(&json(&["-e", event, workload(), "faults", &pages.to_string()]));
        let difference = faults(PAGES) - faults(0);
        assert!(difference.abs_diff(PAGES) <= FAULTS_AROUND, "{event}: {difference}");
    }
}

/// Check that parent, children and grandchildren of a shell add up, and that -i counts the first process.
#[test]
fn a_tree_of_processes() {
    const SCRIPT: &str = "echo a > /dev/null
        ( echo b; echo c ) > /dev/null
        ( ( echo d; echo e; echo f ) > /dev/null; ( echo g ) > /dev/null ) &
        wait
        dd if=/dev/zero of=/dev/null bs=1 count=100 status=none
        echo h > /dev/null";
    if can_count("a_tree_of_processes", WRITES) {
        assert_eq!(writes_of(&["sh", "-c", SCRIPT]), 108);
        assert_eq!(writes_of(&["-i", "sh", "-c", SCRIPT]), 2);
    }
}

/// Check that none of 5,000 forked processes is missed.
#[test]
fn five_thousand_forks() {
    const SCRIPT: &str = "i=0; while [ $i -lt $0 ]; do ( echo x > /dev/null ); i=$((i+1)); done";
    let forks = scaled(5000);
    if can_count("five_thousand_forks", WRITES) {
        assert_eq!(writes_of(&["sh", "-c", SCRIPT, &forks.to_string()]), forks);
    }
}

/// Check that none of 2,000 short-lived threads is missed, and that -i counts the first thread.
#[test]
fn two_thousand_threads() {
    if can_count("two_thousand_threads", WRITES) {
        let threads = scaled(2000);
        let command = [workload(), "threads", &threads.to_string(), "3"];
        assert_eq!(writes_of(&command), 3 * threads);
        assert_eq!(writes_of(&[&["--no-inherit"], &command[..]].concat()), 0);
    }
}

/// Check that --per-thread gives each thread of a command its row, with its name.
#[test]
fn threads_of_a_command_have_rows() {
    if !can_count("threads_of_a_command_have_rows", WRITES) {
        return;
    }
    let result = json(&["--per-thread", "-e", WRITES, workload(), "threads", "200", "3"]);
    if !leaves_records() {
        assert_eq!(rows(&result), [(WRITES, Some("rest"), "exact", Some(600))]);
        let note = result["notes"].to_string();
        return assert!(note.contains("200 ended without a record of their counts"), "{note}");
    }
    let mut values: Vec<_> = rows(&result).into_iter().map(|row| row.3).collect();
    assert!(rows(&result).iter().all(|row| row.1.is_some_and(|scope| scope.starts_with("tid:"))));
    // The first thread is there, and writes nothing.
    assert_eq!(values.remove(0), Some(0));
    assert_eq!(values, [Some(3); 200]);
    let names = result["events"].as_array().unwrap().iter().map(|row| row["comm"].as_str());
    assert!(names.into_iter().all(|name| name == Some("workload")), "{result}");
    let whole = json(&["-e", WRITES, workload(), "threads", "200", "3"]);
    assert_eq!(only(&whole), 600);
}

/// Check that a descendant that outlives the command is in the row of the rest, that this is said, and that the rows
/// still add up.
#[test]
fn what_can_not_be_told_apart_is_the_rest() {
    if !can_count("what_can_not_be_told_apart_is_the_rest", WRITES) {
        return;
    }
    let script = format!("sleep 2 & {} writes 100; {} writes 10; :", workload(), workload());
    let result = json(&["--per-thread", "-e", WRITES, "sh", "-c", &script]);
    let found: Vec<_> =
        rows(&result).into_iter().map(|row| (row.1.unwrap() == "rest", row.3)).collect();
    if !leaves_records() {
        return assert_eq!(found, [(true, Some(110))], "{result}");
    }
    assert_eq!(found, [(true, Some(0)), (false, Some(100)), (false, Some(10))], "{result}");
    assert!(result["notes"].to_string().contains("1 threads still running"), "{result}");
}

/// Check that a clock counts the time of a program that spins, in nanoseconds, and not that of one that sleeps.
#[test]
fn clocks_count_time_on_the_cpu() {
    if !can_count("clocks_count_time_on_the_cpu", "page-faults:u") {
        return;
    }
    let time = |args: &[&str]| only(&json(&[&["-e", "task-clock"], args].concat()));
    // It spins by the wall's clock, and may have had to share the CPU.
    assert!(time(&[workload(), "spin", "300"]) > 20_000_000);
    assert!(time(&["sleep", "0.3"]) < 200_000_000);
}
