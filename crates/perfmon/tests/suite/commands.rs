use perfmon::{Exit, Inherit, Scope, Session, SpawnError, StartOn, Workload};

use crate::helper::{WRITES, can_count, workload_argv as argv};

fn count(args: &[&str], inherit: Inherit) -> Option<u64> {
    let mut workload = Workload::spawn(&argv(args), None).unwrap();
    let mut session = Session::new(WRITES).unwrap();
    let scope = Scope::Command { pid: workload.pid(), inherit, start_on: StartOn::Exec };
    session.load(&scope).unwrap();
    workload.release().unwrap();
    assert_eq!(workload.wait().unwrap().exit, Exit::Status(0));
    session.read();
    session.tally(0).count.exact()
}

/// Check that a command is counted from its exec to the end of its last thread, or its first thread alone.
#[test]
fn commands_are_counted_with_or_without_descendants() {
    if !can_count("commands_are_counted_with_or_without_descendants", WRITES) {
        return;
    }
    assert_eq!(count(&["writes", "4321"], Inherit::Tree), Some(4321));
    assert_eq!(count(&["threads", "200", "3"], Inherit::Tree), Some(600));
    assert_eq!(count(&["threads", "200", "3"], Inherit::None), Some(0));
}

/// Check that a command ends with its own status or signal.
#[test]
fn commands_end_as_they_do() {
    let run = |argv: &[String]| {
        let mut workload = Workload::spawn(argv, None).unwrap();
        workload.release().unwrap();
        workload.wait().unwrap().exit
    };
    assert_eq!(run(&argv(&["exit", "0"])), Exit::Status(0));
    assert_eq!(run(&argv(&["exit", "3"])), Exit::Status(3));
    let killed = ["sh", "-c", "kill -KILL $$"].map(str::to_owned);
    assert_eq!(run(&killed), Exit::Signal(9));
}

/// Check that a program that is not there, or is none, is told apart when it is released.
#[test]
fn programs_that_cannot_run_are_told_apart() {
    let release = |program: &str| Workload::spawn(&[program], None).unwrap().release().unwrap_err();
    assert!(
        matches!(release("/no/such/program"), SpawnError::NotFound(name) if name == "/no/such/program")
    );
    assert!(matches!(release("/dev/null"), SpawnError::CantExecute(..)));
}
