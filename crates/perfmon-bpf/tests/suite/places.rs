// guest rows: arm64-6.12, x86_64-6.1
use std::os::fd::AsFd;

use perfmon_bpf::{Errno, Loaded, Loader, Object, TaskFilter, kernel_types};

use crate::helper::{PLACES, allowed, count, each_page_fault, run, touch_fresh_pages, value};

const GETPPID: u64 = if cfg!(target_arch = "x86_64") { 110 } else { 173 };

fn load(name: &str) -> Option<Loaded> {
    let object = Object::parse("places", PLACES).unwrap();
    let pid_offset = kernel_types().ok().and_then(|types| types.offset("task_struct", &["pid"]));
    let loader = Loader::new().set("CALL", GETPPID).set("PID_OFFSET", pid_offset.unwrap_or(0));
    let loaded = allowed(name, loader.load(&object))?;
    let tid = u64::from(run(&loaded, "who", &[])).to_ne_bytes();
    loaded.map("WANTED").unwrap().raw().update(&0u32.to_ne_bytes(), &tid).unwrap();
    Some(loaded)
}

/// Check that each overflow runs each program that is attached, under its own cookie.
#[test]
fn overflows_run_programs_with_cookies() {
    let Some(loaded) = load("overflows_run_programs_with_cookies") else { return };
    let program = loaded.program("on_sample").unwrap();
    let events = [each_page_fault(), each_page_fault()];
    let cookies: [u64; 2] = [7, u64::MAX];
    let links: Vec<_> = events
        .iter()
        .zip(cookies)
        .map(|(event, cookie)| program.attach_event(event, cookie).unwrap())
        .collect();
    events.iter().for_each(|event| perfmon_sys::enable(event).unwrap());
    touch_fresh_pages();
    events.iter().for_each(|event| perfmon_sys::disable(event).unwrap());
    let runs = |cookie: u64| value(&loaded, "RUNS", &cookie.to_ne_bytes());
    let counts = events.each_ref().map(count);
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    assert_eq!(cookies.map(runs), counts.map(Ok));
    assert_eq!(runs(0), Err(Errno::NOENT));
    // Without its link an event goes on and runs nothing.
    drop(links);
    perfmon_sys::enable(&events[0]).unwrap();
    touch_fresh_pages();
    perfmon_sys::disable(&events[0]).unwrap();
    assert!(count(&events[0]) > counts[0]);
    assert_eq!(runs(7), Ok(counts[0]));
    assert!(program.attach().is_err());
}

/// Check that a program on a raw tracepoint sees each system call while it is attached.
#[test]
fn raw_tracepoints_run_programs() {
    let Some(loaded) = load("raw_tracepoints_run_programs") else { return };
    let call = |times: usize| (0..times).for_each(|_| _ = rustix::process::getppid());
    let seen = || value(&loaded, "SEEN", &0u32.to_ne_bytes()).unwrap();
    call(5);
    let link = loaded.program("on_call").unwrap().attach().unwrap();
    call(100);
    assert_eq!(seen(), 100);
    drop(link);
    call(5);
    assert_eq!(seen(), 100);
}

/// Check that a program on a tracepoint with types sees each switch of a thread.
#[test]
fn tracepoints_with_types_run_programs() {
    let Some(loaded) = load("tracepoints_with_types_run_programs") else { return };
    let switches = || -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let lines = text.lines().filter_map(|line| line.split_once("_ctxt_switches:"));
        lines.map(|(_, number)| number.trim().parse::<u64>().unwrap()).sum()
    };
    let seen = || value(&loaded, "SEEN", &1u32.to_ne_bytes()).unwrap();
    let before = switches();
    let link = loaded.program("on_switch").unwrap().attach().unwrap();
    let (attached, first) = (switches(), seen());
    (0..50).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(200)));
    let (last, after) = (switches(), seen());
    let end = switches();
    assert!(last - attached > 0);
    assert!(
        (last - attached..=end - before).contains(&after),
        "{before} {attached} {last} {end}: {first} {after}"
    );
    drop(link);
}

/// Check that an iterator visits the threads of one process, or one thread, or nobody.
#[test]
fn iterators_visit_tasks() {
    let name = "iterators_visit_tasks";
    let Some(loaded) = load(name) else { return };
    let program = loaded.program("on_task").unwrap();
    let barrier = std::sync::Barrier::new(4);
    let (process, threads) = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        let tids = || {
            let entries = std::fs::read_dir("/proc/self/task").unwrap();
            let mut tids: Vec<u32> = entries
                .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
                .collect();
            tids.sort_unstable();
            tids
        };
        // Other tests' threads come and go.
        let found = (0..1000).find_map(|_| {
            let before = tids();
            let written = program.iterate(TaskFilter::Process(std::process::id())).unwrap();
            (before == tids()).then_some((written, before))
        });
        barrier.wait();
        found.unwrap()
    });
    let numbers = |bytes: &[u8]| {
        let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
        let mut numbers: Vec<u32> = words.collect();
        numbers.sort_unstable();
        numbers
    };
    assert!(threads.len() >= 4);
    assert_eq!(numbers(&process), threads);
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    assert_eq!(numbers(&program.iterate(TaskFilter::Thread(own)).unwrap()), [own]);
    let all = numbers(&program.iterate(TaskFilter::All).unwrap());
    assert!(all.contains(&own) && all.len() > threads.len(), "{own}: {all:?}");
    assert_eq!(program.iterate(TaskFilter::Process(0x7fff_fff0)).unwrap(), []);
}

/// Check that a program runs on the CPU that it is asked to, and on none that is not there.
#[test]
fn programs_run_on_a_cpu() {
    let Some(loaded) = load("programs_run_on_a_cpu") else { return };
    let who = loaded.program("who").unwrap();
    assert!(who.run(Some(0), &[]).is_ok());
    assert_eq!(who.run(Some(60_000), &[]).unwrap_err().errno(), Some(Errno::NXIO));
    assert!(who.as_fd().try_clone_to_owned().is_ok());
}

/// Check that a map of arrays in arrays has values of their whole size.
#[test]
fn nested_arrays_are_whole() {
    let Some(loaded) = load("nested_arrays_are_whole") else { return };
    let nested = loaded.map("NESTED").unwrap();
    assert_eq!(nested.spec().value_bytes, 15 * 8);
    assert_eq!(nested.raw().lookup(&0u32.to_ne_bytes(), &mut [1; 15 * 8]), Ok(()));
}
