// guest rows: arm64-newest, arm64-2cpus, x86_64-6.1, x86_64-6.12
use serde_json::Value;

use crate::helper::{Running, WRITES, can_count, json_and_status, only, rows, run, stat};

/// `pfmon stat --json` with `args`, once it counts; its first intervals are read.
fn counting(args: &[&str]) -> Running {
    let mut pfmon = Running::spawn(stat(["--json", "-I", "20", "-e", WRITES].iter().chain(args)));
    let line = pfmon.error_line().unwrap();
    assert!(line.contains("pfmon.stat-interval/1"), "{line}");
    pfmon
}

/// The last line of what `pfmon` printed: the result.
fn result(pfmon: Running) -> Value {
    let (text, status) = pfmon.end();
    assert_eq!(status, 0, "{text}");
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// Check that -p counts all threads of a process, and ends with it.
#[test]
fn counting_ends_with_the_process() {
    if !can_count("counting_ends_with_the_process", WRITES) {
        return;
    }
    let mut team = Running::workload(&["team", "4", "10"]);
    team.wait_for_threads(5);
    let pfmon = counting(&["-p", &team.pid()]);
    team.go();
    let status = team.child.wait().unwrap();
    assert!(status.success());
    let result = result(pfmon);
    assert_eq!(only(&result), 100);
    assert_eq!(result["exit_status"], Value::Null);
    assert_eq!(result["command"], Value::Null);
}

/// Check that --per-thread gives each thread its row.
#[test]
fn threads_have_rows() {
    if !can_count("threads_have_rows", WRITES) {
        return;
    }
    let mut team = Running::workload(&["team", "4", "10"]);
    let mut tids = team.wait_for_threads(5);
    let pfmon = counting(&["--per-thread", "-p", &team.pid()]);
    team.go();
    team.child.wait().unwrap();
    let result = result(pfmon);
    let (mut scopes, mut values) = (Vec::new(), Vec::new());
    for (event, scope, state, value) in rows(&result) {
        assert_eq!((event, state), (WRITES, "exact"));
        scopes.push(scope.unwrap().strip_prefix("tid:").unwrap().to_owned());
        values.push(value.unwrap());
    }
    values.sort_unstable();
    assert_eq!(values, [0, 10, 20, 30, 40]);
    scopes.sort_unstable();
    tids.sort_unstable();
    assert_eq!(scopes, tids);
}

/// Check that -t counts the threads named and no others, and ends with them.
#[test]
fn single_threads() {
    if !can_count("single_threads", WRITES) {
        return;
    }
    let mut team = Running::workload(&["team", "4", "10"]);
    let mut tids = team.wait_for_threads(5);
    tids.retain(|tid| *tid != team.pid());
    let (one, others) = tids.split_at(1);
    let [one, others] = [one, others].map(|tids| counting(&["-t", &tids.join(",")]));
    team.go();
    team.child.wait().unwrap();
    let (one, others) = (only(&result(one)), only(&result(others)));
    assert!([10, 20, 30, 40].contains(&one), "{one}");
    assert_eq!(one + others, 100);
}

/// Check that Ctrl-C ends counting of what goes on, and prints it.
#[test]
fn interrupt_prints_what_was_counted() {
    if !can_count("interrupt_prints_what_was_counted", WRITES) {
        return;
    }
    let team = Running::workload(&["team", "4", "10"]);
    team.wait_for_threads(5);
    let pfmon = counting(&["-p", &team.pid()]);
    pfmon.signal(perfmon::Signal::INT);
    assert_eq!(only(&result(pfmon)), 0);
}

/// Check that a command beside -p only says how long: it is not counted, and its status is given.
#[test]
fn a_command_beside_a_target_is_a_clock() {
    if !can_count("a_command_beside_a_target_is_a_clock", WRITES) {
        return;
    }
    let team = Running::workload(&["team", "1", "1"]);
    team.wait_for_threads(2);
    let args = ["-e", WRITES, "-p", &team.pid(), "sh", "-c", "echo x > /dev/null; exit 3"];
    let (value, status) = json_and_status(&args);
    assert_eq!((status, &value["exit_status"], only(&value)), (3, &Value::from(3), 0));
}

/// Check that a process that is not there is refused by number.
#[test]
fn no_process() {
    let (text, status) = run(stat(["-p", "4000000000"]));
    assert_eq!(status, 125);
    assert!(text.starts_with("pfmon: can't monitor process 4000000000, all threads"), "{text}");
    assert!(text.contains("there is no running process 4000000000"), "{text}");
}
