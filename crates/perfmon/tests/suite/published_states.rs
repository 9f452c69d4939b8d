//! What published contexts refuse, and that they start and stop by programs.

use perfmon::{Published, Session, SetId};

use crate::helper::{can_account, started};
use crate::published_helper::{Do, EAGAIN, EBUSY, EINVAL, ENOENT, Pages, Reader, name};

/// Check that another thread than the context's can't read it, start it, or keep it from its own.
#[test]
fn other_threads_are_refused() {
    if !can_account("other_threads_are_refused") {
        return;
    }
    let session = started("page-faults,task-clock");
    let published = session.publish(&name("other")).unwrap();
    for reader in Reader::both(&published) {
        refuses_other_threads(&published, &reader);
    }
}

fn refuses_other_threads(published: &Published, reader: &Reader) {
    let elsewhere = |what| {
        std::thread::scope(|scope| scope.spawn(|| reader.command_to(what, 1)).join().unwrap())
    };
    assert_eq!(reader.command(Do::ReadFirst).result, 2);
    assert_eq!(elsewhere(Do::ReadFirst).result, EINVAL);
    let of_task = elsewhere(Do::ReadTask);
    assert_eq!((of_task.context, of_task.result), (ENOENT, ENOENT));
    assert_eq!(elsewhere(Do::StartFirst).result, EINVAL);
    assert_eq!(elsewhere(Do::ReadCpu).result, ENOENT);
    // Also when it is stopped, and its values are at hand.
    assert_eq!(reader.command(Do::Stop).result, 0);
    assert_eq!(elsewhere(Do::ReadFirst).result, EINVAL);
    assert_eq!(elsewhere(Do::StartFirst).result, EINVAL);
    assert_eq!(elsewhere(Do::InfoOfFirst).result, 0);
    assert_eq!(reader.command(Do::ReadTask).result, 2);
    assert!(!published.info(0).unwrap().is_started);
    assert_eq!(reader.command(Do::Start).result, 0);
}

/// Check that a stopped context's values stay, and that it counts on after a start, without what came in between.
#[test]
fn stopped_contexts_are_frozen() {
    if !can_account("stopped_contexts_are_frozen") {
        return;
    }
    let session = started("page-faults,minor-faults");
    for reader in [0, 1] {
        let published = session.publish(&name("frozen")).unwrap();
        freezes(&published, &Reader::both(&published)[reader]);
    }
}

fn freezes(published: &Published, reader: &Reader) {
    let mut pages = Pages::new();
    let read = || {
        let answer = reader.command(Do::ReadTask);
        assert_eq!(answer.result, 2);
        [answer.pmds[0][0], answer.pmds[1][0]]
    };
    read();
    for round in 0..5 {
        let begin = read();
        pages.touch(100);
        assert_eq!(reader.command(Do::Stop).result, 0);
        assert_eq!(read(), begin.map(|value| value + 100));
        pages.touch(1000);
        assert_eq!(reader.command(Do::Stop).result, 0);
        assert_eq!(read(), begin.map(|value| value + 100));
        let info = published.info(0).unwrap();
        assert_eq!((info.is_started, info.generation), (false, 2 * round + 1));
        assert_eq!(reader.command(Do::Start).result, 0);
        pages.touch(10);
        assert_eq!(read(), begin.map(|value| value + 110));
        assert_eq!(reader.command(Do::Start).result, 0);
        assert_eq!(read(), begin.map(|value| value + 110));
        let info = published.info(0).unwrap();
        assert_eq!((info.is_started, info.generation), (true, 2 * round + 2));
    }
    let info = reader.command(Do::Info);
    assert_eq!((info.result, info.pmds[0][0], info.pmds[0][2]), (0, 1, 2));
    assert_eq!(info.pmds[1], [0, 10, 0]);
}

/// Check that a program may not read registers of a set that is not active, nor one that is not there.
#[test]
fn inactive_sets_are_refused() {
    if !can_account("inactive_sets_are_refused") {
        return;
    }
    let session = started("page-faults");
    let published = session.publish(&name("sets")).unwrap();
    for reader in Reader::both(&published) {
        assert_eq!(reader.command(Do::ReadTask).result, 1);
        assert_eq!(reader.command(Do::ReadSecond).result, ENOENT);
        published.set_active_set(0, SetId(1));
        assert_eq!(reader.command(Do::ReadTask).result, EAGAIN);
        assert_eq!(reader.command(Do::Info).pmds[1][0], 1);
        published.set_active_set(0, SetId(0));
        assert_eq!(reader.command(Do::ReadTask).result, 1);
    }
}

