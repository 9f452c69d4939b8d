//! Counts in mapped memory against the kernel's own, of the same thread over the same time.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::Duration;

use perfmon::{Accounting, Encoding, Inherit, Linux, Names, ReadPath, Scope, Session, StartOn};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::helper::{alone, descriptors, scaled, skipped, wait_for, workload_argv};

/// What can be mapped on this machine.
const SCHEDULER: &str = "context-switches,cpu-migrations,task-clock";
const ALL: &str = if cfg!(target_arch = "x86_64") {
    "context-switches,cpu-migrations,page-faults,page-faults:u,page-faults:k,task-clock"
} else {
    SCHEDULER
};
const SWITCHES: usize = 0;
const MIGRATIONS: usize = 1;
const FAULTS: usize = 2;
const USER_FAULTS: usize = 3;
const KERNEL_FAULTS: usize = 4;

fn loaded(list: &str, fast: bool) -> Session {
    let mut session = Session::new(list).unwrap();
    session.set_fast_reads(fast);
    session.load(&Scope::CurrentThread).unwrap();
    session
}

/// Whether the counts can be mapped here; if not, says that `name` is skipped.
fn can_map(name: &str) -> bool {
    let path = loaded(SCHEDULER, true).read_path();
    let can = path == ReadPath::Mapped;
    if !can {
        skipped(name, path);
    }
    can
}

/// Whether page faults can; if not, says so.
fn can_map_faults(name: &str) -> bool {
    if !cfg!(target_arch = "x86_64") {
        skipped(name, "page faults are mapped on x86_64 only");
        return false;
    }
    can_map(name)
}

/// Two sessions for the same events of the calling thread.
struct Pair {
    kernel: Session,
    page: Session,
    before: [Vec<u64>; 2],
}

impl Pair {
    fn started() -> Self {
        let (mut kernel, mut page) = (loaded(ALL, false), loaded(ALL, true));
        assert_eq!(page.read_path(), ReadPath::Mapped);
        kernel.start().unwrap();
        page.start().unwrap();
        let mut pair = Self { kernel, page, before: [Vec::new(), Vec::new()] };
        pair.before = pair.read();
        pair
    }

    fn values(session: &Session) -> Vec<u64> {
        (0..session.events().len()).map(|event| session.reading(event).unwrap().value).collect()
    }

    /// What both say at a moment: nothing but time passes between the kernel's two readings around the page's.
    fn read(&mut self) -> [Vec<u64>; 2] {
        for _ in 0..1000 {
            self.kernel.read();
            let before = Self::values(&self.kernel);
            self.page.read();
            let page = Self::values(&self.page);
            self.kernel.read();
            let after = Self::values(&self.kernel);
            let (_, counts) = before.split_last().unwrap();
            if after.starts_with(counts) {
                return [before, page];
            }
        }
        panic!("the thread is never left alone");
    }

    /// What was counted since the start, by both alike; the last is a clock.
    fn counted(&mut self) -> Vec<u64> {
        self.counted_but_for(0)
    }

    /// As [`counted`](Self::counted), with so much more room for the clock.
    fn counted_but_for(&mut self, apart_ns: u64) -> Vec<u64> {
        let now = self.read();
        let [kernel, page] = [0, 1].map(|side| {
            let pairs = now[side].iter().zip(&self.before[side]);
            pairs.map(|(now, before)| now - before).collect::<Vec<_>>()
        });
        let (kernel_ns, counts) = kernel.split_last().unwrap();
        let (page_ns, page_counts) = page.split_last().unwrap();
        assert_eq!(counts, page_counts, "kernel and page");
        // In each switch the two end some µs apart: what the kernel does for its own events.
        let switch_ns = 20_000 * (1000 / scaled(1000));
        let apart_ns = apart_ns + kernel_ns / 50 + switch_ns * (counts[SWITCHES] + 10);
        assert!(kernel_ns.abs_diff(*page_ns) < apart_ns, "{kernel_ns} and {page_ns} ns");
        kernel
    }
}

