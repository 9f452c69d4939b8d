use std::process::Stdio;

use perfmon::{Scope, Session, Workload};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::helper::{alone, can_count, descriptors};

/// A session of 200 events, loaded or not.
fn load_200() -> Result<Session, String> {
    let mut session = Session::new(&vec!["page-faults:u"; 200].join(",")).unwrap();
    session.load(&Scope::CurrentThread).map(|()| session).map_err(|error| error.to_string())
}

fn limit(current: u64, maximum: u64) {
    let limit = Rlimit { current: Some(current), maximum: Some(maximum) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Check that what needs more descriptors than there may be is refused before anything is opened.
#[test]
fn too_many_events_are_refused_at_once() {
    alone("descriptors::too_many_events_are_refused_at_once", || {
        limit(100, 100);
        let before = descriptors();
        assert_eq!(
            load_200().unwrap_err(),
            "can't monitor the calling thread: 200 events have to be open at once, but this process may have no \
             more than 100 descriptors; raise the limit (ulimit -Hn, as root), or count fewer events, threads \
             or CPUs at once"
        );
        assert_eq!(descriptors(), before);
    });
}

/// Check that the soft limit is raised as far as needed, and that a command starts with what it was before.
#[test]
fn soft_limit_is_raised_for_us_alone() {
    if !can_count("soft_limit_is_raised_for_us_alone", "page-faults:u") {
        return;
    }
    alone("descriptors::soft_limit_is_raised_for_us_alone", || {
        limit(100, 1000);
        let before = descriptors();
        let session = load_200().unwrap();
        assert_eq!(descriptors(), before + 200);
        let raised = getrlimit(Resource::Nofile).current.unwrap();
        assert!((264..1000).contains(&raised), "{raised}");
        let script = r#"test "$(ulimit -Sn)" = 100 && test "$(ulimit -Hn)" = 1000"#;
        let mut workload = Workload::spawn(&["sh", "-c", script], None).unwrap();
        workload.release().unwrap();
        assert_eq!(workload.wait().unwrap().exit, perfmon::Exit::Status(0));
        // Any other child inherits the raised limit: the test above can fail.
        let mut other = std::process::Command::new("sh");
        assert!(!other.args(["-c", script]).stdout(Stdio::null()).status().unwrap().success());
        drop((session, workload));
        assert_eq!(descriptors(), before);
    });
}
