use perfmon_core::Refusal;
use perfmon_linux::attach::{self, OpenError};

use crate::helper::Target;

const TARGET: &str = "attach::target";

/// The process that the tests here attach to.
#[test]
fn target() {
    Target::be_target(TARGET);
}

/// Check that each thread of two processes is opened once, and that what was opened belongs to its thread.
#[test]
fn each_thread_is_opened_once() {
    let targets = [Target::start(TARGET, 3), Target::start(TARGET, 5)];
    let mut expected: Vec<u32> = targets.iter().flat_map(Target::tids).collect();
    expected.sort_unstable();
    let mut opened = Vec::new();
    let pids = targets.each_ref().map(Target::pid);
    let attached = attach::processes(&pids, |tid| {
        opened.push(tid);
        Ok(tid * 2)
    });
    let attached = attached.unwrap();
    let tids: Vec<u32> = attached.threads.iter().map(|&(tid, _)| tid).collect();
    assert_eq!(tids, expected);
    assert!(attached.threads.iter().all(|&(tid, doubled)| doubled == tid * 2));
    opened.sort_unstable();
    opened.dedup();
    assert_eq!(opened, expected);
}

/// Check that a thread that has gone is left out, and that it is an error if all have.
#[test]
fn threads_that_have_gone_are_left_out() {
    let target = Target::start(TARGET, 3);
    let mut tids = target.tids();
    let gone = tids.remove(2);
    let open = |tid| if tid == gone { Err(OpenError::Gone) } else { Ok(()) };
    let attached = attach::processes(&[target.pid()], open).unwrap();
    let left: Vec<u32> = attached.threads.iter().map(|&(tid, ())| tid).collect();
    assert_eq!(left, tids);
    let refusal =
        attach::processes(&[target.pid()], |_| Err::<(), _>(OpenError::Gone)).unwrap_err();
    assert_eq!(refusal.why(), format!("there is no running process {}", target.pid()));
}

/// Check that a refusal of one thread is that of the whole, in the same words.
#[test]
fn a_refusal_ends_it() {
    let target = Target::start(TARGET, 3);
    let mut opened = 0;
    let open = |_| {
        opened += 1;
        if opened == 2 { Err(OpenError::Refused(Refusal::new("no"))) } else { Ok(()) }
    };
    let refusal = attach::processes(&[target.pid()], open).unwrap_err();
    assert_eq!((refusal.why(), opened), ("no", 2));
}

/// Check that threads are counted, and that those of no process are none.
#[test]
fn threads_are_counted() {
    let target = Target::start(TARGET, 7);
    assert_eq!(attach::thread_count(target.pid()), target.tids().len());
    assert_eq!(attach::thread_count(u32::MAX), 0);
    let refusal = attach::processes(&[u32::MAX], |_| Ok(())).unwrap_err();
    assert_eq!(refusal.why(), "there is no running process 4294967295");
    assert_eq!(refusal.next_step(), Some("name a process that is running (ps -e)"));
}

/// Check that a process is as it was once it has been attached to: it ends when it is told.
#[test]
fn the_process_goes_on() {
    let mut target = Target::start(TARGET, 3);
    attach::processes(&[target.pid()], |_| Ok(())).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/status", target.pid())).unwrap();
    assert!(state.contains("TracerPid:\t0"), "{state}");
    assert!(target.finish().success());
}
