//! Programs whose events are known beforehand, for the tests: `workload NAME [ARG]…`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, disable_transparent_huge_pages, sched_setaffinity};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map(String::as_str);
    let number = |place: usize| args.get(place).and_then(|text| text.parse().ok()).unwrap_or(0);
    match name {
        // N one-byte writes to /dev/null.
        Some("writes") => writes(number(1)),
        // First writes to N fresh pages.
        Some("faults") => faults(number(1)),
        // N threads one after the other, each with K writes.
        Some("threads") => threads(number(1), number(2)),
        // The same, when standard input ends.
        Some("threads-later") => {
            wait_for_end_of_input();
            threads(number(1), number(2));
        }
        // N writes, then one of the line "ready" to standard output, then K writes when standard input ends.
        Some("steps") => {
            writes(number(1));
            println!("ready");
            wait_for_end_of_input();
            writes(number(2));
        }
        // N threads at once, thread i with i × K writes, that begin when standard input ends.
        Some("team") => team(number(1), number(2)),
        // N threads at once, each with one write once all are there.
        Some("crowd") => crowd(number(1)),
        // N processes one after the other, each with one write; as many at once as the second number says.
        Some("forks") => forks(number(1), number(2)),
        // Two threads at once: one with N first writes to fresh pages, one with K.
        Some("fault-pair") => fault_pair(number(1), number(2)),
        // Threads that make threads, N at most, until standard input ends; each thread then does K writes.
        // Prints how many there were, with one write.
        Some("storm") => storm(number(1), number(2)),
        // Uses the CPU for N ms.
        Some("spin") => spin(Duration::from_millis(number(1))),
        // Becomes the program behind the number, bound to CPU N.
        Some("pin") => return pin(number(1), std::env::args_os().skip(3).collect()),
        // Exits with status N.
        Some("exit") => return u8::try_from(number(1)).unwrap_or(255).into(),
        _ => return 2.into(),
    }
    ExitCode::SUCCESS
}

fn writes(count: u64) {
    let mut null = File::create("/dev/null").expect("/dev/null can be written");
    for _ in 0..count {
        null.write_all(&[0]).expect("/dev/null takes bytes");
    }
}

fn threads(count: u64, writes_each: u64) {
    for _ in 0..count {
        let _ = thread::spawn(move || writes(writes_each)).join();
    }
}

fn faults(pages: u64) {
    // A fault would bring in many pages at once.
    let _ = disable_transparent_huge_pages(true);
    let page_bytes = rustix::param::page_size();
    let mut memory = vec![0_u8; usize::try_from(pages).unwrap_or(0) * page_bytes];
    for page in memory.chunks_mut(page_bytes) {
        page[0] = 1;
    }
    std::hint::black_box(memory);
}

fn crowd(threads: u64) {
    const STACK_BYTES: usize = 64 << 10;
    let barrier = Arc::new(Barrier::new(usize::try_from(threads).unwrap_or(0)));
    let member = |_| {
        let barrier = Arc::clone(&barrier);
        let body = move || {
            barrier.wait();
            writes(1);
        };
        thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(body)
            .expect("there is room for a thread")
    };
    let handles: Vec<_> = (0..threads).map(member).collect();
    handles.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
}

fn forks(count: u64, at_once: u64) {
    let mut running = std::collections::VecDeque::new();
    for _ in 0..count {
        if running.len() as u64 >= at_once {
            wait_for(running.pop_front());
        }
        let program = std::env::current_exe().expect("a program knows its path");
        let child = Command::new(program).args(["writes", "1"]).spawn();
        running.push_back(child.expect("there is room for a process"));
    }
    running.into_iter().for_each(|child| wait_for(Some(child)));
}

fn wait_for(child: Option<std::process::Child>) {
    if let Some(mut child) = child {
        child.wait().expect("a child can be waited for");
    }
}

fn fault_pair(first: u64, second: u64) {
    let other = thread::spawn(move || faults(second));
    faults(first);
    other.join().expect("no thread panics");
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {}
}

fn pin(cpu: u64, argv: Vec<OsString>) -> ExitCode {
    let mut cpus = CpuSet::new();
    cpus.set(usize::try_from(cpu).expect("a CPU's number is small"));
    let pinned = sched_setaffinity(None, &cpus);
    let (Ok(()), Some((program, args))) = (pinned, argv.split_first()) else { return 2.into() };
    let error = Command::new(program).args(args).exec();
    eprintln!("{error}");
    2.into()
}

fn wait_for_end_of_input() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn team(threads: u64, writes_each: u64) {
    let barrier = Arc::new(Barrier::new(usize::try_from(threads).unwrap_or(0) + 1));
    let handles: Vec<_> = (1..=threads)
        .map(|number| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                barrier.wait();
                writes(number * writes_each);
            })
        })
        .collect();
    wait_for_end_of_input();
    barrier.wait();
    handles.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
}

/// Whether the gate is open, and how many threads were made.
type Gate = Arc<(Mutex<(bool, u64)>, Condvar)>;

fn storm(writes_each: u64, threads_max: u64) {
    let gate: Gate = Arc::default();
    let makers: Vec<_> = (0..2)
        .map(|_| {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                let mut handles = Vec::new();
                while count_one(&gate, threads_max) {
                    let gate = Arc::clone(&gate);
                    handles.push(thread::spawn(move || member(&gate, writes_each)));
                }
                handles.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
            })
        })
        .collect();
    wait_for_end_of_input();
    gate.0.lock().expect("no thread panics").0 = true;
    gate.1.notify_all();
    makers.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
    println!("{}", gate.0.lock().expect("no thread panics").1);
}

/// Counts one more thread, unless the gate is open or there are enough.
fn count_one(gate: &Gate, most: u64) -> bool {
    loop {
        let mut state = gate.0.lock().expect("no thread panics");
        if state.0 {
            return false;
        }
        if state.1 < most {
            state.1 += 1;
            return true;
        }
        drop(state);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Every fourth thread makes one more; all wait for the gate and then do their writes.
fn member(gate: &Gate, writes_each: u64) {
    let child = gate.0.lock().expect("no thread panics").1.is_multiple_of(4);
    let child = (child && count_one(gate, u64::MAX)).then(|| {
        let gate = Arc::clone(gate);
        thread::spawn(move || wait_and_write(&gate, writes_each))
    });
    wait_and_write(gate, writes_each);
    child.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
}

fn wait_and_write(gate: &Gate, writes_each: u64) {
    let mut state = gate.0.lock().expect("no thread panics");
    while !state.0 {
        state = gate.1.wait(state).expect("no thread panics");
    }
    drop(state);
    writes(writes_each);
}