/// Touches so many fresh pages, one fault each.
fn touch(pages: usize) {
    let page_bytes = rustix::param::page_size();
    let bytes = pages * page_bytes;
    let file =
        File::from(rustix::fs::memfd_create("fresh", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    file.set_len(bytes as u64).unwrap();
    let memory = perfmon_sys::SharedMemory::map(&file, 0, bytes, true).unwrap();
    for page in 0..pages {
        memory.word(page * page_bytes).unwrap().store(1);
    }
}

/// Has the kernel write to fresh memory: at least 20 faults, even if all its pages are huge.
fn read_into_fresh_pages() {
    // More than any allocator keeps of what was freed, and not filled before.
    const BYTES: usize = 40 << 20;
    let mut area = Vec::with_capacity(BYTES);
    File::open("/dev/zero").unwrap().take(BYTES as u64).read_to_end(&mut area).unwrap();
    std::hint::black_box(area);
}

/// Has the kernel read where nothing is mapped: a name of an event's file.
fn fail_to_read() {
    let Ok(text) = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type") else {
        return;
    };
    let pmu_type = text.trim().parse().unwrap();
    let mut events = Names::system().parse("context-switches").unwrap();
    events[0].encoding = Ok(Encoding { pmu_type, config1: 0x1000, ..Encoding::default() }.into());
    let mut session = Session::with_events(Linux::new(), events).unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    assert!(session.counts().iter().all(|row| row.tally.count.value().is_none()));
}

/// Hands a byte to another thread and waits for its answer, so many times.
fn ping_pong(times: u64) {
    let pipe = || rustix::pipe::pipe().unwrap();
    let (there, back): ((OwnedFd, OwnedFd), (OwnedFd, OwnedFd)) = (pipe(), pipe());
    let (mut from, mut to) = (File::from(there.0), File::from(back.1));
    let answer = std::thread::spawn(move || {
        let mut byte = [0];
        while from.read(&mut byte).unwrap() == 1 {
            to.write_all(&byte).unwrap();
        }
    });
    let (mut to, mut from) = (File::from(there.1), File::from(back.0));
    for _ in 0..times {
        to.write_all(&[1]).unwrap();
        from.read_exact(&mut [0]).unwrap();
    }
    drop(to);
    answer.join().unwrap();
}

/// Check that page faults are the kernel's: in user mode, in the kernel, and those that fail.
#[test]
fn page_faults_are_the_kernels() {
    if !can_map_faults("page_faults_are_the_kernels") {
        return;
    }
    let mut pair = Pair::started();
    touch(2000);
    let counted = pair.counted();
    assert!((2000..2100).contains(&counted[USER_FAULTS]), "{counted:?}");
    read_into_fresh_pages();
    let kernel_faults = pair.counted()[KERNEL_FAULTS];
    assert!(kernel_faults >= 20, "{kernel_faults}");
    for _ in 0..20 {
        fail_to_read();
    }
    let counted = pair.counted();
    assert!(counted[KERNEL_FAULTS] >= kernel_faults + 20, "{counted:?}");
    assert_eq!(counted[FAULTS], counted[USER_FAULTS] + counted[KERNEL_FAULTS]);
}

/// Check that context switches are the kernel's, from sleeps, yields and waits.
#[test]
fn switches_are_the_kernels() {
    if !can_map("switches_are_the_kernels") {
        return;
    }
    let mut pair = Pair::started();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(2));
    }
    // A slow machine has slept enough before it could leave the CPU.
    assert!(pair.counted()[SWITCHES] >= 10);
    for _ in 0..scaled(2000) {
        std::thread::yield_now();
    }
    pair.counted();
    ping_pong(scaled(2000));
    assert!(pair.counted()[SWITCHES] >= 10 + scaled(2000) / 2);
}

