//! What programs in the kernel cost: reads of counters there, accounting at context switches, probes.
//!
//! ```text
//! kernel [--only reads|switches|probes] [--rounds N]
//! ```

use std::fs::File;
use std::io::{Read, Write};
use std::time::Instant;

use common::{Case, Order, machine, number, option, table};
use perfmon::bpf::{Link, Loaded, Loader, Object};
use perfmon::{Accounting, Inherit, Published, Scope, Session};

static COSTS: &[u8] = include_bytes!("../../bpf/objects/costs.bpf.o");

/// Eight software events; the first N are used.
const EVENTS: [&str; 8] = [
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "page-faults:u",
    "minor-faults:u",
    "task-clock",
];
const READS_A_RUN: u32 = 1000;
const RUNS: u32 = 40;
const ROUND_TRIPS: u32 = 20_000;
const CALLS: u32 = 200_000;

fn main() {
    let only = option("--only");
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let rounds = number("--rounds", 21);
    println!("{}", machine());
    if wanted("reads") {
        reads(rounds);
    }
    if wanted("switches") {
        switches(rounds);
    }
    if wanted("probes") {
        probes(rounds);
    }
}

/// Runs all cases in another order each round.
fn measure(names: &[&str], rounds: usize, mut run: impl FnMut(usize) -> f64) -> Vec<Case> {
    let mut cases: Vec<Case> = names.iter().map(|name| Case::new(*name)).collect();
    let mut order = Order::new(7);
    for _ in 0..rounds {
        for case in order.shuffled(names.len()) {
            cases[case].values.push(run(case));
        }
    }
    cases
}

fn own_session(events: usize) -> Session {
    let mut session = Session::new(&EVENTS[..events].join(",")).expect("software events");
    session.load(&Scope::CurrentThread).expect("the calling thread can be counted");
    session.start().expect("it can be started");
    session
}

fn publish(session: &Session) -> (Published, Loaded) {
    let name = format!("bench-{}", std::process::id());
    let published = session.publish(&name).expect("publishing takes root");
    let object = Object::parse("costs", COSTS).expect("the object is good");
    let loader = Loader::new().set("ROUNDS", READS_A_RUN);
    let loaded = published.share(loader).load(&object).expect("the kernel takes it");
    (published, loaded)
}

/// Nanoseconds a counter: in the kernel, and by the session's read.
fn reads(rounds: usize) {
    let mut session = own_session(8);
    let (_published, loaded) = publish(&session);
    let names = ["kernel, 1 counter", "kernel, 4", "kernel, 8", "Session::read, 8"];
    let programs = ["reads_1", "reads_4", "reads_8"]
        .map(|name| loaded.program(name).expect("the object has it"));
    let cases = measure(&names, rounds, |case| {
        let begin = Instant::now();
        let reads = match programs.get(case) {
            Some(program) => {
                for _ in 0..RUNS {
                    let done = program.run(None, &[]).expect("it can be run");
                    assert_eq!(done, READS_A_RUN, "all reads succeed");
                }
                RUNS * READS_A_RUN * [1, 4, 8][case]
            }
            None => {
                (0..READS_A_RUN).for_each(|_| session.read());
                READS_A_RUN * 8
            }
        };
        begin.elapsed().as_nanos() as f64 / f64::from(reads)
    });
    print!("{}", table("reads", "ns a counter", 1, &cases, &["kernel, 1 counter"]));
}

/// Two threads on one CPU that wake each other by pipes.
struct PingPong {
    to: File,
    from: File,
    tid: u32,
}

impl PingPong {
    fn start() -> Self {
        let pipe = || {
            let (reader, writer) = std::io::pipe().expect("there are pipes");
            let file = |fd: std::os::fd::OwnedFd| File::from(fd);
            (file(reader.into()), file(writer.into()))
        };
        let ((mut orders, to), (from, mut answers)) = (pipe(), pipe());
        pin();
        std::thread::spawn(move || {
            let tid = gettid();
            answers.write_all(&tid.to_ne_bytes()).expect("the other end reads");
            let mut byte = [0];
            while orders.read_exact(&mut byte).is_ok() {
                answers.write_all(&byte).expect("the other end reads");
            }
        });
        let mut ping_pong = Self { to, from, tid: 0 };
        let mut tid = [0; 4];
        ping_pong.from.read_exact(&mut tid).expect("it answers");
        ping_pong.tid = u32::from_ne_bytes(tid);
        ping_pong
    }

    /// Nanoseconds a round trip: two switches.
    fn round_trip_ns(&mut self) -> f64 {
        let begin = Instant::now();
        let mut byte = [1];
        for _ in 0..ROUND_TRIPS {
            self.to.write_all(&byte).expect("it reads");
            self.from.read_exact(&mut byte).expect("it answers");
        }
        begin.elapsed().as_nanos() as f64 / f64::from(ROUND_TRIPS)
    }
}

fn gettid() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Binds this thread, and those that it makes, to CPU 0.
fn pin() {
    // SAFETY: all zeros is an empty set.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is inside the set.
    unsafe { libc::CPU_SET(0, &mut cpus) };
    // SAFETY: the set lives across the call and has that size.
    unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), &cpus) };
}

/// A round trip with both threads counted in one way or the other, or another process.
fn switches(rounds: usize) {
    let names = [
        "nothing counted",
        "accounted, 1 event",
        "accounted, 4",
        "accounted, 8",
        "events of the threads, 1",
        "events of the threads, 4",
        "events of the threads, 8",
        "another process accounted, 4",
    ];
    let mut ping_pong = PingPong::start();
    let mut other = std::process::Command::new("sleep").arg("3600").spawn().expect("sleep runs");
    let tids = vec![gettid(), ping_pong.tid];
    let cases = measure(&names, rounds, |case| {
        let events = [0, 1, 4, 8, 1, 4, 8, 4][case];
        if events == 0 {
            return ping_pong.round_trip_ns();
        }
        let mut session = Session::new(&EVENTS[..events].join(",")).expect("software events");
        let scope = if case == 7 {
            Scope::Processes { pids: vec![other.id()], inherit: Inherit::Tree }
        } else {
            Scope::Threads(tids.clone())
        };
        if !(4..7).contains(&case) {
            session.set_accounting(Accounting::Switch);
        }
        session.load(&scope).expect("counting takes root");
        session.start().expect("it can be started");
        ping_pong.round_trip_ns()
    });
    other.kill().and_then(|()| other.wait()).expect("sleep can be ended");
    print!("{}", table("a pipe's round trip", "ns", 0, &cases, &["nothing counted"]));
}

/// A system call with a program on it that reads so many counters.
fn probes(rounds: usize) {
    let names = ["no program", "empty program", "1 counter read", "4", "8"];
    let session = own_session(8);
    let (_published, loaded) = publish(&session);
    let programs = ["call_empty", "call_1", "call_4", "call_8"];
    let cases = measure(&names, rounds, |case| {
        let attach = |name: &&str| -> Link {
            loaded.program(name).and_then(|it| it.attach()).expect("it can be attached")
        };
        let _link = case.checked_sub(1).and_then(|place| programs.get(place)).map(attach);
        let begin = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: no preconditions.
            unsafe { libc::getppid() };
        }
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    });
    print!("{}", table("a system call", "ns", 0, &cases, &["no program", "empty program"]));
}
