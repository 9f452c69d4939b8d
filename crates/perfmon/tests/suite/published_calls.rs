//! Call-backs: how often they are called, for which context, and what its registers are then.

use std::sync::mpsc::{Receiver, Sender, channel};

use perfmon::bpf::{Loaded, Loader, Object};
use perfmon::{Attached, Published, Scope, Session, Target};

use crate::helper::{Null, WRITES, can_account};
use crate::published_helper::{
    Do, ENOENT, Note, Pages, READER, READER_IN_C, Reader, calls_of, event, name, notes,
};

/// What the thread does whose context it is.
#[derive(Clone, Copy)]
enum Job {
    Touch(u64),
    Write(u64),
    Call(u64),
}

#[inline(never)]
fn called(number: u64) -> u64 {
    std::hint::black_box(number)
}

/// A thread that does nothing that counts but its jobs.
struct Worker {
    jobs: Sender<Job>,
    done: Receiver<u32>,
    tid: u32,
}

impl Worker {
    fn new() -> Self {
        let (jobs, job) = channel();
        let (done, is_done) = channel();
        std::thread::spawn(move || {
            let (mut pages, mut null) = (Pages::new(), Null::open());
            let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            done.send(tid).unwrap();
            for job in job {
                match job {
                    Job::Touch(count) => pages.touch(count),
                    Job::Write(count) => null.write(count),
                    Job::Call(count) => _ = (0..count).map(called).max(),
                }
                done.send(tid).unwrap();
            }
        });
        let tid = is_done.recv().unwrap();
        let worker = Self { jobs, done: is_done, tid };
        // What is new the first time.
        [Job::Touch(1), Job::Write(1), Job::Call(1)].into_iter().for_each(|job| worker.does(job));
        worker
    }

    fn does(&self, job: Job) {
        self.jobs.send(job).unwrap();
        self.done.recv().unwrap();
    }

    /// A session on it, not started.
    fn session(&self, list: &str) -> Session {
        let mut session = Session::new(list).unwrap();
        session.load(&Scope::Threads(vec![self.tid])).unwrap();
        session
    }
}

/// The call-backs in both languages.
fn programs(published: &Published) -> [Loaded; 2] {
    [READER, READER_IN_C].map(|bytes| {
        let object = Object::parse("reader", bytes).unwrap();
        let load = |loader: Loader<'_>| published.share(loader).load(&object);
        let all = load(Loader::new());
        all.or_else(|_| load(Loader::new().without("read_function"))).unwrap()
    })
}

fn expected(count: u64, kind: u64, thread: u32, value: impl Fn(u64) -> u64) -> Vec<Note> {
    let note =
        |number| Note { context: 0, kind, result: 1, value: value(number), thread: thread.into() };
    (1..=count).map(note).collect()
}

/// Check that 2000 faults of period 4 are 500 calls, in which the register is 4, 8, 12 and so on.
#[test]
fn overflows_call_back_with_their_values() {
    if !can_account("overflows_call_back_with_their_values") {
        return;
    }
    let worker = Worker::new();
    for language in [0, 1] {
        let mut session = worker.session("page-faults");
        let mut published = session.publish(&name("overflows")).unwrap();
        let programs = &programs(&published)[language];
        published.call_back(0, &event("page-faults"), 4, programs, "on_sample").unwrap();
        session.start().unwrap();
        worker.does(Job::Touch(1000));
        assert_eq!(notes(&mut published), expected(250, 0, worker.tid, |number| 4 * number));
        worker.does(Job::Touch(1000));
        let more = expected(250, 0, worker.tid, |number| 1000 + 4 * number);
        assert_eq!(notes(&mut published), more);
        session.read();
        assert_eq!(session.tally(0).count.exact(), Some(2000));
        let info = published.info(0).unwrap();
        assert_eq!((info.samples, info.unplugged), (500, 0));

        // Without it, its event goes on.
        published.unplug(0).unwrap();
        worker.does(Job::Touch(400));
        assert_eq!(notes(&mut published), []);
        let info = published.info(0).unwrap();
        assert_eq!((info.samples, info.unplugged), (600, 100));
        published.unplug(0).unwrap();
    }
}

