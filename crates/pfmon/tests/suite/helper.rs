use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Counts writes to files.
pub(crate) const WRITES: &str = "syscalls:sys_enter_write";

/// How much work to do where `count` is fine on a real machine: an emulated one takes some fifty times as long.
pub(crate) fn scaled(count: u64) -> u64 {
    if is_guest() { (count / 50).max(1) } else { count }
}

/// Whether this is an emulated machine (`cargo xtask vm`).
fn is_guest() -> bool {
    std::env::var_os("PERFMON_GUEST").is_some()
}

/// Says that a test did not run, past libtest's capture.
pub(crate) fn skipped(name: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

/// Whether `list` can be counted here; if not, says that `name` is skipped.
pub(crate) fn can_count(name: &str, list: &str) -> bool {
    let (_, counts) = perfmon::measure(list, || ()).unwrap();
    match counts.iter().find_map(|row| row.tally.count.reason()) {
        Some(reason) => skipped(name, reason),
        None => return true,
    }
    false
}

/// `pfmon stat` with `args`.
pub(crate) fn stat<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pfmon"));
    command
        .arg("stat")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// What `command` wrote to standard error, and its exit status.
pub(crate) fn run(mut command: Command) -> (String, i32) {
    let Output { status, stderr, .. } = command.spawn().unwrap().wait_with_output().unwrap();
    (String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

/// What a command said.
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) status: i32,
}

impl Said {
    pub(crate) fn by(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        Self {
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
            status: status.code().unwrap(),
        }
    }

    /// Its only line, which is JSON.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{}{}", self.out, self.err);
        serde_json::from_str(&self.out).unwrap()
    }
}

/// `pfmon` with `args`, and with no files of the user's own.
pub(crate) fn ask<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pfmon"));
    Said::by(command.args(args).env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null()))
}

/// `pfmon` with `args`, in the tree of another machine.
pub(crate) fn ask_on(machine: &str, args: &[&str]) -> Said {
    let tree = |name: &str| format!("{MACHINES}/{machine}/{name}");
    let options = [format!("--sysfs={}", tree("sys")), format!("--proc={}", tree("proc"))];
    // Not every tree has both.
    let options = options.iter().filter(|it| Path::new(it.split_once('=').unwrap().1).exists());
    ask(args.iter().map(|it| it.to_string()).chain(options.cloned()))
}

/// Trees of other machines.
pub(crate) const MACHINES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../perfmon-events/tests/fixtures/machines");

/// A PMU description.
pub(crate) const EXAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/example.toml");

