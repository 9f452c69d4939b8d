//! Accounting at context switches against the kernel's own counts of the same run.

use std::sync::atomic::{AtomicU32, Ordering};

use perfmon::{Accounting, By, Exit, Inherit, Part, Scope, Session, StartOn, Workload};

use crate::helper::{
    Running, WRITES, can_account, can_count, is_wrong_with_breakpoints, scaled, started, stores_to,
    workload_argv,
};

/// What the kernel counts exactly, however often and wherever tasks are switched.
const EXACT: &str = "page-faults,minor-faults,major-faults,page-faults:u,sched:sched_process_fork,sched:sched_process_exec,\
                     syscalls:sys_enter_write,syscalls:sys_exit_mmap";
/// What depends on when a task's end is: the kernel's own counts end when it takes the task's events away. Where many
/// threads with inherited events end at once they wait for each other at that, and are switched uncounted.
const SWITCHES: &str = "context-switches,cpu-migrations,sched:sched_switch";
/// Some kernels take a task's events away before this, and others after it.
const END: &str = "sched:sched_process_exit";
const CLOCKS: &str = "task-clock,cpu-clock";
/// What a clock may be off by for each time on a CPU, from the kernel's own reading to that of the programs.
const SWITCH_NS: u64 = 20_000;
/// The same for each task: its end, when the kernel has done with its events and it still runs.
const END_NS: u64 = 200_000;

/// Counts `argv` in both ways at once: the kernel's counts and the accounted ones, event by event.
fn both(argv: &[String], list: &str, inherit: Inherit) -> (Session, Session) {
    let mut workload = Workload::spawn(argv, None).unwrap();
    let scope = Scope::Command { pid: workload.pid(), inherit, start_on: StartOn::Exec };
    let mut kernel = Session::new(list).unwrap();
    kernel.load(&scope).unwrap();
    let mut switch = Session::new(list).unwrap();
    switch.set_accounting(Accounting::Switch);
    switch.load(&scope).unwrap();
    workload.release().unwrap();
    assert_eq!(workload.wait().unwrap().exit, Exit::Status(0));
    kernel.read();
    switch.read();
    (kernel, switch)
}

/// Checks all events, but switches only if `tasks_end_alone`.
fn check_equal(argv: &[String], inherit: Inherit, tasks_end_alone: bool) {
    let list = format!("{EXACT},{SWITCHES},{END}");
    let (kernel, switch) = seen(|| both(argv, &list, inherit));
    for (number, event) in kernel.events().iter().enumerate() {
        let (kernel, switch) = (kernel.tally(number).count, switch.tally(number).count);
        let value = kernel.exact().unwrap_or_else(|| panic!("{}: {kernel:?}", event.text));
        if event.text == END || SWITCHES.contains(&event.text) && !tasks_end_alone {
            assert!(
                switch.exact() >= Some(value),
                "{} of {argv:?}: {kernel:?}, {switch:?}",
                event.text
            );
        } else {
            assert_eq!(switch, kernel, "{} of {argv:?}", event.text);
        }
    }
}

/// A run without times on a CPU that began unseen, after a task that the kernel hides: those are not exact.
fn seen(run: impl Fn() -> (Session, Session)) -> (Session, Session) {
    const TRIES: usize = 20;
    let mut runs = (0..TRIES).map(|_| run());
    runs.find(|(_, switch)| switch.audit().unwrap().unseen == 0).expect("a run that is seen")
}

/// Check that accounted counts equal the kernel's own, for threads and processes that follow each other and for many at once.
#[test]
fn accounted_counts_equal_the_kernels() {
    if !can_account("accounted_counts_equal_the_kernels") {
        return;
    }
    let check = |args: &[&str], tasks_end_alone| {
        check_equal(&workload_argv(args), Inherit::Tree, tasks_end_alone);
    };
    let few = |count: u32| if scaled(50) == 50 { count } else { count / 5 }.to_string();
    check(&["writes", "4321"], true);
    check(&["threads", &few(200), "3"], true);
    check(&["faults", "3000"], true);
    check(&["fault-pair", "2000", "2000"], false);
    check(&["crowd", &few(300)], false);
    check(&["forks", &few(60), "1"], true);
    check(&["forks", &few(60), "8"], false);
    check_equal(&workload_argv(&["threads", "20", "3"]), Inherit::None, true);
    let script =
        "for i in $(seq 40); do (ls / | wc -l) >/dev/null & done; wait; exec ls / >/dev/null";
    check_equal(&["sh", "-c", script].map(str::to_owned), Inherit::Tree, false);
}

