//! Registers as programs in the kernel read them, against work whose faults are known.

use std::sync::Barrier;
use std::sync::mpsc::channel;

use perfmon::{Attached, Scope, Session, Target};

use crate::helper::{Null, can_account, scaled, skipped, started};
use crate::published_helper::{Do, EINVAL, Pages, Reader, calls_of, event, name};

fn own_tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Check that each of two threads' contexts has the thread's own faults, while the other makes more.
#[test]
fn each_thread_reads_its_own_faults() {
    if !can_account("each_thread_reads_its_own_faults") {
        return;
    }
    let (tids, tid) = channel();
    let (ready, both) = (Barrier::new(3), Barrier::new(2));
    let reader = std::sync::OnceLock::<Reader>::new();
    let body = |slot: u32, faults: u64| {
        tids.send(own_tid()).unwrap();
        let mut pages = Pages::new();
        ready.wait();
        ready.wait();
        let reader = reader.get().unwrap();
        reader.command_to(Do::ReadTask, slot);
        let before = reader.command_to(Do::ReadTask, slot);
        both.wait();
        pages.touch(faults);
        both.wait();
        let after = reader.command_to(Do::ReadTask, slot);
        assert_eq!((before.result, after.result), (2, 2));
        [0, 1].map(|pmd| after.pmds[pmd][0] - before.pmds[pmd][0])
    };
    let values = std::thread::scope(|scope| {
        let (body, ready) = (&body, &ready);
        let one = scope.spawn(move || body(0, 2000));
        let two = scope.spawn(move || body(1, 2500));
        ready.wait();
        let threads = vec![tid.recv().unwrap(), tid.recv().unwrap()];
        let mut session = Session::new("page-faults,minor-faults:u").unwrap();
        session.load(&Scope::Threads(threads)).unwrap();
        let published = session.publish(&name("each")).unwrap();
        assert!(reader.set(Reader::new(&published)).is_ok());
        session.start().unwrap();
        ready.wait();
        [one.join().unwrap(), two.join().unwrap()]
    });
    assert_eq!(values, [[2000, 2000], [2500, 2500]]);
}

/// Touches a page; what is probed.
#[inline(never)]
fn touch_one(pages: &mut Pages) {
    std::hint::black_box(pages).touch(1);
}

/// What is probed after a page was touched.
#[inline(never)]
fn touched(pages: &mut Pages) -> u64 {
    std::hint::black_box(pages);
    7
}

/// Check that a probe at each of 5000 calls reads exactly the faults so far, and one at returns as well.
#[test]
fn each_call_reads_the_faults_so_far() {
    if !can_account("each_call_reads_the_faults_so_far") {
        return;
    }
    let calls = u32::try_from(scaled(5000)).unwrap();
    let session = started("page-faults:u");
    let published = session.publish(&name("calls")).unwrap();
    let function: fn(&mut Pages) -> u64 = touched;
    for probe in ["uprobe", "uretprobe"] {
        let reader = Reader::new(&published);
        let attached = reader.attach("read_probe", &calls_of(probe, function as usize), 5);
        let mut pages = Pages::new();
        // The first call writes to pages of its own: code that is probed is copied.
        assert_eq!(touched(&mut pages), 7);
        for _ in 1..calls {
            touch_one(&mut pages);
            assert_eq!(std::hint::black_box(function)(&mut pages), 7);
        }
        drop(attached);
        touched(&mut pages);
        let answer = reader.answer(5);
        assert_eq!((answer.runs, answer.result, answer.cookie), (calls.into(), 1, 5), "{probe}");
        let values = reader.values(calls);
        let first = values[1];
        let expected: Vec<u64> = (0..u64::from(calls) - 1).map(|number| first + number).collect();
        assert_eq!(values[1..], expected, "{probe}");
    }
}