fn schema(command: &str) -> jsonschema::Validator {
    let path = format!("{}/../../docs/pfmon.{command}-1.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Checks that `result` fits the JSON Schema of `pfmon COMMAND`, and no longer does without one of its fields.
pub(crate) fn check_schema(command: &str, result: &Value) {
    if is_guest() {
        // It takes ten seconds there, and the host does it.
        return;
    }
    let schema = schema(command);
    let errors: Vec<String> = schema
        .iter_errors(result)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{result}");
    for field in result.as_object().unwrap().keys() {
        let mut spoilt = result.clone();
        spoilt.as_object_mut().unwrap().remove(field);
        assert!(!schema.is_valid(&spoilt), "without {field}");
    }
    let mut spoilt = result.clone();
    spoilt["schema"] = format!("pfmon.{command}/2").into();
    assert!(!schema.is_valid(&spoilt), "another version");
}

/// Checks that `result` no longer fits the schema of `pfmon COMMAND` once `pointer` is `value`.
pub(crate) fn check_spoilt(command: &str, result: &Value, pointer: &str, value: Value) {
    if is_guest() {
        return;
    }
    let schema = schema(command);
    let mut spoilt = result.clone();
    *spoilt.pointer_mut(pointer).unwrap() = value.clone();
    assert!(!schema.is_valid(&spoilt), "{pointer} as {value}");
}

/// The result of `pfmon stat --json` with `args`, and the exit status.
pub(crate) fn json_and_status(args: &[&str]) -> (Value, i32) {
    let (text, status) = run(stat(["--json"].iter().chain(args)));
    (serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")), status)
}

/// The result of `pfmon stat --json` with `args`, which must succeed.
pub(crate) fn json(args: &[&str]) -> Value {
    let (value, status) = json_and_status(args);
    assert_eq!(status, 0, "{value}");
    value
}

/// The events of a result: event, scope, state, value.
pub(crate) fn rows(result: &Value) -> Vec<(&str, Option<&str>, &str, Option<u64>)> {
    let events = result["events"].as_array().unwrap().iter();
    events
        .map(|row| {
            let text = |name: &str| row[name].as_str();
            (text("event").unwrap(), text("scope"), text("state").unwrap(), row["value"].as_u64())
        })
        .collect()
}

/// The exact count of the only event of a result.
pub(crate) fn only(result: &Value) -> u64 {
    match rows(result)[..] {
        [(_, None, "exact", Some(value))] => value,
        _ => panic!("{result}"),
    }
}

/// The exact count of writes of a command.
pub(crate) fn writes_of(args: &[&str]) -> u64 {
    only(&json(&[&["-e", WRITES], args].concat()))
}

/// Whether threads that end leave a record of their counts: kernels from 5.13 to some before 6.18 leave none.
pub(crate) fn leaves_records() -> bool {
    let result = json(&["--per-thread", "-e", WRITES, workload(), "threads", "1", "1"]);
    rows(&result).iter().any(|row| row.1 != Some("rest"))
}

/// The workload program (crates/pfmon/examples/workload.rs).
pub(crate) fn workload() -> &'static str {
    static PATH: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PATH.get_or_init(|| {
        let directory = Path::new(env!("CARGO_BIN_EXE_pfmon")).parent().unwrap();
        let path = directory.join("examples/workload");
        assert!(path.exists(), "build it: cargo build -p pfmon --examples");
        path.into_os_string().into_string().unwrap()
    })
}

/// A directory that anyone may read, removed when dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("pfmon-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).into_os_string().into_string().unwrap()
    }

    /// Copies `program` into it, to be run by anyone.
    pub(crate) fn copy(&self, program: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(Path::new(program).file_name().unwrap().to_str().unwrap());
        // By another process: a file that this one has open for writing while a test forks can't be executed.
        assert!(Command::new("cp").args([program, &path]).status().unwrap().success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until `done` gives a value.
pub(crate) fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program that goes on when its standard input ends; killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stderr: Option<BufReader<std::process::ChildStderr>>,
    stdout: Option<BufReader<std::process::ChildStdout>>,
}

impl Running {
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stderr = child.stderr.take().map(BufReader::new);
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child, stdin, stderr, stdout }
    }

    /// The workload program with `args`.
    pub(crate) fn workload(args: &[&str]) -> Self {
        let mut command = Command::new(workload());
        command.args(args);
        Self::spawn(command)
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn tids(&self) -> Vec<String> {
        let directory = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        directory.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Waits until it has `count` threads.
    pub(crate) fn wait_for_threads(&self, count: usize) -> Vec<String> {
        wait_for("the workload", || Some(self.tids()).filter(|tids| tids.len() >= count))
    }

    /// Ends its standard input.
    pub(crate) fn go(&mut self) {
        drop(self.stdin.take());
    }

    pub(crate) fn signal(&self, signal: perfmon::Signal) {
        perfmon::send_signal(self.child.id().cast_signed(), signal).unwrap();
    }

    /// The next line of standard error; `None` at its end.
    pub(crate) fn error_line(&mut self) -> Option<String> {
        line(self.stderr.as_mut().unwrap())
    }

    /// The next line of standard output; `None` at its end.
    pub(crate) fn output_line(&mut self) -> Option<String> {
        line(self.stdout.as_mut().unwrap())
    }

    /// The rest of standard error and the exit status, once it has ended.
    pub(crate) fn end(mut self) -> (String, i32) {
        let mut text = String::new();
        while let Some(line) = self.error_line() {
            text += &line;
        }
        (text, self.child.wait().unwrap().code().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (from.read_line(&mut line).unwrap() > 0).then_some(line)
}
