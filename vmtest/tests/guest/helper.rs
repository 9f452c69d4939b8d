use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use perfmon::{Counts, Scope, Session};
use perfmon_vmtest::{SPIN_INSTRUCTIONS, spin};
use serde_json::Value;

/// What `cargo xtask vm` says of the guest that the tests run in.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) name: String,
    /// What the kernel's release begins with.
    pub(crate) kernel: String,
    pub(crate) cpus: usize,
    /// Counters for any event, beside the one for cycles; 0 without a PMU.
    pub(crate) counters: usize,
    /// How many bits they have; 0 without a PMU.
    pub(crate) counter_bits: u32,
    /// Instructions are counted to the unit.
    pub(crate) exact: bool,
}

impl Guest {
    /// The guest that this is; `None` on a real machine.
    pub(crate) fn found() -> Option<Self> {
        let text = |name: &str| std::env::var(format!("PERFMON_GUEST{name}")).ok();
        let number = |name: &str| text(name).unwrap().parse().unwrap();
        Some(Self {
            name: text("")?,
            kernel: text("_KERNEL").unwrap(),
            cpus: number("_CPUS"),
            counters: number("_COUNTERS"),
            counter_bits: number("_COUNTER_BITS").try_into().unwrap(),
            exact: number("_EXACT") == 1,
        })
    }

    /// The guest that this is, if it counts instructions to the unit; else says that `name` is skipped.
    pub(crate) fn exact(name: &str) -> Option<Self> {
        let guest = Self::found().filter(|guest| guest.exact);
        if guest.is_none() {
            skipped(name, "needs an emulated PMU (cargo xtask vm)");
        }
        guest
    }
}

/// Says that a test did not run, past libtest's capture.
pub(crate) fn skipped(name: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

/// Whether this machine counts instructions; if not, says that `name` is skipped.
pub(crate) fn counts_instructions(name: &str) -> bool {
    let (_, counts) = perfmon::measure("instructions:u", || ()).unwrap();
    match counts.iter().find_map(|row| row.tally.count.reason()) {
        Some(reason) => skipped(name, reason),
        None => return true,
    }
    false
}

/// Checks a number of instructions: to the unit in an emulated machine, to a thousandth on a real one, whose
/// interrupts leave traces.
#[track_caller]
pub(crate) fn assert_instructions(found: u64, expected: u64) {
    if Guest::found().is_some_and(|guest| guest.exact) {
        assert_eq!(found, expected);
    } else {
        let tolerated = expected / 1000 + 1000;
        assert!(found.abs_diff(expected) <= tolerated, "{found} instead of {expected}");
    }
}

/// The instructions of `iterations` of the loop.
pub(crate) fn of_loop(iterations: u64) -> u64 {
    SPIN_INSTRUCTIONS * iterations
}

/// A started session on the calling thread.
pub(crate) fn started(list: &str) -> Session {
    let mut session = Session::new(list).unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    session
}

/// Counts of a loop in the calling thread.
pub(crate) fn counts_of(session: &mut Session, iterations: u64) -> Counts {
    session.region(|| spin(iterations)).1
}

/// Whether a count is that of a loop in the calling thread: its instructions, and those of the readings around it.
pub(crate) fn is_of_loop(count: u64, iterations: u64) -> bool {
    (of_loop(iterations)..of_loop(iterations) + 100_000).contains(&count)
}

/// `name`, as often as `times`, with commas between.
pub(crate) fn repeated(name: &str, times: usize) -> String {
    vec![name; times].join(",")
}

/// A number for `perfmon-known`: always as many digits, so that they take as many instructions to read.
pub(crate) fn number(iterations: u64) -> String {
    format!("{iterations:010}")
}

/// A program of the workspace, beside the tests' own.
pub(crate) fn program(name: &str) -> String {
    let deps = std::env::current_exe().unwrap();
    let path: PathBuf = deps.parent().and_then(|deps| deps.parent()).unwrap().join(name);
    assert!(path.exists(), "build it: cargo build --workspace ({})", path.display());
    path.into_os_string().into_string().unwrap()
}

/// The result of `pfmon COMMAND --json` with `args`, which must succeed.
pub(crate) fn pfmon(command: &str, args: &[&str]) -> Value {
    let mut pfmon = Command::new(program("pfmon"));
    pfmon.arg(command).arg("--json").args(args).stdin(Stdio::null());
    let output = pfmon.output().unwrap();
    // `stat` leaves standard output to the command.
    let text = if command == "stat" { &output.stderr } else { &output.stdout };
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(text).unwrap()
}

/// The counts of a result of `pfmon stat`, which are exact.
#[track_caller]
pub(crate) fn exact_counts(result: &Value) -> Vec<u64> {
    let rows = result["events"].as_array().unwrap().iter();
    rows.map(|row| {
        assert_eq!(row["state"], "exact", "{result}");
        row["value"].as_u64().unwrap()
    })
    .collect()
}
