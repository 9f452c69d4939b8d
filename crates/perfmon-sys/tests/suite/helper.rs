use std::io::Write;
use std::process::{Command, Stdio};

/// Says that a test did not run, past libtest's capture.
pub(crate) fn skipped(name: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

/// Runs `body` in a process whose environment has `variable` set to `value`; `name` is the test's full name.
pub(crate) fn with_variable(name: &str, variable: &str, value: &str, body: impl FnOnce()) {
    const MARK: &str = "PERFMON_TEST_ALONE";
    if std::env::var_os(MARK).is_some_and(|value| value == name) {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--test-threads", "1", "--nocapture"]);
    let status =
        command.env(MARK, name).env(variable, value).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{name}: {status}");
}