/// Check that each 10th of the thread's own hits calls back, of a tracepoint and of a function, while others hit them.
#[test]
fn hits_call_back_once_a_period() {
    if !can_account("hits_call_back_once_a_period") {
        return;
    }
    let worker = Worker::new();
    let mut session = worker.session("page-faults,syscalls:sys_enter_write");
    let mut published = session.publish(&name("hits")).unwrap();
    session.start().unwrap();
    let programs = programs(&published);
    let function: fn(u64) -> u64 = called;
    let others = |count| {
        Null::open().write(count);
        (0..count).map(std::hint::black_box(function)).max()
    };
    for programs in &programs {
        published.call_back(0, &event(WRITES), 10, programs, "on_sample").unwrap();
        others(75);
        worker.does(Job::Write(995));
        others(75);
        assert_eq!(notes(&mut published), expected(99, 1, worker.tid, |_| 0));
        worker.does(Job::Write(5));
        assert_eq!(notes(&mut published), expected(1, 1, worker.tid, |_| 0));

        // Another call-back takes its place, with a period of its own.
        let calls = calls_of("uprobe", function as usize);
        published.call_back(0, &calls, 10, programs, "on_sample").unwrap();
        worker.does(Job::Write(1000));
        others(75);
        worker.does(Job::Call(1000));
        others(75);
        assert_eq!(notes(&mut published), expected(100, 2, worker.tid, |_| 0));
        published.call_back(0, &event("page-faults"), 50, programs, "on_sample").unwrap();
        worker.does(Job::Write(100));
        worker.does(Job::Call(100));
        assert_eq!(notes(&mut published), []);
        published.unplug(0).unwrap();
    }
    let info = published.info(0).unwrap();
    assert_eq!((info.samples, info.unplugged), (400, 0));
}

/// Check that two contexts have call-backs of their own, and that one that is stopped is not called.
#[test]
fn contexts_have_their_own_call_backs() {
    if !can_account("contexts_have_their_own_call_backs") {
        return;
    }
    let workers = [Worker::new(), Worker::new()];
    let mut session = Session::new("page-faults").unwrap();
    session.load(&Scope::Threads(workers.iter().map(|it| it.tid).collect())).unwrap();
    let mut published = session.publish(&name("two")).unwrap();
    let programs = programs(&published);
    session.start().unwrap();
    for (context, period) in [(0, 5), (1, 20)] {
        let programs = &programs[context as usize];
        published.call_back(context, &event("page-faults"), period, programs, "on_sample").unwrap();
    }
    workers.iter().for_each(|worker| worker.does(Job::Touch(100)));
    let notes = notes(&mut published);
    let of = |context: u64| {
        let of = notes.iter().filter(|note| note.context == context);
        of.map(|note| note.thread).collect::<Vec<_>>()
    };
    assert_eq!(of(0), vec![u64::from(workers[0].tid); 20]);
    assert_eq!(of(1), vec![u64::from(workers[1].tid); 5]);
}

/// Check that records come in order and in number, and that a ring without room says so.
#[test]
fn records_are_as_many_as_were_sent() {
    if !can_account("records_are_as_many_as_were_sent") {
        return;
    }
    let session = crate::helper::started("page-faults");
    let mut published = session.publish(&name("ring")).unwrap();
    let is_ready = |published: &Published| {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let records = published.records().unwrap();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&records, PollFlags::IN)], Some(&now)).unwrap() == 1
    };
    for reader in Reader::both(&published) {
        assert!(!is_ready(&published));
        for _ in 0..300 {
            assert_eq!(reader.command(Do::Emit).result, 0);
        }
        assert!(is_ready(&published));
        let argument = (Do::Emit as u32) << 4;
        let mut records = Vec::new();
        assert_eq!(published.drain(|record| records.push(record.to_vec())), 300);
        // Records are padded to 8 bytes.
        assert!(records.iter().all(|it| it[..4] == argument.to_ne_bytes()), "{records:?}");
        // 256 KiB hold as many records of 8 bytes with a header of 8.
        let fits = 16384;
        let results = (0..fits + 100).map(|_| reader.command(Do::Emit).result);
        let sent = results.filter(|&result| result == 0).count();
        assert_eq!((published.drain(|_| ()), sent), (sent, fits - 1));
    }
}

