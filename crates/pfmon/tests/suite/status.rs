// guest rows: arm64-64bit, arm64-no-pmu
use crate::helper::{Running, can_count, only, rows, run, stat, workload};

fn status(args: &[&str]) -> i32 {
    run(stat(["-e", "page-faults:u"].iter().chain(args))).1
}

/// Check that the command's exit status is ours.
#[test]
fn the_commands_status_is_given() {
    assert_eq!(status(&["true"]), 0);
    assert_eq!(status(&[workload(), "exit", "3"]), 3);
    assert_eq!(status(&["sh", "-c", "kill -USR1 $$"]), 128 + 10);
    assert_eq!(status(&["sh", "-c", "kill -KILL $$"]), 128 + 9);
}

/// Check the statuses for commands that can't be executed or found.
#[test]
fn commands_that_do_not_run() {
    let (text, status) = run(stat(["/no/such/program"]));
    let expected = "pfmon: can't run '/no/such/program': not found; check the name and PATH\n";
    assert_eq!((text.as_str(), status), (expected, 127));
    let (text, status) = run(stat(["/dev/null"]));
    let expected = "pfmon: can't run '/dev/null': permission denied; is it executable?\n";
    assert_eq!((text.as_str(), status), (expected, 126));
}

/// Check the status for what can't be measured or understood.
#[test]
fn what_cannot_be_measured() {
    assert_eq!(run(stat::<&str>([])).1, 125);
    assert_eq!(run(stat(["--no-such-option", "true"])).1, 125);
    assert_eq!(run(stat(["-p", "1", "-a"])).1, 125);
    assert_eq!(run(stat(["-r", "0", "true"])).1, 125);
    assert_eq!(run(stat(["--help"])).1, 0);
}

/// Check that a mistyped option is none of the command's, and that options behind the command are its own.
#[test]
fn options_are_told_from_the_commands() {
    let (text, status) = run(stat(["--jsn", "true"]));
    assert!(text.contains("unexpected argument '--jsn' found") && status == 125, "{text}");
    let script = "test \"$1\" = --json && test \"$2\" = -e";
    assert_eq!(run(stat(["-e", "page-faults:u", "sh", "-c", script, "sh", "--json", "-e"])).1, 0);
    assert_eq!(
        run(stat(["-e", "page-faults:u", "--", "sh", "-c", script, "sh", "--json", "-e"])).1,
        0
    );
}

/// Check that --strict turns a missing count into a status, and only a missing one.
#[test]
fn strict_wants_all_counts() {
    if !can_count("strict_wants_all_counts", "page-faults:u") {
        return;
    }
    let unsupported = ["-e", "page-faults:u,context-switches:u"];
    assert_eq!(run(stat(unsupported.iter().chain(&["true"]))).1, 0);
    assert_eq!(run(stat(unsupported.iter().chain(&["--strict", "true"]))).1, 124);
    assert_eq!(status(&["--strict", "true"]), 0);
    assert_eq!(status(&["--strict", workload(), "exit", "3"]), 3);
}

/// Check that a signal sent to us reaches the command, which decides; and that the result is printed.
#[test]
fn signals_reach_the_command() {
    if !can_count("signals_reach_the_command", "page-faults:u") {
        return;
    }
    const SCRIPT: &str = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
    let args = ["--json", "-e", "page-faults:u", "sh", "-c", SCRIPT];
    let mut pfmon = Running::spawn(stat(args));
    assert_eq!(pfmon.output_line().unwrap(), "ready\n");
    pfmon.signal(perfmon::Signal::TERM);
    let (text, status) = pfmon.end();
    let result = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 7);
    assert!(only(&result) > 0);
}

/// Check that an interrupt of a command that does not handle it prints what was counted until then.
#[test]
fn interrupt_prints_what_was_counted() {
    if !can_count("interrupt_prints_what_was_counted", "page-faults:u") {
        return;
    }
    let args = ["--json", "-e", "page-faults:u", "sh", "-c", "echo ready; exec sleep 60"];
    let mut pfmon = Running::spawn(stat(args));
    assert_eq!(pfmon.output_line().unwrap(), "ready\n");
    pfmon.signal(perfmon::Signal::INT);
    let (text, status) = pfmon.end();
    assert_eq!(status, 128 + 2);
    let result = serde_json::from_str(&text).unwrap();
    assert!(matches!(rows(&result)[..], [("page-faults:u", None, "exact", Some(1..))]), "{text}");
}
