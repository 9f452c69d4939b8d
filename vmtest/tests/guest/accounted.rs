// guest rows: exact, arm64-6.1
//! Hardware events that are accounted to threads at context switches.

use perfmon::{Accounting, By, Inherit, Part, Scope, Session};
use perfmon_vmtest::spin;

use crate::helper::{assert_instructions, counts_instructions, of_loop, skipped};
use crate::threads::{Worker, settle};

const MILLION: u64 = 1_000_000;

fn accounted(name: &str, scope: &Scope) -> Option<Session> {
    let mut session = Session::new("instructions:u").unwrap();
    session.set_accounting(Accounting::Switch);
    match session.load(scope) {
        Ok(()) => session.start().unwrap(),
        Err(error) => {
            skipped(name, error);
            return None;
        }
    }
    Some(session)
}

/// What the thread `tid` counted so far.
fn count_of(session: &mut Session, tid: u32) -> u64 {
    session.read_by(By::Thread);
    let parts = session.parts(0, None);
    let row = parts.iter().find(|(part, _)| *part == Part::Thread(tid));
    row.unwrap().1.count.exact().unwrap()
}

/// Check that each thread's count is its own loop's, and that the whole is their sum.
#[test]
fn instructions_are_accounted_to_threads() {
    let name = "instructions_are_accounted_to_threads";
    if !counts_instructions(name) {
        return;
    }
    let mut workers = [(); 3].map(|()| Worker::spinning());
    let tids: Vec<u32> = workers.iter().map(|worker| worker.tid).collect();
    let Some(mut session) = accounted(name, &Scope::Threads(tids)) else { return };
    let mut grown = |more: u64| {
        let mut counts = Vec::new();
        for (place, worker) in (1..).zip(&mut workers) {
            let before = count_of(&mut session, worker.tid);
            worker.tell(1 + place * more);
            settle(worker.tid);
            counts.push(count_of(&mut session, worker.tid) - before);
        }
        let sum = workers.iter().map(|worker| count_of(&mut session, worker.tid)).sum();
        assert_eq!(session.tally(0).count.exact(), Some(sum));
        counts
    };
    let _ = grown(0);
    let (short, long) = (grown(0), grown(MILLION));
    for (place, (short, long)) in (1..).zip(short.iter().zip(long)) {
        assert_instructions(long - short, place * of_loop(MILLION));
    }
}

/// Check that a thread is counted from its begin on that is created while its process is followed.
#[test]
fn instructions_of_later_threads_are_accounted() {
    let name = "instructions_of_later_threads_are_accounted";
    if !counts_instructions(name) {
        return;
    }
    let inherit = Inherit::TreeByThread;
    let own = Scope::Processes { pids: vec![std::process::id()], inherit };
    let Some(mut session) = accounted(name, &own) else { return };
    let mut of_new_thread = |iterations| {
        let tid = std::thread::spawn(move || {
            spin(iterations);
            rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
        });
        let tid = tid.join().unwrap();
        count_of(&mut session, tid)
    };
    let _ = (of_new_thread(1), of_new_thread(1));
    let short = of_new_thread(1);
    let long = of_new_thread(1 + MILLION);
    // The begin and end of a thread take some instructions more or less.
    let loops = long - short;
    assert!(loops.abs_diff(of_loop(MILLION)) < 1000, "{loops}");
}
