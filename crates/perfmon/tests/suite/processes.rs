use std::time::Duration;

use perfmon::{Part, Scope, Session};

use crate::helper::{Running, WRITES, alone, can_count, descriptors, scaled, wait_for};

/// What a storm's session counted, and what it must have: the session is loaded while threads make threads, and
/// started once `ready` says so.
fn storm(ready: impl Fn(&Running)) -> (Option<u64>, Option<u64>) {
    const WRITES_EACH: u64 = 7;
    let storm = Running::spawn(&["storm", &WRITES_EACH.to_string(), &scaled(3000).to_string()]);
    storm.wait_for_threads(20);
    let mut session = storm.load(WRITES).unwrap();
    assert_eq!(session.notes(), [] as [&str; 0]);
    ready(&storm);
    session.start().unwrap();
    let threads: u64 = storm.finish().trim().parse().unwrap();
    session.read();
    // One more write says how many threads there were.
    (session.tally(0).count.exact(), Some(threads * WRITES_EACH + 1))
}

/// Check that attaching to a process that makes threads all the time misses none and counts none twice.
#[test]
fn a_storm_of_threads_is_attached_to_exactly() {
    if !can_count("a_storm_of_threads_is_attached_to_exactly", WRITES) {
        return;
    }
    for round in 0..scaled(5) {
        let (found, expected) = storm(|storm| {
            // All of them, and the makers and the main thread: then it makes no more.
            storm.wait_for_threads(usize::try_from(scaled(3000)).unwrap() + 3);
        });
        assert_eq!(found, expected, "round {round}");
    }
}

/// Check that starting while threads make threads misses none of them.
#[test]
fn a_storm_of_threads_is_started_exactly() {
    if !can_count("a_storm_of_threads_is_started_exactly", WRITES) {
        return;
    }
    for round in 0..scaled(5) {
        let (found, expected) = storm(|_| ());
        assert_eq!(found, expected, "round {round}");
    }
}

/// Check that the rows of a process's threads are theirs, and add up to the whole.
#[test]
fn threads_have_rows_of_their_own() {
    if !can_count("threads_have_rows_of_their_own", WRITES) {
        return;
    }
    let team = Running::spawn(&["team", "4", "10"]);
    let pid = team.pid();
    let tids = team.wait_for_threads(5);
    let mut session = team.load(WRITES).unwrap();
    session.start().unwrap();
    team.finish();
    session.read();
    let parts = session.parts(0, None);
    assert_eq!(parts.len(), 5);
    let of = |tid: u32| {
        let row = parts.iter().find(|(part, _)| *part == Part::Thread(tid));
        row.unwrap().1.count.exact().unwrap()
    };
    let mut rows: Vec<u64> = tids.iter().map(|&tid| of(tid)).collect();
    rows.sort_unstable();
    assert_eq!(rows, [0, 10, 20, 30, 40]);
    assert_eq!(of(pid), 0, "the main thread writes nothing");
    assert_eq!(session.tally(0).count.exact(), Some(100));
}

/// Check that single threads are counted without the others, also once they have ended.
#[test]
fn single_threads_are_counted_alone() {
    if !can_count("single_threads_are_counted_alone", WRITES) {
        return;
    }
    let team = Running::spawn(&["team", "4", "10"]);
    let mut tids = team.wait_for_threads(5);
    tids.sort_unstable();
    let (first, rest) = tids.split_at(2);
    let sessions = [first, rest].map(|tids| {
        let mut session = Session::new(WRITES).unwrap();
        session.load(&Scope::Threads(tids.to_vec())).unwrap();
        session.start().unwrap();
        session
    });
    team.finish();
    let counts = sessions.map(|mut session| {
        session.read();
        session.tally(0).count.exact().unwrap()
    });
    assert_eq!(counts.iter().sum::<u64>(), 100);
    // The main thread and one of the four.
    assert!([10, 20, 30, 40].contains(&counts[0]), "{counts:?}");
}

