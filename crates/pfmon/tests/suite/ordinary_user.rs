// guest rows: arm64-6.12, arm64-no-pmu, x86_64-newest
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::helper::{Directory, Running, Said, json, rows, run, skipped, stat, workload};

/// Nobody's.
const ORDINARY: u32 = 65534;

/// What of the default list needs no core PMU.
const KERNEL: [&str; 4] = ["task-clock", "context-switches", "cpu-migrations", "page-faults"];
const USER: [&str; 4] = ["task-clock", "page-faults:u", "minor-faults:u", "major-faults:u"];

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn paranoid() -> i64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(3)
}

/// `pfmon stat` as an ordinary user, with what it runs; `None` if the user can't be one, with the reason shown.
pub(crate) struct Ordinary {
    directory: Directory,
    pfmon: String,
}

impl Ordinary {
    pub(crate) fn new(name: &str) -> Option<Self> {
        if paranoid() > 2 {
            skipped(name, "this machine allows no perf events to ordinary users");
            return None;
        }
        let directory = Directory::new(name);
        let pfmon = directory.copy(env!("CARGO_BIN_EXE_pfmon"));
        Some(Self { directory, pfmon })
    }

    /// What `pfmon` says with `args`.
    pub(crate) fn ask(&self, args: &[&str]) -> Said {
        Said::by(self.command().args(args).env("XDG_CONFIG_HOME", "/nonexistent"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.pfmon);
        if is_root() {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    fn stat(&self, args: &[&str]) -> Command {
        let mut command = self.command();
        command.args(stat(args).get_args());
        command.current_dir("/").stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        command
    }

    fn json(&self, args: &[&str]) -> Value {
        let (text, status) = run(self.stat(&[&["--json"], args].concat()));
        assert_eq!(status, 0, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// Check what root counts by default.
#[test]
fn default_events_of_root() {
    if !is_root() {
        return skipped("default_events_of_root", "not root");
    }
    let result = json(&["true"]);
    let rows = rows(&result);
    assert!(rows.iter().map(|row| row.0).take(4).eq(KERNEL), "{result}");
    assert_eq!(rows.len(), if perfmon::has_core_pmu() { 8 } else { 4 });
    assert!(rows.iter().take(4).all(|row| row.2 == "exact"), "{result}");
}

/// Check that an ordinary user counts a program of their own in user mode by default, and is told of that.
#[test]
fn default_events_of_an_ordinary_user() {
    let name = "default_events_of_an_ordinary_user";
    let Some(user) = Ordinary::new(name) else { return };
    if paranoid() < 2 {
        return skipped(name, "this machine lets ordinary users count in the kernel");
    }
    let result = user.json(&["true"]);
    let rows = rows(&result);
    assert!(rows.iter().map(|row| row.0).take(4).eq(USER), "{result}");
    assert!(rows.iter().take(4).all(|row| row.2 == "exact"), "{result}");
    assert!(rows[1].3 >= rows[2].3 && rows[2].3 > Some(0), "{result}");
    let note = "default events of user mode only: no privilege to count in the kernel";
    assert!(result["notes"].to_string().contains(note), "{result}");
}

/// Check that an ordinary user's counts are right, too.
#[test]
fn counts_of_an_ordinary_user() {
    const PAGES: u64 = 20_000;
    let Some(user) = Ordinary::new("counts_of_an_ordinary_user") else { return };
    let program = user.directory.copy(workload());
    let faults = |pages: u64| {
        let result = user.json(&["-e", "page-faults:u", &program, "faults", &pages.to_string()]);
        rows(&result)[0].3.unwrap()
    };
    let difference = faults(PAGES) - faults(0);
    assert!(difference.abs_diff(PAGES) <= 24, "{difference}");
}

/// Check that what needs privilege is unsupported with the reason and what to do.
#[test]
fn privilege_is_asked_for() {
    let name = "privilege_is_asked_for";
    let Some(user) = Ordinary::new(name) else { return };
    if paranoid() < 2 {
        return skipped(name, "this machine lets ordinary users count in the kernel");
    }
    let events =
        format!("page-faults,page-faults:u,uprobe:{}:main", user.directory.copy(workload()));
    let result = user.json(&["-e", &events, "true"]);
    let reason = |place: usize| result["events"][place]["reason"].as_str().unwrap_or("none");
    let expected =
        "counting in the kernel needs privilege (EACCES from perf_event_open); append :u to count";
    assert!(reason(0).starts_with(expected), "{result}");
    assert_eq!(reason(1), "none");
    assert!(reason(2).starts_with("uprobes need privilege"), "{result}");
    let result = user.json(&["-a", "-e", "page-faults:u", "true"]);
    let text = result.to_string();
    assert!(text.contains("counting all that runs on a CPU needs privilege"), "{text}");
}

/// Check that an ordinary user is told that a process belongs to somebody else.
#[test]
fn processes_of_others_are_refused() {
    let name = "processes_of_others_are_refused";
    let Some(user) = Ordinary::new(name) else { return };
    if !is_root() {
        return skipped(name, "not root: there is nobody else");
    }
    let team = Running::workload(&["team", "1", "1"]);
    team.wait_for_threads(2);
    let args = ["--time-limit", "50ms", "--strict", "-e", "page-faults:u", "-p", &team.pid()];
    let (text, status) = run(user.stat(&args));
    let expected =
        "the target belongs to somebody else (EACCES from perf_event_open); monitor processes of";
    assert!(text.contains(expected), "{text}");
    assert!([124, 125].contains(&status), "{status}");
}

/// Check that a set-user-ID program, at whose exec the kernel stops counting, is not said to have 0 events.
#[test]
fn a_program_that_gains_rights_is_not_counted() {
    use std::os::unix::fs::PermissionsExt;
    let name = "a_program_that_gains_rights_is_not_counted";
    let Some(user) = Ordinary::new(name) else { return };
    if !is_root() {
        return skipped(name, "only root can make such a program");
    }
    let program = user.directory.copy(workload());
    let result = user.json(&["-e", "page-faults:u", &program, "faults", "100"]);
    assert_eq!(rows(&result)[0].2, "exact", "{result}");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let result = user.json(&["-e", "page-faults:u", &program, "faults", "100"]);
    assert!(matches!(rows(&result)[0], (_, None, "not_counted", None)), "{result}");
    assert!(result["events"][0]["reason"].to_string().contains("gains rights"), "{result}");
    // The same of a descendant, by the CPU time that no event saw.
    let script = format!("{program} spin 50");
    let result = user.json(&["-e", "page-faults:u", "sh", "-c", &format!("{script}; {script}")]);
    assert!(matches!(rows(&result)[0], (_, None, "not_counted", None)), "{result}");
    assert!(result["events"][0]["reason"].to_string().contains("were not seen"), "{result}");
}
