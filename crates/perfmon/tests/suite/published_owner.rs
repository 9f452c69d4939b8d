//! Contexts of other processes: found by name, read, and gone with their owner, whatever ends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use perfmon::Found;

use crate::helper::{can_account, skipped, wait_for};
use crate::published_helper::{Do, ENOENT, Reader, name};

fn example() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().and_then(|deps| deps.parent()).unwrap().join("examples/kernel_api");
    assert!(path.exists(), "build it: cargo build -p perfmon --examples");
    path
}

static IN_RUST: &[u8] = include_bytes!("../../../../bpf/objects/faults_per_call.bpf.o");
static IN_C: &[u8] = include_bytes!("../../../../bpf/objects/faults_per_call_c.bpf.o");

/// An object as a file, gone when dropped.
struct ObjectFile(String);

impl ObjectFile {
    fn new(of: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("{}.bpf.o", name(of)));
        std::fs::write(&path, bytes).unwrap();
        Self(path.into_os_string().into_string().unwrap())
    }
}

impl Drop for ObjectFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The example as a process, ended when dropped.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn spawn(args: &[&str]) -> Self {
        let mut command = Command::new(example());
        let mut child =
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), output, child }
    }

    fn publisher(name: &str) -> Self {
        let mut publisher = Self::spawn(&["publish", name]);
        assert_eq!(publisher.line(), "published");
        publisher
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Has it call its function, and gives what it says of that.
    fn call(&mut self, pages: u64) -> Vec<String> {
        writeln!(self.input.as_mut().unwrap(), "{pages}").unwrap();
        std::iter::from_fn(|| Some(self.line()).filter(|line| line != "done")).collect()
    }

    /// Ends its input, and gives what it still prints.
    fn finish(mut self) -> String {
        drop(self.input.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Check that the example counts each call's faults exactly, with its programs in Rust and in C.
#[test]
fn the_example_counts_each_call() {
    if !can_account("the_example_counts_each_call") {
        return;
    }
    let in_c = ObjectFile::new("each-call", IN_C);
    let expected: String = (1..=10).map(|count| format!("function 1: {count} faults\n")).collect();
    for args in [vec![], vec![in_c.0.as_str()]] {
        let output = Command::new(example()).args(&args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}

/// Check that a context is read by programs that another process loads, which it finds by name.
#[test]
fn another_process_reads() {
    if !can_account("another_process_reads") {
        return;
    }
    let name = name("process");
    let mut publisher = Process::publisher(&name);
    assert_eq!(publisher.call(3), [""; 0]);
    for bytes in [IN_RUST, IN_C] {
        let object = ObjectFile::new("reads", bytes);
        let mut watcher = Process::spawn(&["watch", &name, &object.0]);
        let watching = format!("watching thread {}, 1 registers", publisher.child.id());
        assert_eq!(watcher.line(), watching);
        // The first hit may fault in what the kernel needs for probes.
        let first = publisher.call(1).pop().unwrap();
        let first = first.split(' ').nth(2).and_then(|count| count.parse::<u64>().ok()).unwrap();
        assert!((1..=3).contains(&first), "{first}");
        assert_eq!(publisher.call(7), ["function 1: 7 faults"]);
        assert_eq!(publisher.call(0), ["function 1: 0 faults"]);
        assert_eq!(publisher.call(1000), ["function 1: 1000 faults"]);
        let totals = format!("4 calls, {} faults, last error 0\n", 1007 + first);
        assert_eq!(watcher.finish(), totals);
    }
    assert_eq!(publisher.call(5), [""; 0]);
    assert_eq!(publisher.finish(), "");
    assert!(!Found::names().contains(&name));
}

/// Check that a name has one publisher at a time.
#[test]
fn names_have_one_publisher() {
    if !can_account("names_have_one_publisher") {
        return;
    }
    let name = name("one");
    let publisher = Process::publisher(&name);
    let output = Command::new(example()).args(["publish", &name]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("is in use"), "{text}");
    assert!(Found::open(&name).unwrap().info(0).is_some());
    publisher.finish();
    Process::publisher(&name).finish();
}

/// Check that an owner that is killed leaves nothing: no program, map or link, and no name; who still has the maps is told.
#[test]
fn killed_owners_leave_nothing() {
    let test = "killed_owners_leave_nothing";
    if !can_account(test) {
        return;
    }
    crate::helper::alone("published_owner::killed_owners_leave_nothing", leaves_nothing);
}

/// What there is in the kernel: programs, maps, links.
fn ids() -> [Vec<u32>; 3] {
    use perfmon_sys::BpfKind::{Link, Map, Program};
    [Program, Map, Link].map(|kind| perfmon_sys::ids(kind).unwrap())
}

fn leaves_nothing() {
    let name = name("killed");
    let before = ids();
    let publisher = Process::publisher(&name);
    let found = Found::open(&name).unwrap();
    assert!(found.info(0).is_some());
    assert_eq!(Reader::of(&found).command(Do::InfoOfFirst).result, 0);
    let reader = Reader::of(&found);
    // SIGKILL
    drop(publisher);
    wait_for("the events' end", || (reader.command(Do::ReadFirst).result == ENOENT).then_some(()));
    assert_eq!(reader.command(Do::StartFirst).result, ENOENT);
    assert_eq!(reader.command(Do::InfoOfFirst).result, ENOENT);
    assert_eq!(found.info(0), None);
    assert!(!Found::names().contains(&name));
    assert!(Found::open(&name).unwrap_err().to_string().contains("no contexts are published as"));
    assert!(std::fs::symlink_metadata(format!("/run/perfmon/{name}")).is_err());
    drop((reader, found));
    // Other processes may have made some, too.
    let is_left = |before: &[Vec<u32>; 3]| {
        let now = ids();
        let new = before
            .iter()
            .zip(&now)
            .map(|(before, now)| now.iter().filter(|id| !before.contains(id)).count());
        new.sum::<usize>()
    };
    wait_for("the kernel's deferred frees", || (is_left(&before) == 0).then_some(()));
    // A stale name is anybody's.
    Process::publisher(&name).finish();
}

/// Check that an ordinary user is told why nothing can be published, and nothing read.
#[test]
fn ordinary_users_are_told() {
    let test = "ordinary_users_are_told";
    if !can_account(test) {
        return;
    }
    let name = name("ordinary");
    let publisher = Process::publisher(&name);
    let as_nobody = |args: &[&str]| {
        use std::os::unix::process::CommandExt;
        Command::new(example()).args(args).uid(65534).gid(65534).output()
    };
    let Ok(output) = as_nobody(&["publish", "ordinary"]) else {
        return skipped(test, "nobody can't execute the example");
    };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    let why = "run as root, or with CAP_BPF and CAP_PERFMON";
    assert!(text.contains("can't publish ordinary") && text.contains(why), "{text}");
    let output = as_nobody(&["watch", &name]).unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains(&format!("can't open {name}")) && text.contains(why), "{text}");
    publisher.finish();
}

/// Check that the documentation's code is that of the examples.
#[test]
fn the_documented_code_is_the_examples() {
    let sources = [
        include_str!("../../examples/kernel_api.rs"),
        include_str!("../../../../bpf/examples/faults_per_call.rs"),
        include_str!("../../../../bpf/examples/faults_per_call_c.bpf.c"),
    ];
    let document = include_str!("../../../../docs/kernel-api.md");
    let is_quoted = |code: &str| sources.iter().any(|source| source.contains(code));
    let blocks = document.split("\n```").collect::<Vec<_>>();
    let code = |block: &str| {
        let code = block.strip_prefix("rust\n").or_else(|| block.strip_prefix("c\n"))?;
        Some(code.to_owned())
    };
    let code: Vec<String> = blocks.iter().filter_map(|block| code(block)).collect();
    assert_eq!(code.len(), 8);
    for code in code {
        assert!(is_quoted(&code), "{code}");
        assert!(!is_quoted(&code.replacen('=', "==", 1)), "{code}");
    }
}
