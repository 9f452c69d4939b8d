//! The command line.

mod events;
mod sets;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Parser, Subcommand};

pub(crate) use events::{Common, Doctor, Explain, Fit, List, Pmu, Sources, Try};
pub(crate) use sets::{Estimator, SetArgs};

/// Performance monitoring for Linux: counts that say how far to trust them.
#[derive(Debug, Parser)]
#[command(name = "pfmon", version, disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stat(Box<Stat>),
    List(Box<List>),
    Explain(Box<Explain>),
    Fit(Box<Fit>),
    Pmu(Box<Pmu>),
    Doctor(Doctor),
}

/// Count events while a command runs, or in what runs already.
///
/// Each count is exact, or is marked: estimated (the event shared the PMU), not counted, or unsupported, with the
/// reason. No event is replaced by another, and none is shown as 0 because it could not be counted.
///
/// Without -p, -t, -C, -a or --cgroup the COMMAND and all its descendants are counted; with one of them a COMMAND
/// only says how long. Without any COMMAND, counting ends with Ctrl-C, at --time-limit, or with the targets.
///
/// Times are given in milliseconds, or with a unit: 100us, 5ms, 10s.
///
/// Exit status: the COMMAND's own (128 and the number of a signal that ended it). 125: pfmon could not measure;
/// 126, 127: the COMMAND could not be executed, was not found; 124: with --strict, an event has no count; 123: with
/// --max-error, an estimate is less sure.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("scope").args(["pid", "tid", "all_cpus", "cpu", "cgroup"]).multiple(true))]
pub(crate) struct Stat {
    /// Events to count: names, modifiers, {groups}; may be repeated [default: depends on privilege, see README]
    #[arg(short, long = "event", value_name = "LIST")]
    pub(crate) events: Vec<String>,

    /// Takes events from a file, too: one list a line, # begins a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) events_file: Vec<PathBuf>,

    /// Counts the events of a group of metrics and shows these (docs/metrics.md): its name, or a file; may be repeated
    #[arg(short, long, value_name = "NAME")]
    pub(crate) group: Vec<String>,

    /// Also evaluates formulas over estimates of events that did not run together
    #[arg(long, requires = "group")]
    pub(crate) across_groups: bool,

    #[command(flatten)]
    pub(crate) sources: Sources,

    /// Counts running processes: all their threads, and what these create from now on
    #[arg(short, long, value_name = "PID,…", value_delimiter = ',', conflicts_with_all = ["tid", "all_cpus", "cpu", "cgroup"])]
    pub(crate) pid: Vec<u32>,

    /// Counts single threads
    #[arg(short, long, value_name = "TID,…", value_delimiter = ',', conflicts_with_all = ["all_cpus", "cpu", "cgroup"])]
    pub(crate) tid: Vec<u32>,

    /// Counts the whole system: all online CPUs
    #[arg(short, long, conflicts_with = "cgroup")]
    pub(crate) all_cpus: bool,

    /// Counts on these CPUs (0-3,8), or what of the cgroups runs on them
    #[arg(short = 'C', long, value_name = "CPUS", conflicts_with = "all_cpus")]
    pub(crate) cpu: Option<String>,

    /// Counts a cgroup, given by its path below the cgroup mount; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Vec<String>,

    /// Leaves out the threads and processes that the target creates
    #[arg(short = 'i', long)]
    pub(crate) no_inherit: bool,

    /// One row per event and thread; of the whole system with --accounting switch
    #[arg(long, conflicts_with_all = ["cpu", "cgroup", "repeat", "per_cpu"])]
    pub(crate) per_thread: bool,

    /// One row per event and process; takes --accounting switch
    #[arg(long, conflicts_with_all = ["cpu", "cgroup", "repeat", "per_cpu", "per_thread"])]
    pub(crate) per_process: bool,

    /// How counts come to threads: kernel has an event for each, switch accounts those of the CPUs to any number of threads
    #[arg(long, value_name = "HOW", value_enum, default_value_if("per_process", clap::builder::ArgPredicate::Equals("true".into()), "switch"), default_value = "kernel", conflicts_with_all = ["cpu", "cgroup"])]
    pub(crate) accounting: Accounting,

    /// One row per event and CPU
    #[arg(short = 'A', long, conflicts_with_all = ["pid", "tid"])]
    pub(crate) per_cpu: bool,

    /// Runs the command N times: mean and standard deviation
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), requires = "workload")]
    pub(crate) repeat: u32,

    /// Also shows what was counted in each interval of this length, and in the rest at the end
    #[arg(short = 'I', long, value_name = "TIME", value_parser = parse_time, conflicts_with = "repeat")]
    pub(crate) interval: Option<Duration>,

    /// Starts counting only after this time
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) delay: Option<Duration>,

    /// Ends counting after this time, and the command with SIGTERM
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time_limit: Option<Duration>,

    /// Prints JSON (docs/schema.md)
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Prints CSV (docs/schema.md)
    #[arg(long)]
    pub(crate) csv: bool,

    /// Writes the results to a file [default: to standard error]
    #[arg(short, long, value_name = "FILE", conflicts_with = "fd")]
    pub(crate) output: Option<PathBuf>,

    /// Writes the results to this file descriptor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) fd: Option<i32>,

    /// Exits with status 124 if an event has no count
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) sets: SetArgs,

    /// The command to run, with its arguments
    #[arg(id = "workload", value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) workload: Vec<OsString>,
}

/// How counts come to threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Accounting {
    /// The kernel's own: one event for each thread
    #[default]
    Kernel,
    /// By programs in the kernel, at context switches
    Switch,
}

/// Longest time that is taken: 31 years.
const TIME_MAX: Duration = Duration::from_secs(1_000_000_000);

/// A time: a number with a unit (ns, us, ms, s), without one in milliseconds. At least 1 ns.
fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ns = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "" | "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(format!("'{unit}' is no unit of time; use ns, us, ms or s")),
    };
    let seconds =
        number.parse::<f64>().map_err(|_| "expected a number such as 100 or 2.5s")? * unit_ns;
    match Duration::try_from_secs_f64(seconds) {
        // Sums of an instant and more could not be told.
        Ok(time) if time > TIME_MAX => Err("expected at most 1000000000s".into()),
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err("expected more than 0".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Check that the definition holds together.
    #[test]
    fn definition_is_consistent() {
        Args::command().debug_assert();
    }

    /// Check that times are milliseconds unless a unit says otherwise, and that nonsense is refused.
    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("100"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_time("2.5s"), Ok(Duration::from_millis(2500)));
        assert_eq!(parse_time("10us"), Ok(Duration::from_micros(10)));
        for bad in [
            "",
            "s",
            "1h",
            "0",
            "-1",
            "1e400s",
            "1.2.3",
            "1e10s",
            "2000000000s",
            "99999999999999999999999s",
        ] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    /// Check that what is after the command's name is the command's.
    #[test]
    fn options_of_the_command_are_its_own() {
        let args =
            Args::try_parse_from(["pfmon", "stat", "-e", "cs", "ls", "-e", "--json"]).unwrap();
        let Command::Stat(stat) = args.command else { panic!("{args:?}") };
        assert_eq!(stat.workload, ["ls", "-e", "--json"]);
        assert_eq!((stat.events, stat.json), (vec!["cs".to_owned()], false));
    }
}