/// Check that migrations are the kernel's.
#[test]
fn migrations_are_the_kernels() {
    const NAME: &str = "migrations_are_the_kernels";
    if !can_map(NAME) {
        return;
    }
    let allowed = sched_getaffinity(None).unwrap();
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let [first, second, ..] = cpus[..] else { return skipped(NAME, "there is one CPU") };
    let mut pair = Pair::started();
    for round in 0..200 {
        let mut cpu = CpuSet::new();
        cpu.set(if round % 2 == 0 { first } else { second });
        sched_setaffinity(None, &cpu).unwrap();
    }
    let counted = pair.counted();
    sched_setaffinity(None, &allowed).unwrap();
    assert!(counted[MIGRATIONS] >= 199, "{counted:?}");
    ping_pong(scaled(500));
    pair.counted();
}

/// Check that processes that the thread creates, which execute programs, leave its counts the kernel's.
#[test]
fn children_are_not_counted() {
    if !can_map("children_are_not_counted") {
        return;
    }
    let mut pair = Pair::started();
    for _ in 0..5 {
        let argv = workload_argv(&["writes", "10"]);
        let status = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .stdout(std::process::Stdio::null())
            .status();
        status.unwrap();
        pair.counted();
    }
}

/// Check that each of two threads that run at once has its own counts.
#[test]
fn threads_have_their_own_counts() {
    if !can_map_faults("threads_have_their_own_counts") {
        return;
    }
    let threads = [2000, 4000].map(|pages: u32| {
        std::thread::spawn(move || {
            let mut pair = Pair::started();
            touch(pages as usize);
            let faults = pair.counted()[USER_FAULTS];
            let least = u64::from(pages);
            assert!((least..least + 100).contains(&faults), "{faults} of {pages}");
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Check that what threads counted up to their end is the kernel's, read by another thread, and that their slots are
/// used again.
#[test]
fn ended_threads_leave_the_kernels_counts() {
    if !can_map("ended_threads_leave_the_kernels_counts") {
        return;
    }
    for _ in 0..scaled(200) {
        let (give, take) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let pair = Pair::started();
            touch(3);
            std::thread::sleep(Duration::from_micros(1));
            give.send(pair).unwrap();
        });
        let mut pair = take.recv().unwrap();
        thread.join().unwrap();
        // A joined thread is still on its way out.
        wait_for("the thread's end", || {
            let before = pair.kernel.snapshot();
            std::thread::sleep(Duration::from_micros(200));
            pair.kernel.read();
            pair.page.read();
            let is_readable = pair.page.tally(SWITCHES).count.value().is_some();
            (is_readable && pair.kernel.snapshot() == before).then_some(())
        });
        assert_eq!(pair.page.read_path(), ReadPath::Mapped);
        // The page's clock goes on while the kernel clears up after the thread.
        pair.counted_but_for(100_000_000);
    }
}

/// Sleeps until this thread has left the CPU so often: a slow machine may have slept enough before it does.
fn leave_the_cpu(times: u64) {
    let left = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let end = left() + times;
    while left() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Check that a session counts nothing while it is stopped, and goes on where it stopped.
#[test]
fn stopped_sessions_stand_still() {
    if !can_map("stopped_sessions_stand_still") {
        return;
    }
    let sleep = leave_the_cpu;
    let switches = |session: &mut Session| {
        session.read();
        session.reading(SWITCHES).unwrap().value
    };
    let mut page = loaded(ALL, true);
    sleep(10);
    assert_eq!(switches(&mut page), 0);
    page.start().unwrap();
    sleep(10);
    page.stop().unwrap();
    let first = switches(&mut page);
    assert!((10..1000).contains(&first), "{first}");
    sleep(10);
    assert_eq!(switches(&mut page), first);
    page.start().unwrap();
    page.start().unwrap();
    sleep(10);
    let second = switches(&mut page);
    assert!((first + 10..first + 1000).contains(&second), "{first} and {second}");
    let mut kernel = loaded(ALL, false);
    kernel.start().unwrap();
    assert_eq!(kernel.read_path().to_string(), "by system call: fast reads were not asked for");
}

/// Check that values read without the clock are those of a full reading, and allocate nothing.
#[test]
fn values_are_those_of_readings() {
    if !can_map("values_are_those_of_readings") {
        return;
    }
    const LIST: &str = "context-switches,cpu-migrations,context-switches";
    let mut session = loaded(LIST, true);
    session.start().unwrap();
    std::thread::sleep(Duration::from_micros(200));
    let mut values = [0; 3];
    let equal = (0..1000).any(|_| {
        let mut before = [0; 3];
        assert!(session.read_values(&mut before));
        session.read();
        assert!(session.read_values(&mut values));
        before == values && Pair::values(&session) == values
    });
    assert!(equal && values[0] > 0 && values[0] == values[2], "{values:?}");
    let info = allocation_counter::measure(|| {
        for _ in 0..100 {
            session.read();
            session.read_values(&mut values);
        }
    });
    assert_eq!(info.count_total, 0);
    assert!(!session.read_values(&mut [0; 2]));
    assert!(!loaded(LIST, false).read_values(&mut values));
}

/// Check that a thousand sessions leave neither descriptors nor slots behind: one more thread than there are slots.
#[test]
fn sessions_leave_nothing_behind() {
    if !can_map("sessions_leave_nothing_behind") {
        return;
    }
    alone("mapped::sessions_leave_nothing_behind", || {
        let before = descriptors();
        drop(loaded(ALL, true));
        assert_eq!(descriptors(), before);
        let first = loaded(ALL, true);
        let with_programs = descriptors();
        for _ in 0..scaled(1100) {
            let one = loaded(ALL, true);
            assert_eq!(one.read_path(), ReadPath::Mapped);
            let session = std::thread::spawn(|| loaded(ALL, true)).join().unwrap();
            assert_eq!(session.read_path(), ReadPath::Mapped);
        }
        assert_eq!(descriptors(), with_programs);
        drop(first);
        assert_eq!(descriptors(), before);
    });
}

/// Check that what can't be mapped is read as usual, with the reason.
#[test]
fn what_is_not_mapped_says_why() {
    let why = |list: &str, scope: &Scope| {
        let mut session = Session::new(list).unwrap();
        session.set_fast_reads(true);
        session.load(scope).unwrap();
        let ReadPath::Group { why } = session.read_path() else { panic!("{list} is mapped") };
        assert!(!session.read_values(&mut vec![0; session.events().len()]));
        why
    };
    let here = Scope::CurrentThread;
    let inexact = "no program sees it exactly as the kernel counts it";
    assert_eq!(why("minor-faults:u", &here), format!("event 1: {inexact}"));
    assert_eq!(why("task-clock,cpu-clock", &here), format!("event 2: {inexact}"));
    let modifiers = "event 1: it has modifiers that the page does not know";
    assert_eq!(why("page-faults:uD", &here), modifiers);
    if !cfg!(target_arch = "x86_64") {
        assert!(why("page-faults:u", &here).contains("x86_64"));
    }
    let pid = std::process::id();
    let command = Scope::Command { pid, inherit: Inherit::None, start_on: StartOn::Call };
    let elsewhere = "only the calling thread's own counts are in memory";
    assert_eq!(why("task-clock", &command), elsewhere);
    let mut session = Session::new("task-clock").unwrap();
    assert_eq!(session.read_path(), ReadPath::Group { why: "nothing is loaded".into() });
    session.set_fast_reads(true);
    session.set_accounting(Accounting::Switch);
    if session.load(&here).is_ok() {
        assert_eq!(session.read_path(), ReadPath::Group { why: elsewhere.into() });
    }
}