/// Check that a program that comes in the middle of a change is told so, as it may not wait.
#[test]
fn contexts_in_change_are_busy() {
    const BUSY_AT: usize = 24;
    if !can_account("contexts_in_change_are_busy") {
        return;
    }
    let session = started("page-faults");
    let published = session.publish(&name("busy")).unwrap();
    for reader in Reader::both(&published) {
        let contexts = reader.loaded.map("pfm_contexts").unwrap().share_memory(true).unwrap();
        let busy = contexts.word(BUSY_AT).unwrap();
        busy.store(1);
        for what in [Do::ReadTask, Do::Start, Do::Stop] {
            assert_eq!(reader.command(what).result, EBUSY, "{what:?}");
        }
        assert_eq!(reader.command(Do::Info).result, 0);
        busy.store(0);
        assert_eq!((reader.command(Do::Stop).result, busy.load()), (0, 0));
        assert_eq!((reader.command(Do::Start).result, busy.load()), (0, 0));
        assert_eq!(reader.command(Do::ReadTask).result, 1);
    }
}

/// Check that a freed context refuses.
#[test]
fn freed_contexts_refuse() {
    if !can_account("freed_contexts_refuse") {
        return;
    }
    let session = started("page-faults");
    let published = session.publish(&name("freed")).unwrap();
    let readers = Reader::both(&published);
    assert_eq!(readers.each_ref().map(|it| it.command(Do::ReadTask).result), [1, 1]);
    drop(published);
    for reader in readers {
        for what in [Do::ReadTask, Do::ReadFirst, Do::Stop, Do::StartFirst, Do::InfoOfFirst] {
            assert_eq!(reader.command(what).result, ENOENT, "{what:?}");
        }
        assert_eq!(reader.command(Do::ReadTask).context, ENOENT);
    }
}

/// Check that registers go on without the session that was published, as its events then do.
#[test]
fn published_registers_outlive_their_session() {
    if !can_account("published_registers_outlive_their_session") {
        return;
    }
    let session = started("page-faults");
    let published = session.publish(&name("outlives")).unwrap();
    drop(session);
    let mut pages = Pages::new();
    for reader in Reader::both(&published) {
        reader.command(Do::ReadTask);
        let before = reader.command(Do::ReadTask);
        pages.touch(100);
        let after = reader.command(Do::ReadTask);
        assert_eq!((after.result, after.pmds[0][0] - before.pmds[0][0]), (1, 100));
    }
}

/// Check that the context of a thread that has ended stays unread, and that its publisher still frees it.
#[test]
fn threads_may_end() {
    if !can_account("threads_may_end") {
        return;
    }
    let (ready, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    let (tids, tid) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tids.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            ready.wait();
            go.wait();
        });
        ready.wait();
        let mut session = Session::new("page-faults").unwrap();
        session.load(&perfmon::Scope::Threads(vec![tid.recv().unwrap()])).unwrap();
        session.start().unwrap();
        let published = session.publish(&name("ended")).unwrap();
        let reader = Reader::new(&published);
        go.wait();
        thread.join().unwrap();
        assert_eq!(reader.command(Do::ReadFirst).result, EINVAL);
        assert!(published.info(0).is_some());
        let error = session.publish(&name("late")).unwrap_err().to_string();
        assert!(error.contains("there is no thread"), "{error}");
    });
}

/// Check that two publishers of one thread don't see each other.
#[test]
fn publishers_are_apart() {
    if !can_account("publishers_are_apart") {
        return;
    }
    let sessions = ["page-faults", "task-clock,page-faults"].map(started);
    let published = [0, 1].map(|it: usize| sessions[it].publish(&name(["a", "b"][it])).unwrap());
    let readers = published.each_ref().map(Reader::new);
    assert_eq!(readers.each_ref().map(|it| it.command(Do::ReadTask).result), [1, 2]);
    assert_eq!(readers[0].command(Do::Stop).result, 0);
    assert_eq!(published.each_ref().map(|it| it.info(0).unwrap().is_started), [false, true]);
    let [first, second] = published;
    drop(first);
    assert_eq!(readers.each_ref().map(|it| it.command(Do::ReadTask).result), [ENOENT, 2]);
    drop(second);
    assert_eq!(readers.each_ref().map(|it| it.command(Do::ReadTask).result), [ENOENT, ENOENT]);
}
