use perfmon_core::{Encoding, Inherit, Privilege, StartOn};
use perfmon_data::pmu_type;
use perfmon_sys::Errno;

use crate::counter::{Counter, Place};
use crate::proc_file;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// What this process may monitor.
///
/// # References
/// - perf_event_open(2), `/proc/sys/kernel/perf_event_paranoid`
/// - capabilities(7), `CAP_PERFMON`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// `/proc/sys/kernel/perf_event_paranoid`; `None` if it can't be read.
    pub paranoid: Option<i64>,
    /// `CAP_PERFMON` or `CAP_SYS_ADMIN` is effective.
    pub capable: bool,
}

impl Permissions {
    /// Those of this process now.
    pub fn current() -> Self {
        let paranoid = proc_file::read_number("/proc/sys/kernel/perf_event_paranoid");
        let status = proc_file::read("/proc/self/status").unwrap_or_default();
        let effective = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0);
        let capable = effective & (1 << CAP_SYS_ADMIN | 1 << CAP_PERFMON) != 0;
        Self { paranoid, capable }
    }

    /// Whether events in the kernel may be counted (`perf_event_paranoid` 1 or less).
    pub fn kernel_allowed(&self) -> bool {
        self.capable || self.paranoid.is_some_and(|paranoid| paranoid <= 1)
    }
}

/// Whether this machine has a PMU that counts CPU cycles, found by opening that event; a PMU that we may not use
/// is one, too.
pub fn has_core_pmu() -> bool {
    let cycles = Encoding {
        pmu_type: pmu_type::HARDWARE,
        privilege: Privilege::USER,
        ..Encoding::default()
    };
    let place =
        Place { tid: 0, cpu: -1, cgroup: None, inherit: Inherit::None, start_on: StartOn::Call };
    let missing = |errno| matches!(errno, Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP);
    Counter::open(&cycles, &place, None).map_or_else(|errno| !missing(errno), |_| true)
}