/// Check that programs of all kinds that run here read the same register.
#[test]
fn programs_of_all_kinds_read() {
    let test = "programs_of_all_kinds_read";
    if !can_account(test) {
        return;
    }
    let session = started("page-faults");
    let published = session.publish(&name("kinds")).unwrap();
    let reader = Reader::new(&published);
    let links = ["read_raw", "read_typed"].map(|it| reader.loaded.program(it).unwrap().attach());
    let links = links.map(Result::unwrap);
    let sample = reader.loaded.program("read_sample").unwrap();
    let faults = event("page-faults");
    let sampling = Attached::new(sample, &faults, &Target::CurrentThread, 1, 77).unwrap();
    let mut pages = Pages::new();
    let call = || _ = rustix::process::getppid();
    call();
    let before = [8, 9, 11].map(|slot| reader.answer(slot));
    pages.touch(100);
    let sampled = reader.answer(11);
    call();
    let after = [8, 9, 11].map(|slot| reader.answer(slot));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((after.context, after.result), (0, 1));
        assert_eq!(after.pmds[0][0] - before.pmds[0][0], 100, "{before:?} {after:?}");
    }
    assert_eq!((after[0].runs, after[1].runs), (2, 2));
    assert_eq!((sampled.runs - before[2].runs, sampled.cookie), (100, 77));
    assert_eq!(reader.command(Do::ReadTask).pmds[0][0], sampled.pmds[0][0]);
    drop((links, sampling));

    // Functions of the kernel.
    let mut null = Null::open();
    // Some kernels load what they can't attach.
    match reader.loaded.program("read_function").and_then(perfmon::bpf::Program::attach) {
        Ok(_link) => {
            null.write(10);
            assert_eq!((reader.answer(12).runs, reader.answer(12).result), (10, 1));
        }
        Err(error) => skipped(test, format!("fentry: {error}")),
    }
    let probe = event("kprobe:vfs_write");
    let attached = Attached::new(
        reader.loaded.program("read_probe").unwrap(),
        &probe,
        &Target::CurrentThread,
        0,
        13,
    );
    match attached {
        Ok(_attached) => {
            null.write(10);
            assert_eq!((reader.answer(13).runs, reader.answer(13).result), (10, 1));
        }
        Err(error) => skipped(test, error),
    }
}

/// Check that 64 registers are read at once, that more are refused, and that there is none behind the last.
#[test]
fn up_to_64_registers_are_read() {
    if !can_account("up_to_64_registers_are_read") {
        return;
    }
    let list = |count: usize| vec!["page-faults"; count].join(",");
    let session = started(&list(64));
    let published = session.publish(&name("many")).unwrap();
    let reader = Reader::new(&published);
    let mut pages = Pages::new();
    reader.command(Do::ReadAll);
    let before = reader.command(Do::ReadAll);
    pages.touch(50);
    let after = reader.command(Do::ReadAll);
    assert_eq!((before.result, after.result), (64, 64));
    assert_eq!([0, 1].map(|pmd| after.pmds[pmd][0] - before.pmds[pmd][0]), [50, 50]);
    assert_eq!(reader.command(Do::ReadTask).result, 4);
    let error = started(&list(65)).publish(&name("more")).unwrap_err().to_string();
    assert!(error.contains("has 64 registers at most"), "{error}");
}

/// Check that a context of a CPU is read there, and refuses elsewhere.
#[test]
fn contexts_of_cpus_are_read_on_their_cpu() {
    let test = "contexts_of_cpus_are_read_on_their_cpu";
    if !can_account(test) {
        return;
    }
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    let online: Vec<u32> = (0..64).filter(|&cpu| cpus.is_set(cpu as usize)).collect();
    let [first, second, ..] = online[..] else { return skipped(test, "there is one CPU only") };
    let mut session = Session::new("page-faults,cpu-clock").unwrap();
    session.load(&Scope::Cpus(vec![first, second])).unwrap();
    session.start().unwrap();
    let published = session.publish(&name("cpus")).unwrap();
    let reader = Reader::new(&published);
    let on = |cpu: u32, what: Do| {
        std::thread::scope(|scope| {
            let there = || {
                let mut set = rustix::thread::CpuSet::new();
                set.set(cpu as usize);
                rustix::thread::sched_setaffinity(None, &set).unwrap();
                reader.command(what)
            };
            scope.spawn(there).join().unwrap()
        })
    };
    let answers = [on(first, Do::ReadCpu), on(second, Do::ReadCpu)];
    assert_eq!(answers.map(|it| (it.context, it.result)), [(0, 2), (1, 2)]);
    let again = on(first, Do::ReadCpu);
    assert!(again.pmds[1][0] > answers[0].pmds[1][0], "{again:?} {answers:?}");
    assert_eq!(on(first, Do::ReadFirst).result, 2);
    assert_eq!(on(second, Do::ReadFirst).result, EINVAL);
    let info = on(second, Do::InfoOfFirst);
    assert_eq!((info.result, info.pmds[0]), (0, [3, first.into(), 2]));
}
