use std::fmt;
use std::path::PathBuf;

use perfmon_core::{Inherit, Refusal, StartOn};
use perfmon_linux::times::{self, CpuTimes};

/// Whose events a session counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The calling thread.
    CurrentThread,
    /// A command that waits before its exec ([`Workload`](crate::Workload)).
    Command {
        /// Its process id.
        pid: u32,
        /// Whether all that it creates is counted with it.
        inherit: Inherit,
        /// Whether its exec starts counting, or [`Session::start`](crate::Session::start).
        start_on: StartOn,
    },
    /// Running processes: all their threads.
    Processes {
        /// Their process ids.
        pids: Vec<u32>,
        /// Whether all that they create from now on is counted with them.
        inherit: Inherit,
    },
    /// These threads, by id.
    Threads(Vec<u32>),
    /// All that runs on these CPUs.
    Cpus(Vec<u32>),
    /// All that runs on the CPUs that are online.
    System,
    /// What of these cgroups, given by path, runs on these CPUs.
    Cgroups {
        /// Directories in the cgroup file system.
        directories: Vec<PathBuf>,
        /// The CPUs, by default all that are online.
        cpus: Option<Vec<u32>>,
    },
}

impl Scope {
    /// User and system time that the scope has used so far; `None` if it can't be known (a target is gone,
    /// or is a command, whose times come when it has ended).
    ///
    /// Processes and CPUs are known to the clock tick (usually 10 ms).
    pub fn cpu_times(&self) -> Option<CpuTimes> {
        match self {
            Self::CurrentThread | Self::Command { .. } => None,
            Self::Processes { pids, .. } => sum(pids, |&pid| times::of_process(pid)),
            Self::Threads(tids) => sum(tids, |&tid| times::of_thread(tid)),
            Self::Cpus(cpus) => times::of_cpus(cpus),
            Self::System => times::of_cpus(&perfmon_linux::cpus::online().ok()?),
            Self::Cgroups { directories, cpus: None } => {
                sum(directories, |directory| times::of_cgroup(directory))
            }
            Self::Cgroups { cpus: Some(_), .. } => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CurrentThread => f.write_str("the calling thread"),
            Self::Command { inherit, .. } if inherit.follows() => {
                f.write_str("command and all its descendants")
            }
            Self::Command { .. } => f.write_str("command's first thread, without descendants"),
            Self::Processes { pids, inherit } => {
                write!(f, "{} {}, all threads", plural("process", "processes", pids), List(pids))?;
                f.write_str(if inherit.follows() {
                    " and all that they create"
                } else {
                    " that exist now"
                })
            }
            Self::Threads(tids) => {
                write!(f, "{} {}", plural("thread", "threads", tids), List(tids))
            }
            Self::Cpus(cpus) => write!(f, "{} {}", plural("CPU", "CPUs", cpus), List(cpus)),
            Self::System => f.write_str("whole system, all online CPUs"),
            Self::Cgroups { directories, cpus } => {
                write!(f, "{}", plural("cgroup", "cgroups", directories))?;
                for (place, directory) in directories.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(f, "{comma} {}", directory.display())?;
                }
                cpus.as_ref().map_or(Ok(()), |cpus| {
                    write!(f, " on {} {}", plural("CPU", "CPUs", cpus), List(cpus))
                })
            }
        }
    }
}

/// The times of all `parts`, if all are known.
fn sum<T>(parts: &[T], times: impl Fn(&T) -> Option<CpuTimes>) -> Option<CpuTimes> {
    parts.iter().try_fold(CpuTimes::default(), |sum, part| Some(sum.plus(times(part)?)))
}

fn plural<'a, T>(one: &'a str, many: &'a str, of: &[T]) -> &'a str {
    if of.len() == 1 { one } else { many }
}

/// Numbers with commas between them; runs of three and more as a range.
struct List<'a>(&'a [u32]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut comma = "";
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|(number, expected)| *number == expected);
            let run = match run.count() {
                2 => 1,
                run => run,
            };
            match rest.get(run - 1) {
                Some(last) if run > 1 => write!(f, "{comma}{first}-{last}")?,
                _ => write!(f, "{comma}{first}")?,
            }
            comma = ",";
            rest = rest.get(run..).unwrap_or_default();
        }
        Ok(())
    }
}

/// The CPUs of `wanted` if all of them are online.
pub(crate) fn check_online(wanted: &[u32]) -> Result<(), Refusal> {
    let online = perfmon_linux::cpus::online()?;
    match wanted.iter().find(|cpu| !online.contains(cpu)) {
        None if wanted.is_empty() => {
            Err(Refusal::new("no CPU was named").hint("name one, as in 0-3,8"))
        }
        None => Ok(()),
        Some(cpu) => Err(Refusal::new(format!("CPU {cpu} is not online"))
            .hint(format!("choose among {}", List(&online)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that scopes are named as a reader would.
    #[test]
    fn scopes_have_names() {
        let processes =
            |pids: &[u32]| Scope::Processes { pids: pids.to_vec(), inherit: Inherit::Tree };
        for (scope, name) in [
            (Scope::Cpus(vec![0, 1, 2, 5, 7, 8]), "CPUs 0-2,5,7,8"),
            (Scope::Cpus(vec![3]), "CPU 3"),
            (Scope::Threads(vec![7, 9]), "threads 7,9"),
            (processes(&[12]), "process 12, all threads and all that they create"),
            (Scope::System, "whole system, all online CPUs"),
        ] {
            assert_eq!(scope.to_string(), name);
        }
    }

    /// Check that a CPU that is not there is refused by number.
    #[test]
    fn offline_cpus_are_refused() {
        assert_eq!(check_online(&[60_000]).unwrap_err().why(), "CPU 60000 is not online");
        assert!(check_online(&[]).is_err());
    }
}
