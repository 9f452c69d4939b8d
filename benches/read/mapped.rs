//! Reads from mapped memory, and what keeping it costs at context switches.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::mpsc;
use std::time::Instant;

use common::{Case, Order, number, table};
use perfmon::{Names, ReadPath, Scope, Session};

use crate::{Method, method, raw};

const WITH_CLOCK: [&str; 6] = [
    "task-clock",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "page-faults:u",
    "page-faults:k",
];

/// `n` of the events that can be mapped, over and over.
fn list(n: usize, with_clock: bool) -> String {
    let events = if with_clock { &WITH_CLOCK[..] } else { &WITH_CLOCK[1..] };
    events.iter().copied().cycle().take(n).collect::<Vec<_>>().join(",")
}

/// A started session of `list`; mapped if that is possible.
fn started(list: &str, fast: bool) -> Session {
    let mut session = Session::new(list).expect("the list is right");
    session.set_fast_reads(fast);
    session.load(&Scope::CurrentThread).expect("events can be opened");
    session.start().expect("events can be started");
    session
}

/// A session that keeps the programs loaded, if counts can be mapped here.
pub fn kept() -> Option<Session> {
    let session = started(&list(4, true), true);
    let path = session.read_path();
    if path != ReadPath::Mapped {
        println!("not measured: {path}");
        return None;
    }
    Some(session)
}

fn clock_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// 16 words behind a sequence word.
static WORDS: [AtomicU64; 17] = [const { AtomicU64::new(0) }; 17];

fn load_words(values: &mut [u64], meanwhile: impl Fn()) {
    let [sequence, words @ ..] = &WORDS;
    loop {
        let before = sequence.load(Ordering::Acquire);
        for (value, word) in values.iter_mut().zip(words) {
            *value = word.load(Ordering::Relaxed);
        }
        meanwhile();
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && sequence.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

pub fn readers(n: usize) -> Vec<Method> {
    let values = move |with_clock: bool| {
        move || {
            let session = started(&list(n, with_clock), true);
            move |times| {
                let mut values = [0; 16];
                for _ in 0..times {
                    assert!(black_box(&session).read_values(black_box(&mut values[..n])));
                }
            }
        }
    };
    let sessions = move |fast: bool| {
        move || {
            let mut session = started(&list(n, true), fast);
            move |times| {
                for _ in 0..times {
                    black_box(&mut session).read();
                }
            }
        }
    };
    vec![
        method("floor: a clock read and words under a sequence word", move || {
            move |times| {
                let mut values = [0; 16];
                for _ in 0..times {
                    load_words(black_box(&mut values[..n]), || {
                        black_box(clock_ns());
                    });
                }
            }
        }),
        method("only the words", move || {
            move |times| {
                let mut values = [0; 16];
                for _ in 0..times {
                    load_words(black_box(&mut values[..n]), || ());
                }
            }
        }),
        method("only the clock", || {
            |times| {
                for _ in 0..times {
                    black_box(clock_ns());
                }
            }
        }),
        method("Session::read_values, with task-clock", values(true)),
        method("Session::read_values, without", values(false)),
        method("Session::read, mapped", sessions(true)),
        method("Session::read, group", sessions(false)),
        method("read(2) of the group", move || {
            let events = Names::system().parse(&list(n, true)).expect("the list is right");
            let group = raw::RawGroup::open(&events);
            group.enable();
            move |times| {
                let mut words = [0; 20];
                for _ in 0..times {
                    group.read(black_box(&mut words));
                }
            }
        }),
    ]
}

fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: the kernel just gave them to us.
    ends.map(|end| unsafe { File::from_raw_fd(end) }).into()
}

fn bind_to_a_cpu() {
    // SAFETY: all zeros is an empty set.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpus` is a set.
    unsafe { libc::CPU_SET(1, &mut cpus) };
    // SAFETY: `cpus` is readable for its size. Where there is no such CPU, nothing changes.
    unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), &raw const cpus) };
}

/// A session of another thread, until the sender is dropped.
fn watched_elsewhere() -> mpsc::Sender<()> {
    let (stop, stopped) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        let session = started(&list(4, true), true);
        ready.send(()).expect("somebody waits");
        let _ = stopped.recv();
        drop(session);
    });
    is_ready.recv().expect("the thread gets there");
    stop
}

/// What is there during a batch of round trips.
type Around = fn() -> Box<dyn std::any::Any>;

/// A process on the same CPU that answers each byte; ended when dropped.
struct Peer {
    pid: libc::pid_t,
    to: File,
    from: File,
}

impl Peer {
    fn fork() -> Self {
        let ((mut there, to), (from, mut back)) = (pipe(), pipe());
        // SAFETY: this process has no other threads now, and the child never returns from here.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let mut byte = [0];
            while there.read(&mut byte).is_ok() && back.write(&byte).is_ok() {}
            // SAFETY: ends the child without running exit handlers.
            unsafe { libc::_exit(0) };
        }
        assert!(pid > 0, "fork: {}", std::io::Error::last_os_error());
        Self { pid, to, from }
    }

    fn round_trips(&mut self, times: u64) {
        for _ in 0..times {
            self.to.write_all(&[0]).expect("somebody reads");
            self.from.read_exact(&mut [0]).expect("somebody writes");
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: the child is ours and was not waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: no status is wanted.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// Wall time of a byte to a process on the same CPU and back: two context switches or more.
pub fn switches() {
    bind_to_a_cpu();
    let mut peer = Peer::fork();
    let ways: [(&str, Around); 4] = [
        ("floor: nothing", || Box::new(())),
        ("mapped, 4 events", || Box::new(started(&list(4, true), true))),
        ("mapped, another thread's", || Box::new(watched_elsewhere())),
        ("perf events, 4", || {
            let events = Names::system().parse(&list(4, true)).expect("the list is right");
            let group = raw::RawGroup::open(&events);
            group.enable();
            Box::new(group)
        }),
    ];
    let rounds = number("--rounds", 61);
    let times = 500 * number("--ms", 4) as u64;
    let mut cases = ways.map(|(name, _)| Case::new(name));
    let mut order = Order::new(7);
    for _ in 0..rounds {
        for place in order.shuffled(ways.len()) {
            let around = (ways[place].1)();
            peer.round_trips(100);
            let began = Instant::now();
            peer.round_trips(times);
            cases[place].values.push(began.elapsed().as_nanos() as f64 / times as f64);
            drop(around);
        }
    }
    let title = format!("A round trip through pipes (wall time), {rounds} rounds");
    println!("{}", table(&title, "ns", 0, &cases, &["floor: nothing"]));
}