/// Check that accounted clocks are the kernel's, up to a bound for each time that a task was on a CPU.
#[test]
fn accounted_clocks_are_within_their_bound() {
    if !can_account("accounted_clocks_are_within_their_bound") {
        return;
    }
    let list = format!("{CLOCKS},context-switches,sched:sched_process_fork");
    let (kernel, switch) = both(&workload_argv(&["forks", "60", "8"]), &list, Inherit::Tree);
    let value = |session: &Session, event| session.tally(event).count.exact().unwrap();
    let tasks = value(&kernel, 3) + 1;
    let times_on_cpu = value(&kernel, 2) + tasks;
    for clock in 0..2 {
        let (kernel, switch) = (value(&kernel, clock), value(&switch, clock));
        let bound = scaled_time(times_on_cpu * SWITCH_NS + tasks * END_NS);
        assert!(
            kernel.abs_diff(switch) <= bound,
            "clock {clock}: {kernel} and {switch}, bound {bound}"
        );
    }
}

fn scaled_time(ns: u64) -> u64 {
    if scaled(50) == 50 { ns } else { ns * 50 }
}

/// Check that each of two threads has its own faults, and no other's.
#[test]
fn each_thread_has_its_own() {
    if !can_account("each_thread_has_its_own") {
        return;
    }
    let session = rows(&["fault-pair", "2000", "2500"], "page-faults", By::Thread);
    let parts = session.parts(0, None);
    let mut values: Vec<u64> =
        parts.iter().map(|(_, tally)| tally.count.exact().unwrap()).collect();
    assert_eq!(values.len(), 2, "{parts:?}");
    // Ids start anew at the highest, and then the second thread has the lower one.
    values.sort_unstable();
    // Some faults more are those of a program's and a thread's start.
    assert!((2000..2300).contains(&values[0]), "{values:?}");
    assert!((2500..2600).contains(&values[1]), "{values:?}");
    assert_eq!(values.iter().sum::<u64>(), session.tally(0).count.exact().unwrap());
}

