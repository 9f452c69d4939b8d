//! What `pfmon stat` costs: beside the bare command, the least that counting it can cost, and `perf stat`.
//!
//! ```text
//! stat [--only true|forks|interval] [--rounds N] [--pfmon FILE]
//! ```

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Case, Order, machine, median, number, option, ratios, spread, table};

const EVENTS: &str = "task-clock,page-faults,context-switches,cpu-migrations";
const FORKS: &str = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done";

/// The programs that are compared.
struct Programs {
    spawn: PathBuf,
    pfmon: PathBuf,
    perf: Option<PathBuf>,
}

/// What one run of a command used.
struct Used {
    wall_ns: f64,
    cpu_ns: f64,
    peak_kib: f64,
}

/// A command with what its runs used, round by round.
struct Run {
    argv: Vec<OsString>,
    wall: Case,
    cpu: Case,
    peak: Case,
}

fn main() {
    let programs = Programs::build();
    println!("{}", machine());
    match &programs.perf {
        Some(perf) => println!("{}", version(perf)),
        None => println!("perf is not installed: its rows are missing"),
    }
    println!("{}", version(&programs.pfmon));
    let only = option("--only");
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if wanted("true") {
        stat_true(&programs);
    }
    if wanted("forks") {
        stat_forks(&programs);
    }
    if wanted("interval") {
        stat_interval(&programs);
    }
}

fn stat_true(programs: &Programs) {
    let rounds = number("--rounds", 201);
    let mut runs = vec![
        Run::new("bare", ["true"]),
        programs.floor("floor: fork, exec, wait", "0", &["true"]),
        programs.floor("floor with 4 events", "4", &["true"]),
        programs.pfmon("pfmon stat, 4 events", &["-e", EVENTS], &["true"]),
        programs.pfmon("pfmon stat", &[], &["true"]),
        Run::new("pfmon --version", [programs.pfmon.as_os_str(), "--version".as_ref()]),
    ];
    runs.extend(programs.perf("perf stat, 4 events", &["-e", EVENTS], &["true"]));
    runs.extend(programs.perf("perf stat", &[], &["true"]));
    programs.rounds(&mut runs, rounds);
    let references = ["floor with 4 events", "pfmon stat, 4 events"];
    print_all("`stat true`", rounds, &runs, &references);
}

fn stat_forks(programs: &Programs) {
    let rounds = number("--rounds", 41);
    let command = ["sh", "-c", FORKS];
    let mut runs = vec![
        Run::new("bare", command),
        programs.floor("floor with 4 events", "4", &command),
        programs.pfmon("pfmon stat, 4 events", &["-e", EVENTS], &command),
    ];
    runs.extend(programs.perf("perf stat, 4 events", &["-e", EVENTS], &command));
    programs.rounds(&mut runs, rounds);
    print_all("A shell that runs 300 commands", rounds, &runs, &["bare", "floor with 4 events"]);
}

fn stat_interval(programs: &Programs) {
    let rounds = number("--rounds", 11);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).min(64).to_string();
    let command = ["sleep", "2"];
    let spawn = programs.spawn.to_str().unwrap_or_default();
    let options: [&[&str]; 3] = [&["-a"], &["-a", "-I", "10"], &["-a", "-A", "-I", "10"]];
    let mut runs = vec![
        Run::new("floor, 1 interval", [spawn, "interval", "2000000", "1", &cpus]),
        Run::new("floor, 200 intervals", [spawn, "interval", "10000", "200", &cpus]),
    ];
    for options in options {
        let options = [options, &["-e", EVENTS]].concat();
        runs.push(programs.pfmon(&format!("pfmon stat {}", options.join(" ")), &options, &command));
    }
    for options in options {
        let options = [options, &["-e", EVENTS]].concat();
        runs.extend(programs.perf(&format!("perf stat {}", options.join(" ")), &options, &command));
    }
    programs.rounds(&mut runs, rounds);
    let cpu: Vec<Case> = runs.iter().map(|run| run.cpu.copy()).collect();
    println!("{}", table("CPU time of 2 s system-wide", "ms", 2, &cpu, &[]));

    println!("CPU time an interval (with intervals less without, over 200), us; {rounds} rounds\n");
    println!("| case | us | floor's share |\n| --- | --- | --- |");
    let interval = |with: usize, without: usize| -> Vec<f64> {
        let pairs = cpu[with].values.iter().zip(&cpu[without].values);
        pairs.map(|(with, without)| (with - without) / 200.0 * 1e3).collect()
    };
    let floor = interval(1, 0);
    let show = |name: &str, values: &[f64]| {
        println!("| {name} | {} | {} |", spread(values, 1), spread(&ratios(values, &floor), 2));
    };
    show("floor", &floor);
    let pfmon = [interval(3, 2), interval(4, 2)];
    show("pfmon stat -I 10", &pfmon[0]);
    show("pfmon stat -A -I 10", &pfmon[1]);
    if programs.perf.is_some() {
        let perf = [interval(6, 5), interval(7, 5)];
        show("perf stat -I 10", &perf[0]);
        show("perf stat -A -I 10", &perf[1]);
        for (what, perf, pfmon) in [("", &perf[0], &pfmon[0]), ("-A ", &perf[1], &pfmon[1])] {
            println!("\nperf / pfmon, {what}-I 10: {}", spread(&ratios(perf, pfmon), 1));
        }
    }
}

