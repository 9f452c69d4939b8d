use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Says that a test did not run, past libtest's capture.
pub(crate) fn skipped(name: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

const VARIABLE: &str = "PERFMON_TEST_ALONE";

fn is_alone(name: &str) -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == name)
}

/// This program again, to run the test `name` and no other.
fn again(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--test-threads", "1", "--nocapture"]).env(VARIABLE, name);
    command
}

/// Runs `body` in a process in which no other test runs: descriptors and limits are those of a process.
/// `name` is the test's full name.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    if is_alone(name) {
        return body();
    }
    let status = again(name).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{name}: {status}");
}

/// A process of ours with sleeping threads; it ends when dropped.
pub(crate) struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Kept open: the test's own end prints, too.
    _stdout: BufReader<ChildStdout>,
}

impl Target {
    /// Starts one with `threads` threads beside its own; `name` is the test that calls
    /// [`be_target`](Self::be_target).
    pub(crate) fn start(name: &str, threads: u32) -> Self {
        let mut command = again(name);
        command.env("PERFMON_TEST_THREADS", threads.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        assert!(stdout.by_ref().lines().any(|line| line.unwrap() == "ready"));
        Self { child, stdin, _stdout: stdout }
    }

    /// In the process of a target: is one, until its standard input ends. Elsewhere: does nothing.
    pub(crate) fn be_target(name: &str) {
        if !is_alone(name) {
            return;
        }
        let threads: usize = std::env::var("PERFMON_TEST_THREADS").unwrap().parse().unwrap();
        let barrier = std::sync::Barrier::new(threads + 1);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    barrier.wait();
                    barrier.wait();
                });
            }
            barrier.wait();
            println!("\nready");
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            barrier.wait();
        });
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends its standard input, and waits until it has ended.
    pub(crate) fn finish(&mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }

    /// Its threads, in increasing order.
    pub(crate) fn tids(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut tids: Vec<u32> =
            entries.map(|entry| name(entry).to_str().unwrap().parse().unwrap()).collect();
        tids.sort_unstable();
        tids
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
