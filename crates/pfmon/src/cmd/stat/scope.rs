//! From options to a scope.

use perfmon::{Inherit, Scope, StartOn, cgroup, cpus};

use crate::args::{Accounting, Stat};
use crate::exit::Failure;

/// What is measured.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The command itself.
    Command,
    /// Something that runs already; a command, if any, only says how long.
    Running(Scope),
}

impl Plan {
    pub(crate) fn from_args(args: &Stat) -> Result<Self, Failure> {
        check_rows(args)?;
        let inherit = inherit(args);
        let cpus = args.cpu.as_deref().map(cpus::parse_list).transpose().map_err(Failure::new)?;
        let scope = if !args.pid.is_empty() {
            Scope::Processes { pids: sorted(&args.pid), inherit }
        } else if !args.tid.is_empty() {
            Scope::Threads(sorted(&args.tid))
        } else if !args.cgroup.is_empty() {
            let directory = |name: &String| cgroup::directory(name).map_err(Failure::new);
            let directories = args.cgroup.iter().map(directory).collect::<Result<_, _>>()?;
            Scope::Cgroups { directories, cpus }
        } else if let Some(cpus) = cpus {
            Scope::Cpus(cpus)
        } else if args.all_cpus {
            Scope::System
        } else if args.workload.is_empty() {
            return Err(Failure::new(
                "nothing to count; name a command, or a target with -p, -t, -C, -a or --cgroup",
            ));
        } else if args.per_thread
            && args.accounting == Accounting::Kernel
            && !args.no_inherit
            && (args.interval.is_some() || args.delay.is_some())
        {
            return Err(Failure::new(
                "a command's threads are told apart at their end by all that they counted: without --interval and \
                 --delay; leave these out, or attach to the threads with -p or -t",
            ));
        } else {
            return Ok(Self::Command);
        };
        Ok(Self::Running(scope))
    }

    /// The scope, once the command (if it is the one that is measured) has a process.
    pub(crate) fn scope(&self, args: &Stat, pid: Option<u32>) -> Scope {
        match self {
            Self::Running(scope) => scope.clone(),
            Self::Command => {
                let start_on = if args.delay.is_some() { StartOn::Call } else { StartOn::Exec };
                let inherit = match inherit(args) {
                    Inherit::Tree if args.per_thread => Inherit::TreeByThread,
                    inherit => inherit,
                };
                Scope::Command { pid: pid.unwrap_or(0), inherit, start_on }
            }
        }
    }
}

/// Rows of tasks come with what is counted to the end, or where each task has its event.
fn check_rows(args: &Stat) -> Result<(), Failure> {
    let switch = args.accounting == Accounting::Switch;
    if args.per_process && !switch {
        return Err(Failure::new("rows of processes take --accounting switch"));
    }
    if args.all_cpus && args.per_thread && !switch {
        return Err(Failure::new(
            "rows of all threads of the system take --accounting switch, as events of CPUs know no threads",
        ));
    }
    if switch && args.per_cpu {
        return Err(Failure::new("rows of CPUs and --accounting switch exclude each other"));
    }
    if switch && args.interval.is_some() && (args.per_thread || args.per_process) {
        return Err(Failure::new(
            "with --accounting switch, rows of threads and processes come at the end; leave out --interval",
        ));
    }
    Ok(())
}

fn inherit(args: &Stat) -> Inherit {
    let rows = args.per_thread || args.per_process;
    match args.accounting {
        _ if args.no_inherit => Inherit::None,
        Accounting::Switch if rows => Inherit::TreeByThread,
        _ => Inherit::Tree,
    }
}

fn sorted(ids: &[u32]) -> Vec<u32> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}
