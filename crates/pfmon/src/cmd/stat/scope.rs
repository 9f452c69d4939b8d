//! From options to a scope.

use perfmon::{Inherit, Scope, StartOn, cgroup, cpus};

use crate::args::Stat;
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

fn inherit(args: &Stat) -> Inherit {
    if args.no_inherit { Inherit::None } else { Inherit::Tree }
}

fn sorted(ids: &[u32]) -> Vec<u32> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}