fn rows(args: &[&str], list: &str, by: By) -> Session {
    let mut workload = Workload::spawn(&workload_argv(args), None).unwrap();
    let inherit = Inherit::TreeByThread;
    let scope = Scope::Command { pid: workload.pid(), inherit, start_on: StartOn::Exec };
    let mut session = Session::new(list).unwrap();
    session.set_accounting(Accounting::Switch);
    session.load(&scope).unwrap();
    workload.release().unwrap();
    loop {
        session.drain();
        if let Some(ended) = workload.try_wait().unwrap() {
            assert_eq!(ended.exit, Exit::Status(0));
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    session.read_by(by);
    session
}

/// Check that any number of threads and processes has a row each, exact, with no more descriptors than for one.
#[test]
fn any_number_of_tasks_is_exact() {
    if !can_account("any_number_of_tasks_is_exact") {
        return;
    }
    let threads = scaled(10_000);
    let session = rows(&["crowd", &threads.to_string()], WRITES, By::Thread);
    assert_eq!(session.tally(0).count, perfmon::Count::Exact(threads));
    check_rows(&session, threads);

    // On an emulated machine a process takes longer than that.
    let forks = if scaled(50) == 50 { 50_000 } else { 200 };
    let session = rows(&["forks", &forks.to_string(), "4"], WRITES, By::Process);
    assert_eq!(session.tally(0).count, perfmon::Count::Exact(forks));
    check_rows(&session, forks);
}

/// One row of 0 for the first thread or process, and one of 1 for each other.
fn check_rows(session: &Session, count: u64) {
    let parts = session.parts(0, None);
    let with =
        |value| parts.iter().filter(|(_, tally)| tally.count.exact() == Some(value)).count() as u64;
    // Ids may come again.
    let again: u64 =
        parts.iter().filter_map(|(_, tally)| tally.count.exact()?.checked_sub(1)).sum();
    assert_eq!(with(0), 1);
    assert_eq!(parts.len() as u64 + again, count + 1);
    assert!(parts.iter().all(|(part, _)| *part != Part::Rest));
    assert!(
        !session.notes().iter().any(|note| note.contains("row 'rest'")),
        "{:?}",
        session.notes()
    );
}

/// Check that a running process is followed with the threads that it has and makes, and that stop and start work.
#[test]
fn running_processes_are_followed() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    if !can_account("running_processes_are_followed") {
        return;
    }
    let argv = workload_argv(&["steps", "100", "200"]);
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut session = Session::new(WRITES).unwrap();
    session.set_accounting(Accounting::Switch);
    session.load(&Scope::Processes { pids: vec![child.id()], inherit: Inherit::Tree }).unwrap();
    session.start().unwrap();
    session.read();
    assert_eq!(session.tally(0).count.exact(), Some(0));
    let mut input = child.stdin.take().unwrap();
    input.flush().unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    session.stop().unwrap();
    session.read();
    assert_eq!(session.tally(0).count.exact(), Some(200));
}

/// Check that stopping and starting in the middle of many switches neither misses nor makes up anything.
#[test]
fn stops_and_starts_are_clean() {
    const TIMES: usize = 200;
    if !can_account("stops_and_starts_are_clean") {
        return;
    }
    let mut others: Vec<_> = (0..8).map(|_| Running::spawn(&["storm", "1", "20"])).collect();
    let pids = others.iter().map(|other| other.0.id()).collect();
    let mut session = Session::new(WRITES).unwrap();
    session.set_accounting(Accounting::Switch);
    session.load(&Scope::Processes { pids, inherit: Inherit::TreeByThread }).unwrap();
    for _ in 0..TIMES {
        session.start().unwrap();
        session.read_by(By::Thread);
        std::thread::yield_now();
        session.stop().unwrap();
    }
    others.clear();
    session.read_by(By::Thread);
    assert_eq!(session.tally(0).count, perfmon::Count::Exact(0));
}

/// Check that a breakpoint's hits are accounted to the thread that has them, and not to one that hits it at the same time.
#[test]
fn breakpoints_are_accounted() {
    const STORES: u32 = 3000;
    let name = "breakpoints_are_accounted";
    let word = AtomicU32::new(0);
    let event = stores_to(&word);
    if !can_account(name) || is_wrong_with_breakpoints(name) || !can_count(name, &event) {
        return;
    }
    let mut kernel = started(&event);
    let mut session = Session::new(&event).unwrap();
    session.set_accounting(Accounting::Switch);
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    std::thread::scope(|scope| {
        let store = |times| {
            for number in 0..times {
                word.store(number, Ordering::Relaxed);
                if number % 100 == 0 {
                    std::thread::yield_now();
                }
            }
        };
        scope.spawn(move || store(2 * STORES));
        store(STORES);
    });
    session.stop().unwrap();
    kernel.stop().unwrap();
    session.read();
    kernel.read();
    assert_eq!(kernel.tally(0).count, perfmon::Count::Exact(u64::from(STORES)));
    assert_eq!(session.tally(0).count, perfmon::Count::Exact(u64::from(STORES)));
}

/// Check that targets that are not there, and events whose accounting would differ from the kernel's counts, are refused.
#[test]
fn what_cannot_be_accounted_is_refused() {
    if !can_account("what_cannot_be_accounted_is_refused") {
        return;
    }
    let mut session = Session::new("page-faults").unwrap();
    session.set_accounting(Accounting::Switch);
    let processes = Scope::Processes { pids: vec![4_000_000], inherit: Inherit::Tree };
    let error = session.load(&processes).unwrap_err().to_string();
    assert!(error.contains("there is no process 4000000"), "{error}");
    let error = session.load(&Scope::Threads(vec![4_000_000])).unwrap_err().to_string();
    assert!(error.contains("there is no thread 4000000"), "{error}");
    let error = session.load(&Scope::Cpus(vec![0])).unwrap_err().to_string();
    assert!(error.contains("accounted to tasks, and not to CPUs"), "{error}");

    let mut session = Session::new("page-faults,sched:sched_wakeup,cgroup-switches").unwrap();
    session.set_accounting(Accounting::Switch);
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    session.stop().unwrap();
    session.read();
    assert!(session.tally(0).count.exact().is_some());
    let why = |event| session.tally(event).count.reason().unwrap().to_string();
    assert!(why(1).contains("also counts it for tasks that do not run"), "{}", why(1));
    assert!(why(2).contains("in the middle of a context switch"), "{}", why(2));
}