fn print_all(title: &str, rounds: usize, runs: &[Run], references: &[&str]) {
    let column =
        |of: fn(&Run) -> &Case| -> Vec<Case> { runs.iter().map(|run| of(run).copy()).collect() };
    let wall = column(|run| &run.wall);
    println!(
        "{}",
        table(&format!("{title}: wall time, {rounds} rounds"), "ms", 3, &wall, references)
    );
    let cpu = column(|run| &run.cpu);
    println!("{}", table(&format!("{title}: CPU time, all processes"), "ms", 3, &cpu, references));
    println!("\n{title}: peak memory of the largest process\n\n| case | MB |\n| --- | --- |");
    for run in runs {
        println!("| {} | {:.1} |", run.peak.name, median(&run.peak.values));
    }
}

trait Copied {
    fn copy(&self) -> Case;
}

impl Copied for Case {
    fn copy(&self) -> Case {
        Case { name: self.name.clone(), values: self.values.clone() }
    }
}

impl Run {
    fn new<A: AsRef<std::ffi::OsStr>>(name: &str, argv: impl IntoIterator<Item = A>) -> Self {
        let argv = argv.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        Self { argv, wall: Case::new(name), cpu: Case::new(name), peak: Case::new(name) }
    }
}

impl Programs {
    /// Builds the command and the floors as they are released, unless the command is given.
    fn build() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let spawn = build(&here.join("Cargo.toml"), &["--bin", "spawn"], "spawn");
        let pfmon = option("--pfmon").map_or_else(
            || build(&here.join("../Cargo.toml"), &["-p", "pfmon"], "pfmon"),
            PathBuf::from,
        );
        let path = std::env::var_os("PATH").unwrap_or_default();
        let perf = std::env::split_paths(&path).map(|folder| folder.join("perf"));
        let perf =
            perf.into_iter().find(|file| Command::new(file).arg("--version").output().is_ok());
        Self { spawn, pfmon, perf }
    }

    fn floor(&self, name: &str, events: &str, command: &[&str]) -> Run {
        let head = [self.spawn.as_os_str(), "floor".as_ref(), events.as_ref()];
        Run::new(name, head.into_iter().chain(command.iter().map(std::ffi::OsStr::new)))
    }

    fn pfmon(&self, name: &str, options: &[&str], command: &[&str]) -> Run {
        counted(&self.pfmon, name, options, command)
    }

    fn perf(&self, name: &str, options: &[&str], command: &[&str]) -> Option<Run> {
        self.perf.as_ref().map(|perf| counted(perf, name, options, command))
    }

    /// Runs all, in another order each round, after one round that does not count.
    fn rounds(&self, runs: &mut [Run], rounds: usize) {
        let mut order = Order::new(7);
        for round in 0..=rounds {
            for place in order.shuffled(runs.len()) {
                let run = &mut runs[place];
                let used = self.run(&run.argv);
                if round > 0 {
                    run.wall.values.push(used.wall_ns / 1e6);
                    run.cpu.values.push(used.cpu_ns / 1e6);
                    run.peak.values.push(used.peak_kib / 1024.0);
                }
            }
        }
    }

    fn run(&self, argv: &[OsString]) -> Used {
        let (mut ours, theirs) = std::io::pipe().expect("a pipe");
        let fd = theirs.as_raw_fd();
        let mut command = Command::new(&self.spawn);
        command
            .arg("run")
            .args(argv)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let descriptor_3 = move || {
            // SAFETY: the descriptor is open; both calls are async-signal-safe. (To itself, dup2 does nothing.)
            match unsafe {
                if fd == 3 { libc::fcntl(3, libc::F_SETFD, 0) } else { libc::dup2(fd, 3) }
            } {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            }
        };
        // SAFETY: the closure makes one async-signal-safe call.
        unsafe { command.pre_exec(descriptor_3) };
        let status = command.status().expect("the runner runs");
        drop(theirs);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut ours, &mut text).expect("the runner reports");
        let numbers: Vec<f64> =
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[wall_ns, cpu_ns, peak_kib, exit] = numbers.as_slice() else {
            panic!("the runner said '{text}' ({status})");
        };
        assert!(exit == 0.0, "{argv:?} exited with {exit}");
        Used { wall_ns, cpu_ns, peak_kib }
    }
}

/// `stat` of either tool: they take the same options here.
fn counted(tool: &Path, name: &str, options: &[&str], command: &[&str]) -> Run {
    let mut argv: Vec<OsString> = vec![tool.into(), "stat".into()];
    argv.extend(options.iter().map(OsString::from));
    argv.extend(["-o", "/dev/null", "--"].map(OsString::from));
    argv.extend(command.iter().map(OsString::from));
    Run::new(name, argv)
}

/// Builds a program and says where it is.
fn build(manifest: &Path, what: &[&str], name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--release",
        "--message-format",
        "json-render-diagnostics",
        "--manifest-path",
    ]);
    let output = command.arg(manifest).args(what).stderr(Stdio::inherit()).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{name} can't be built");
    let text = String::from_utf8_lossy(&output.stdout);
    let wanted = format!("/{name}\"");
    let file = text.split("\"executable\":\"").skip(1).find_map(|rest| {
        let end = rest.find('"')?;
        rest[..=end].ends_with(&wanted).then(|| PathBuf::from(&rest[..end]))
    });
    file.unwrap_or_else(|| panic!("cargo does not say where {name} is"))
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    output.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
