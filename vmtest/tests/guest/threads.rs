// guest rows: exact
//! Instructions of several threads of this process, through a session.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::time::Duration;

use perfmon::{Inherit, Part, Scope, Session};
use perfmon_vmtest::spin;

use crate::helper::{assert_instructions, counts_instructions, of_loop};

const MILLION: u64 = 1_000_000;

/// A thread that does what it is told, until it is dropped. It is told by a pipe, since a system call takes the same
/// instructions whether or not it waits.
pub(crate) struct Worker {
    pub(crate) tid: u32,
    orders: PipeWriter,
    done: PipeReader,
}

impl Worker {
    /// One that does its work for each order, and answers with what that gives. It makes the work with its first order.
    fn start<W: FnMut(u64) -> u32>(make_work: impl FnOnce() -> W + Send + 'static) -> Self {
        let (mut orders, sender) = pipe().unwrap();
        let (done, mut tell) = pipe().unwrap();
        std::thread::spawn(move || {
            let mut work = None;
            let mut make_work = Some(make_work);
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            tell.write_all(&tid.to_ne_bytes()).unwrap();
            let mut order = [0; 8];
            while orders.read_exact(&mut order).is_ok() {
                let work = work.get_or_insert_with(|| make_work.take().unwrap()());
                let answer = work(u64::from_ne_bytes(order));
                tell.write_all(&answer.to_ne_bytes()).unwrap();
            }
        });
        let mut worker = Self { tid: 0, orders: sender, done };
        worker.tid = worker.answer();
        worker
    }

    /// One that spins.
    pub(crate) fn spinning() -> Self {
        Self::start(|| {
            |iterations| {
                spin(iterations);
                0
            }
        })
    }

    fn answer(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.done.read_exact(&mut bytes).unwrap();
        u32::from_ne_bytes(bytes)
    }

    /// Returns its answer when it has done its work.
    pub(crate) fn tell(&mut self, order: u64) -> u32 {
        self.orders.write_all(&order.to_ne_bytes()).unwrap();
        self.answer()
    }
}

/// Returns when the thread waits for its next order.
pub(crate) fn settle(tid: u32) {
    let sleeps = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('S'))
    };
    while !sleeps() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the thread `tid` counted so far.
fn count_of(session: &mut Session, tid: u32) -> u64 {
    session.read();
    let parts = session.parts(0, None);
    let row = parts.iter().find(|(part, _)| *part == Part::Thread(tid));
    row.unwrap().1.count.exact().unwrap()
}

/// Check that each thread's count is its own loop's, and that the whole is their sum.
#[test]
fn threads_are_counted() {
    if !counts_instructions("threads_are_counted") {
        return;
    }
    let mut workers = [(); 3].map(|()| Worker::spinning());
    let tids: Vec<u32> = workers.iter().map(|worker| worker.tid).collect();
    let mut session = Session::new("instructions:u").unwrap();
    session.load(&Scope::Threads(tids)).unwrap();
    session.start().unwrap();
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

/// Check that a thread that is created later is counted with the one that creates it.
#[test]
fn later_threads_are_counted() {
    if !counts_instructions("later_threads_are_counted") {
        return;
    }
    let mut first = Worker::start(|| {
        let mut second = Worker::spinning();
        move |iterations| {
            second.tell(iterations);
            second.tid
        }
    });
    let mut session = Session::new("instructions:u").unwrap();
    let own = Scope::Processes { pids: vec![std::process::id()], inherit: Inherit::Tree };
    session.load(&own).unwrap();
    session.start().unwrap();
    let mut grown = |iterations| {
        let before = count_of(&mut session, first.tid);
        let second = first.tell(iterations);
        settle(second);
        settle(first.tid);
        count_of(&mut session, first.tid) - before
    };
    let _ = (grown(1), grown(1));
    let short = grown(1);
    assert_instructions(grown(1 + MILLION), short + of_loop(MILLION));
}
