use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use perfmon::{Error, Inherit, Scope, Session};

/// Counts one-byte writes to files.
pub(crate) const WRITES: &str = "syscalls:sys_enter_write";

/// How much work to do where `count` is fine on a real machine: an emulated one takes some fifty times as long.
pub(crate) fn scaled(count: u64) -> u64 {
    if std::env::var_os("PERFMON_GUEST").is_some() { (count / 50).max(1) } else { count }
}

/// Says that a test did not run, past libtest's capture.
pub(crate) fn skipped(name: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

/// Whether `list` can be counted in the calling thread; if not, says that `name` is skipped.
pub(crate) fn can_count(name: &str, list: &str) -> bool {
    let (_, counts) = perfmon::measure(list, || ()).unwrap();
    match counts.iter().find_map(|row| row.tally.count.reason()) {
        Some(reason) => skipped(name, reason),
        None => return true,
    }
    false
}

/// Whether programs in the kernel may account here; if not, says that `name` is skipped.
pub(crate) fn can_account(name: &str) -> bool {
    let mut session = Session::new(WRITES).unwrap();
    session.set_accounting(perfmon::Accounting::Switch);
    let loaded = session.load(&Scope::CurrentThread);
    loaded.as_ref().err().inspect(|error| skipped(name, error));
    loaded.is_ok() && can_count(name, WRITES)
}

/// The workload program with arguments.
pub(crate) fn workload_argv(args: &[&str]) -> Vec<String> {
    let program = workload_path().into_os_string().into_string().unwrap();
    std::iter::once(program).chain(args.iter().map(|&arg| arg.to_owned())).collect()
}

/// Whether this is a guest whose emulation counts several breakpoints at once wrongly: QEMU's of x86_64 counts a hit
/// of one for others, too. If so, says that `name` is skipped.
pub(crate) fn is_wrong_with_breakpoints(name: &str) -> bool {
    let is_wrong = cfg!(target_arch = "x86_64") && std::env::var_os("PERFMON_GUEST").is_some();
    if is_wrong {
        skipped(name, "QEMU counts several breakpoints at once wrongly");
    }
    is_wrong
}

/// A started session on the calling thread.
pub(crate) fn started(list: &str) -> Session {
    let mut session = Session::new(list).unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    session
}

/// The event of the stores to `word`.
pub(crate) fn stores_to(word: &AtomicU32) -> String {
    format!("mem:{:#x}/4:w:u", std::ptr::from_ref(word).addr())
}

/// Where one-byte writes go.
pub(crate) struct Null(File);

impl Null {
    pub(crate) fn open() -> Self {
        Self(File::create("/dev/null").unwrap())
    }

    /// Does `count` writes.
    pub(crate) fn write(&mut self, count: u64) {
        for _ in 0..count {
            self.0.write_all(&[0]).unwrap();
        }
    }
}

/// More than any allocator keeps of what was freed: the pages are always fresh.
const FRESH_BYTES: usize = 40 << 20;

/// Touches fresh pages, and says how many.
pub(crate) fn touch_fresh_pages() -> u64 {
    let page_bytes = rustix::param::page_size();
    let mut memory = vec![0_u8; FRESH_BYTES];
    for page in memory.chunks_mut(page_bytes) {
        page[0] = 1;
    }
    std::hint::black_box(memory);
    (FRESH_BYTES / page_bytes) as u64
}

/// Runs `body` in a process in which no other test runs: descriptors and limits are those of a process.
/// `name` is the test's full name.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    const VARIABLE: &str = "PERFMON_TEST_ALONE";
    if std::env::var_os(VARIABLE).is_some_and(|value| value == name) {
        return body();
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads", "1", "--nocapture"])
        .env(VARIABLE, name)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{name}: {status}");
}

/// How many descriptors this process has.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until `done` gives a value.
pub(crate) fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The workload program (crates/pfmon/examples/workload.rs).
pub(crate) fn workload_path() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().and_then(|deps| deps.parent()).unwrap();
    let path = path.join("examples/perfmon-workload");
    assert!(path.exists(), "build it: cargo build -p perfmon --examples");
    path
}

/// A running workload, ended when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn spawn(args: &[&str]) -> Self {
        let mut command = Command::new(workload_path());
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The threads that it has now.
    pub(crate) fn tids(&self) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{}/task", self.pid())) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok())
            .collect()
    }

    /// Waits until it has at least `count` threads.
    pub(crate) fn wait_for_threads(&self, count: usize) -> Vec<u32> {
        wait_for("the workload", || Some(self.tids()).filter(|tids| tids.len() >= count))
    }

    /// Ends its standard input.
    pub(crate) fn go(&mut self) {
        drop(self.0.stdin.take());
    }

    /// Ends its standard input, and gives what it printed once it has ended.
    pub(crate) fn finish(mut self) -> String {
        use std::io::Read;
        self.go();
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success());
        text
    }

    /// A session on all that it does, loaded but not started.
    pub(crate) fn load(&self, list: &str) -> Result<Session, Error> {
        let mut session = Session::new(list).unwrap();
        let scope = Scope::Processes { pids: vec![self.pid()], inherit: Inherit::Tree };
        session.load(&scope).map(|()| session)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