/// Check that threads that come and go while a group is read spoil no read, and that no count goes back.
#[test]
fn reads_survive_threads_that_end() {
    const GROUP: &str = "{syscalls:sys_enter_write,syscalls:sys_exit_write}";
    if !can_count("reads_survive_threads_that_end", GROUP) {
        return;
    }
    let threads = scaled(500);
    let mut running = Running::spawn(&["threads-later", &threads.to_string(), "3"]);
    let mut session = running.load(GROUP).unwrap();
    session.start().unwrap();
    running.go();
    let mut last = 0;
    let status = wait_for("the workload", || {
        session.read();
        let tally = session.tally(0);
        let writes = tally.count.exact().unwrap_or_else(|| panic!("{tally:?}"));
        assert!(writes >= last, "{writes} after {last}");
        last = writes;
        running.0.try_wait().unwrap()
    });
    assert!(status.success());
    session.read();
    for event in 0..2 {
        assert_eq!(session.tally(event).count.exact(), Some(3 * threads));
    }
}

/// Check that a process that dies while it is attached to gives a session or a clear refusal, and that no
/// descriptor is left over.
#[test]
fn processes_may_die_while_attached_to() {
    alone("processes::processes_may_die_while_attached_to", || {
        let attach = |delay: Duration| {
            let mut team = Running::spawn(&["team", "4", "1"]);
            let (pid, stdin) = (team.pid(), team.0.stdin.take());
            let killer = std::thread::spawn(move || {
                std::thread::sleep(delay);
                drop(stdin);
                perfmon::send_signal(pid.cast_signed(), perfmon::Signal::KILL).unwrap();
            });
            match team.load("page-faults:u,task-clock") {
                Ok(mut session) => {
                    session.start().unwrap();
                    session.read();
                }
                Err(error) => {
                    let text = error.to_string();
                    let expected = format!(
                        "can't monitor process {pid}, all threads and all that they create: "
                    );
                    assert!(text.starts_with(&expected), "{text}");
                    assert!(
                        text.contains("no running process") || text.contains("has ended"),
                        "{text}"
                    );
                }
            }
            killer.join().unwrap();
        };
        // One disabled event of each software event stays open from then on.
        perfmon::measure("page-faults:u,task-clock", || ()).unwrap();
        let before = descriptors();
        let mut random = 0x9e37_79b9_u32;
        for _ in 0..scaled(50) {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            attach(Duration::from_micros(u64::from(random % 3000)));
        }
        assert_eq!(descriptors(), before);
    });
}

/// Check that a thousand sleeping threads are all attached to.
#[test]
fn a_thousand_threads_are_attached_to() {
    if !can_count("a_thousand_threads_are_attached_to", WRITES) {
        return;
    }
    let threads = scaled(1000);
    let team = Running::spawn(&["team", &threads.to_string(), "1"]);
    let all = usize::try_from(threads).unwrap() + 1;
    team.wait_for_threads(all);
    let mut session = team.load(WRITES).unwrap();
    assert_eq!(session.parts(0, None).len(), all);
    session.start().unwrap();
    team.finish();
    session.read();
    assert_eq!(session.tally(0).count.exact(), Some(threads * (threads + 1) / 2));
}

/// Check that ids without a process or thread are refused by name.
#[test]
fn what_does_not_run_is_refused() {
    let mut session = Session::new("task-clock").unwrap();
    let none = 4_000_000_000;
    let scope = Scope::Processes { pids: vec![none], inherit: perfmon::Inherit::Tree };
    let text = session.load(&scope).unwrap_err().to_string();
    assert_eq!(
        text,
        "can't monitor process 4000000000, all threads and all that they create: there is no running process \
         4000000000; name a process that is running (ps -e)"
    );
    let text = session.load(&Scope::Threads(vec![none])).unwrap_err().to_string();
    assert_eq!(text, "can't monitor thread 4000000000: there is no thread 4000000000");
}
