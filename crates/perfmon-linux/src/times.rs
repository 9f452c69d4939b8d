//! User and system time of targets that are no child of ours.

use std::path::Path;
use std::time::Duration;

use crate::proc_file;

/// Time spent in user mode and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl CpuTimes {
    /// What was spent since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// Both together with another's.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }
}

/// The times of a process with all its threads so far, in clock ticks; `None` if it is gone.
///
/// # References
/// - proc_pid_stat(5), fields `utime`, `stime`
pub fn of_process(pid: u32) -> Option<CpuTimes> {
    parse_stat(&proc_file::read(format!("/proc/{pid}/stat"))?)
}

/// The times of one thread so far; `None` if it is gone.
pub fn of_thread(tid: u32) -> Option<CpuTimes> {
    parse_stat(&proc_file::read(format!("/proc/{tid}/task/{tid}/stat"))?)
}

/// For how long a process's first thread was on a CPU so far, to the nanosecond; `None` if it is gone, or the kernel
/// does not say (`CONFIG_SCHED_INFO`).
///
/// # References
/// - `Documentation/scheduler/sched-stats.rst`, `/proc/PID/schedstat`
pub fn on_cpu(pid: u32) -> Option<Duration> {
    let text = proc_file::read(format!("/proc/{pid}/schedstat"))?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The times of `cpus`, added up, since the machine started.
///
/// # References
/// - proc_stat(5): user and nice; system, irq and softirq
pub fn of_cpus(cpus: &[u32]) -> Option<CpuTimes> {
    let text = proc_file::read("/proc/stat")?;
    let mut sum = CpuTimes::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(cpu) = words.next().and_then(|word| word.strip_prefix("cpu")?.parse().ok()) else {
            continue;
        };
        if !cpus.contains(&cpu) {
            continue;
        }
        let mut ticks = [0_u64; 7];
        for (tick, word) in ticks.iter_mut().zip(words) {
            *tick = word.parse().ok()?;
        }
        let [user, nice, system, _idle, _iowait, irq, softirq] = ticks;
        sum = sum.plus(CpuTimes {
            user: from_ticks(user.saturating_add(nice)),
            system: from_ticks(system.saturating_add(irq).saturating_add(softirq)),
        });
    }
    Some(sum)
}

/// The times of a version 2 cgroup so far; `None` if its `cpu.stat` can't be read.
pub fn of_cgroup(directory: &Path) -> Option<CpuTimes> {
    let text = proc_file::read(directory.join("cpu.stat"))?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(Duration::from_micros(value.parse().ok()?))
    };
    Some(CpuTimes { user: field("user_usec")?, system: field("system_usec")? })
}

fn parse_stat(stat: &str) -> Option<CpuTimes> {
    // The command name may hold anything, also parentheses: the fields begin after the last one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(|word| word.parse().ok());
    let (user, system) = (fields.next()??, fields.next()??);
    Some(CpuTimes { user: from_ticks(user), system: from_ticks(system) })
}

fn from_ticks(ticks: u64) -> Duration {
    let hz = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / hz))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a hostile command name does not move the fields.
    #[test]
    fn stat_with_a_hostile_name() {
        let line = "7 (a) R 9 9) S 1 7 7 0 -1 4194560 9 9 9 9 250 50 9 9 20 0 1 0 5 9";
        let times = parse_stat(line).unwrap();
        assert_eq!(times.user, from_ticks(250));
        assert_eq!(times.system, from_ticks(50));
        assert_eq!(parse_stat("7 (a"), None);
        assert_eq!(parse_stat("7 (a) S 1"), None);
    }
}
