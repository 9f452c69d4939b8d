//! Published contexts, read by programs in the kernel.

use perfmon::{Found, Published, Scope, Session};

use crate::helper::{can_account, started};

fn name(of: &str) -> String {
    format!("test-{of}-{}", std::process::id())
}

/// Check that published contexts are found by name, and freed with it.
#[test]
fn contexts_are_found_by_name_and_freed() {
    if !can_account("contexts_are_found_by_name_and_freed") {
        return;
    }
    let name = name("found");
    let session = started("page-faults,context-switches");
    let published: Published = session.publish(&name).unwrap();
    assert!(Found::names().contains(&name));
    let found = Found::open(&name).unwrap();
    let info = found.info(0).unwrap();
    assert_eq!((info.nr_pmds, info.is_started, info.is_system_wide), (2, true, false));
    assert_eq!(info.target, rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
    assert_eq!(found.info(1), None);
    assert!(session.publish(&name).unwrap_err().to_string().contains("is in use"));
    drop(published);
    assert_eq!(found.info(0), None);
    assert!(!Found::names().contains(&name));
    let error = Found::open(&name).unwrap_err().to_string();
    assert!(error.contains("no contexts are published as"), "{error}");
}

/// Check that what can't be read by programs is not published, and why.
#[test]
fn what_cannot_be_published_is_refused() {
    if !can_account("what_cannot_be_published_is_refused") {
        return;
    }
    let session = Session::new("page-faults").unwrap();
    let error = session.publish("x").unwrap_err().to_string();
    assert!(error.contains("nothing is loaded"), "{error}");
    for bad in ["", ".x", "a/b", "a b"] {
        let error = started("page-faults").publish(bad).unwrap_err().to_string();
        assert!(error.contains("is no name for published contexts"), "{error}");
    }
    let mut session = Session::new("page-faults").unwrap();
    let pids = vec![std::process::id()];
    session.load(&Scope::Processes { pids, inherit: perfmon::Inherit::Tree }).unwrap();
    let error = session.publish("x").unwrap_err().to_string();
    assert!(error.contains("what a thread creates"), "{error}");
}