/// Check that a call-back that can't be had is refused with the reason.
#[test]
fn wrong_call_backs_are_refused() {
    if !can_account("wrong_call_backs_are_refused") {
        return;
    }
    let session = crate::helper::started("page-faults");
    let mut published = session.publish(&name("wrong")).unwrap();
    let programs = &programs(&published)[0];
    let faults = event("page-faults");
    let mut refused = |context, period, name| {
        published.call_back(context, &faults, period, programs, name).unwrap_err().to_string()
    };
    assert!(refused(0, 0, "on_sample").contains("a period of 0 events never passes"));
    assert!(refused(1, 4, "on_sample").contains("there is no context 1"));
    assert!(refused(0, 4, "nothing").contains("has no program nothing"));
    // A program of another kind.
    let text = refused(0, 4, "on_sample_probe");
    assert!(text.contains("pfm_callbacks"), "{text}");
    assert!(published.unplug(0).unwrap_err().to_string().contains("has no call-back"));
    assert_eq!(Reader::new(&published).command(Do::ReadSecond).result, ENOENT);
}

/// Check that what a program can't be attached to is refused with the reason.
#[test]
fn wrong_attachments_are_refused() {
    if !can_account("wrong_attachments_are_refused") {
        return;
    }
    let session = crate::helper::started("page-faults");
    let published = session.publish(&name("attached")).unwrap();
    let programs = &programs(&published)[0];
    let refused = |program: &str, text: &str, period| {
        let program = programs.program(program).unwrap();
        let attached = Attached::new(program, &event(text), &Target::CurrentThread, period, 0);
        attached.unwrap_err().to_string()
    };
    let text = refused("on_sample", "page-faults", 0);
    assert!(text.starts_with("can't attach to page-faults: a period of 0"), "{text}");
    let text = refused("on_sample_tracepoint", WRITES, 10);
    assert!(text.contains("programs run at each hit of a tracepoint or a probe"), "{text}");
    // A program of another kind than the event's.
    let text = refused("on_sample", WRITES, 0);
    assert!(text.contains("attach on_sample (perf_event) to an event"), "{text}");
    let text = refused("on_sample_tracepoint", "context-switches:u", 0);
    assert!(text.starts_with("can't attach to context-switches:u: "), "{text}");
}

/// Check that a CPU's hits call back once a period, whichever task they are of.
#[test]
fn cpus_call_back() {
    if !can_account("cpus_call_back") {
        return;
    }
    let mut session = Session::new(WRITES).unwrap();
    session.load(&Scope::Cpus(vec![0])).unwrap();
    session.start().unwrap();
    let mut published = session.publish(&name("cpu")).unwrap();
    let programs = &programs(&published)[0];
    published.call_back(0, &event(WRITES), 10, programs, "on_sample").unwrap();
    let body = || {
        let mut there = rustix::thread::CpuSet::new();
        there.set(0);
        rustix::thread::sched_setaffinity(None, &there).unwrap();
        Null::open().write(1000);
    };
    // One after the other: since Linux 7 a task that is switched out between a hit and its read reads later.
    std::thread::scope(|scope| (0..2).for_each(|_| scope.spawn(body).join().unwrap()));
    published.unplug(0).unwrap();
    let notes = notes(&mut published);
    // Others may write there, too: each of the CPU's writes counts.
    assert!(notes.len() as u64 * 10 + 10 + published.skipped() > 2000, "{notes:?}");
    assert!(notes.iter().all(|note| (note.context, note.kind, note.result) == (0, 1, 1)));
    // What the kernel skipped has been counted, but not come to the call-back.
    let skipped = published.skipped();
    let beyond = notes.windows(2).map(|pair| (pair[1].value - pair[0].value).checked_sub(10));
    let beyond: u64 = beyond.map(Option::unwrap).sum();
    assert!(beyond <= skipped, "{beyond}, {skipped}: {notes:?}");
}
