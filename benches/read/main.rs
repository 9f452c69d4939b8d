//! What reading counters costs in the calling thread, beside the bare system calls on identical events.
//!
//! ```text
//! read [--only read|region|life|start|mapped|switches] [--rounds N] [--ms MILLISECONDS A BATCH]
//! ```

mod mapped;
mod raw;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use common::{Case, Order, machine, number, option, table};
use perf_event::events::Software;
use perf_event::{Builder, Counter, Group};
use perfmon::{Event, Names, Scope, Session};

/// Software events that differ in what they count or where; the first N are read.
const EVENTS: [&str; 16] = [
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "cpu-clock",
    "page-faults:u",
    "minor-faults:u",
    "major-faults:u",
    "page-faults:k",
    "minor-faults:k",
    "major-faults:k",
    "cgroup-switches",
    "minor-faults:uk",
    "major-faults:uk",
];

/// Counts allocations.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Does its operation so many times.
type Operation = Box<dyn FnMut(u64)>;

/// A way to do something. What `prepare` makes lives for one batch only, untimed: no method's events are
/// open while another is timed.
struct Method {
    case: Case,
    prepare: Box<dyn Fn() -> Operation>,
    times: u64,
}

fn method<F: FnMut(u64) + 'static>(name: &str, prepare: impl Fn() -> F + 'static) -> Method {
    Method { case: Case::new(name), prepare: Box::new(move || Box::new(prepare())), times: 1 }
}

fn main() {
    if let Some(way) = option("--start") {
        return println!("{}", start_once(&way));
    }
    println!("{}", machine());
    let only = option("--only");
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    for n in [1, 4, 8, 16] {
        if wanted("read") {
            run(&format!("A read of {n} events"), "ns", 1.0, readers(n));
            allocations(n);
        }
    }
    for n in [4, 16] {
        if wanted("region") {
            run(&format!("A region, {n} events"), "ns", 1.0, regions(n));
        }
    }
    for n in [4, 16] {
        if wanted("life") {
            run(&format!("Open, start, stop, close {n} events"), "us", 1e3, lives(n));
        }
    }
    if wanted("start") {
        starts();
    }
    if let Some(kept) = Some(()).filter(|()| wanted("mapped")).and_then(|()| mapped::kept()) {
        for n in [4, 16] {
            run(&format!("A read of {n} mapped events"), "ns", 1.0, mapped::readers(n));
        }
        drop(kept);
    }
    if wanted("switches") && mapped::kept().is_some() {
        mapped::switches();
    }
}

/// Runs all methods in another order each round, and prints their thread CPU time an operation. The first
/// is the floor.
fn run(title: &str, unit: &str, scale: f64, mut methods: Vec<Method>) {
    let rounds = number("--rounds", 61);
    let batch_ns = number("--ms", 4) as f64 * 1e6;
    for method in &mut methods {
        let mut operation = (method.prepare)();
        loop {
            let ns = timed(&mut operation, method.times);
            if ns > batch_ns / 4.0 {
                method.times = ((method.times as f64 * batch_ns / ns) as u64).max(1);
                break;
            }
            method.times *= 4;
        }
    }
    let mut order = Order::new(7);
    for _ in 0..rounds {
        for place in order.shuffled(methods.len()) {
            let method = &mut methods[place];
            let mut operation = (method.prepare)();
            operation(1);
            let ns = timed(&mut operation, method.times);
            method.case.values.push(ns / method.times as f64 / scale);
        }
    }
    let cases: Vec<Case> = methods.into_iter().map(|method| method.case).collect();
    let floor = cases.first().map(|case| case.name.clone()).unwrap_or_default();
    println!("{}", table(&format!("{title}, {rounds} rounds"), unit, 1, &cases, &[&floor]));
}

/// CPU time of this thread: what else the machine does must not count.
fn timed(operation: &mut Operation, times: u64) -> f64 {
    let before = raw::thread_cpu_ns();
    operation(times);
    (raw::thread_cpu_ns() - before) as f64
}

fn events(n: usize) -> Vec<Event> {
    let events = Names::system().parse(&EVENTS[..n].join(",")).expect("the list is right");
    for event in &events {
        assert!(event.encoding.is_ok(), "{}: {:?}", event.text, event.encoding);
    }
    events
}

fn session(n: usize) -> Session {
    Session::new(&EVENTS[..n].join(",")).expect("the list is right")
}

fn started(n: usize) -> Session {
    let mut session = session(n);
    session.load(&Scope::CurrentThread).expect("events can be opened");
    session.start().expect("events can be started");
    session
}

fn readers(n: usize) -> Vec<Method> {
    vec![
        method("floor: read(2) of the group", move || {
            let group = raw::RawGroup::open(&events(n));
            group.enable();
            move |times| {
                let mut words = [0; 20];
                for _ in 0..times {
                    group.read(black_box(&mut words));
                }
            }
        }),
        method("read(2), each value looked at", move || {
            let group = raw::RawGroup::open(&events(n));
            group.enable();
            move |times| {
                let mut words = [0; 20];
                for _ in 0..times {
                    group.read(black_box(&mut words));
                    for &word in &words[3..3 + n] {
                        black_box(word);
                    }
                }
            }
        }),
        method("Session::read", move || {
            let mut session = started(n);
            move |times| {
                for _ in 0..times {
                    black_box(&mut session).read();
                }
            }
        }),
        method("Session::read, tally of each", move || {
            let mut session = started(n);
            move |times| {
                for _ in 0..times {
                    session.read();
                    for event in 0..n {
                        black_box(session.tally(event));
                    }
                }
            }
        }),
        method("perf-event2 Group::read, value of each", move || {
            let (mut group, counters) = peer(n);
            move |times| {
                for _ in 0..times {
                    let counts = group.read().expect("the group can be read");
                    black_box(counts[group.as_counter()]);
                    for counter in &counters {
                        black_box(counts[counter]);
                    }
                }
            }
        }),
    ]
}

