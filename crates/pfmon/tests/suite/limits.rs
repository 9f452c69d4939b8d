// guest rows: arm64-6.12, x86_64-newest
use std::process::{Command, Stdio};

use crate::helper::run;

/// Runs `script` in a shell, with pfmon as `$0`.
fn shell(script: &str) -> (String, i32) {
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_pfmon")]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    run(command)
}

fn many_events() -> String {
    vec!["page-faults:u"; 200].join(",")
}

/// Check that too many events are refused in words before the command runs.
#[test]
fn too_many_descriptors_are_refused() {
    let script = format!(
        "ulimit -Sn 100; ulimit -Hn 100; exec \"$0\" stat -e {} sh -c 'echo ran >&2'",
        many_events()
    );
    let expected = "pfmon: can't monitor command and all its descendants: 200 events have to be open at once, but \
                    this process may have no more than 100 descriptors; raise the limit (ulimit -Hn, as root), or \
                    count fewer events, threads or CPUs at once\n";
    assert_eq!(shell(&script), (expected.to_owned(), 125));
}

/// Check that the soft limit is raised where that is allowed, and that the command still sees its own.
#[test]
fn the_command_keeps_its_limit() {
    let script = format!(
        "ulimit -Sn 100; ulimit -Hn 1000; exec \"$0\" stat -o /dev/null -e {} sh -c 'ulimit -Sn >&2; ulimit -Hn >&2'",
        many_events()
    );
    assert_eq!(shell(&script), ("100\n1000\n".to_owned(), 0));
}