fn regions(n: usize) -> Vec<Method> {
    vec![
        method("floor: two read(2) of the group", move || {
            let group = raw::RawGroup::open(&events(n));
            group.enable();
            move |times| {
                let mut words = [0; 20];
                for _ in 0..2 * times {
                    group.read(black_box(&mut words));
                }
            }
        }),
        method("Session::read twice", move || {
            let mut session = started(n);
            move |times| {
                for _ in 0..2 * times {
                    black_box(&mut session).read();
                }
            }
        }),
        method("Session::region", move || {
            let mut session = started(n);
            move |times| {
                for _ in 0..times {
                    black_box(session.region(|| ()));
                }
            }
        }),
    ]
}

fn lives(n: usize) -> Vec<Method> {
    let raw_life = |events: &[Event]| {
        let group = raw::RawGroup::open(events);
        group.enable();
        group.disable();
    };
    vec![
        method("floor: bare calls, one event of each type kept open", move || {
            let events = events(n);
            let kept = raw::keep_open(&events);
            move |times| {
                black_box(&kept);
                (0..times).for_each(|_| raw_life(&events));
            }
        }),
        method("bare calls", move || {
            let events = events(n);
            move |times| (0..times).for_each(|_| raw_life(&events))
        }),
        method("one Session: load, start, stop, unload", move || {
            let mut session = session(n);
            move |times| {
                for _ in 0..times {
                    session.load(&Scope::CurrentThread).expect("events can be opened");
                    session.start().expect("events can be started");
                    session.stop().expect("events can be stopped");
                    session.unload();
                }
            }
        }),
        method("new Session each time, by name", move || {
            move |times| {
                for _ in 0..times {
                    started(n).stop().expect("events can be stopped");
                }
            }
        }),
        method("perf-event2", move || {
            move |times| {
                for _ in 0..times {
                    let (mut group, _counters) = peer(n);
                    group.disable().expect("events can be stopped");
                }
            }
        }),
    ]
}

/// Says how often a read allocates.
fn allocations(n: usize) {
    let mut session = started(n);
    session.read();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..1000).for_each(|_| session.read());
    let reads = ALLOCATIONS.load(Ordering::Relaxed) - before;
    (0..1000).for_each(|_| drop(session.region(|| ())));
    let regions = ALLOCATIONS.load(Ordering::Relaxed) - before - reads;
    println!("{n} events: {reads} allocations in 1000 reads, {regions} in 1000 regions");
}

/// The time until a library is ready, each in a process of its own.
fn starts() {
    let rounds = number("--rounds", 61);
    let ways = ["bare", "new", "load"];
    let names =
        ["floor: open 4 events", "Session::new of 4 events by name", "Session::new and load"];
    let mut cases = names.map(Case::new);
    let mut order = Order::new(7);
    let own = std::env::current_exe().expect("this program has a path");
    for _ in 0..rounds {
        for place in order.shuffled(ways.len()) {
            let output = Command::new(&own).args(["--start", ways[place]]).output();
            let text =
                String::from_utf8(output.expect("it runs").stdout).expect("it prints a number");
            cases[place].values.push(text.trim().parse().expect("it prints a number"));
        }
    }
    let title = format!("First use in a process (wall time), {rounds} rounds");
    println!("{}", table(&title, "us", 1, &cases, &[names[0]]));
}

/// Microseconds of the first use, this process having done nothing else.
fn start_once(way: &str) -> f64 {
    let events = if way == "bare" { events(4) } else { Vec::new() };
    let began = Instant::now();
    let us = || began.elapsed().as_nanos() as f64 / 1e3;
    match way {
        "bare" => {
            let _group = raw::RawGroup::open(&events);
            us()
        }
        "new" => {
            let _session = session(4);
            us()
        }
        _ => {
            let mut session = session(4);
            session.load(&Scope::CurrentThread).expect("events can be opened");
            us()
        }
    }
}

/// The same events through perf-event2. The first one leads.
fn peer(n: usize) -> (Group, Vec<Counter>) {
    use perf_event::ReadFormat;
    let events = events(n);
    let builder = |event: &Event| {
        let encoding = event.encoding.as_ref().expect("checked");
        let software = match encoding.config {
            0 => Software::CPU_CLOCK,
            1 => Software::TASK_CLOCK,
            2 => Software::PAGE_FAULTS,
            3 => Software::CONTEXT_SWITCHES,
            4 => Software::CPU_MIGRATIONS,
            5 => Software::PAGE_FAULTS_MIN,
            6 => Software::PAGE_FAULTS_MAJ,
            _ => Software::CGROUP_SWITCHES,
        };
        let mut builder = Builder::new(software);
        builder.exclude_kernel(encoding.privilege.exclude_kernel);
        builder.exclude_user(encoding.privilege.exclude_user);
        builder
    };
    let mut leader = builder(&events[0]);
    leader.read_format(
        ReadFormat::GROUP
            | ReadFormat::ID
            | ReadFormat::TOTAL_TIME_ENABLED
            | ReadFormat::TOTAL_TIME_RUNNING,
    );
    let mut group = leader.build_group().expect("the leader can be opened");
    let rest =
        events[1..].iter().map(|event| group.add(&builder(event)).expect("an event can be opened"));
    let counters = rest.collect();
    group.enable().expect("the group can be enabled");
    (group, counters)
}
