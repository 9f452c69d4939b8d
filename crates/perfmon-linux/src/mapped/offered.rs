//! Which events the page has, with values that are the kernel's own.

use perfmon_core::{Encoding, Privilege};
use perfmon_data::pmu_type;

/// How many words the counts of a thread are: more than there are counts, so that any `Kind & 7` is one.
pub(super) const COUNTS: usize = 8;

/// Counts of a thread, by [`Kind`].
pub(super) type Counts = [u64; COUNTS];

/// One of the counts in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Run = 0,
    Switches = 1,
    Migrations = 2,
    Faults = 3,
    UserFaults = 4,
    KernelFaults = 5,
}

impl Kind {
    #[inline]
    pub(super) fn of(self, counts: &Counts) -> u64 {
        // No check is left of this.
        counts[usize::from(self as u8) & (COUNTS - 1)]
    }

    /// The count that is the event's, or why there is none. `has_faults`: programs see page faults.
    pub(super) fn offered(encoding: &Encoding, has_faults: bool) -> Result<Self, &'static str> {
        // `enum perf_sw_ids`
        const TASK_CLOCK: u64 = 1;
        const PAGE_FAULTS: u64 = 2;
        const CONTEXT_SWITCHES: u64 = 3;
        const CPU_MIGRATIONS: u64 = 4;
        if encoding.pmu_type != pmu_type::SOFTWARE {
            return Err("it is no software event");
        }
        let Privilege { exclude_user, exclude_kernel, exclude_hv, .. } = encoding.privilege;
        let plain = Encoding {
            pmu_type: pmu_type::SOFTWARE,
            config: encoding.config,
            // Software events have nothing in a hypervisor.
            privilege: Privilege {
                exclude_user,
                exclude_kernel,
                exclude_hv,
                ..Privilege::default()
            },
            ..Encoding::default()
        };
        if *encoding != plain {
            return Err("it has modifiers that the page does not know");
        }
        match (encoding.config, exclude_user, exclude_kernel) {
            // Clocks ignore privilege levels.
            (TASK_CLOCK, ..) => Ok(Self::Run),
            (CONTEXT_SWITCHES, false, false) => Ok(Self::Switches),
            (CPU_MIGRATIONS, false, false) => Ok(Self::Migrations),
            (PAGE_FAULTS, ..) if !has_faults => {
                Err("programs see page faults as the kernel counts them on x86_64 only")
            }
            (PAGE_FAULTS, false, false) => Ok(Self::Faults),
            (PAGE_FAULTS, false, true) => Ok(Self::UserFaults),
            (PAGE_FAULTS, true, false) => Ok(Self::KernelFaults),
            (CONTEXT_SWITCHES | CPU_MIGRATIONS | PAGE_FAULTS, ..) => {
                Err("it has a modifier with which it is not kept")
            }
            _ => Err("no program sees it exactly as the kernel counts it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(config: u64, privilege: Privilege) -> Encoding {
        Encoding { pmu_type: pmu_type::SOFTWARE, config, privilege, ..Encoding::default() }
    }

    /// Check which events are offered, also with modifiers, and that all others are refused.
    #[test]
    fn only_exact_counts_are_offered() {
        let plain = Privilege::default();
        let kernel = Privilege { exclude_user: true, ..plain };
        let offered = |config, privilege| Kind::offered(&event(config, privilege), true).ok();
        assert_eq!(offered(1, plain), Some(Kind::Run));
        assert_eq!(offered(1, Privilege::USER), Some(Kind::Run));
        assert_eq!(offered(2, plain), Some(Kind::Faults));
        assert_eq!(offered(2, Privilege::USER), Some(Kind::UserFaults));
        assert_eq!(offered(2, kernel), Some(Kind::KernelFaults));
        assert_eq!(offered(3, plain), Some(Kind::Switches));
        assert_eq!(offered(4, plain), Some(Kind::Migrations));
        let neither = Privilege { exclude_kernel: true, ..kernel };
        for (config, privilege) in [(2, neither), (3, kernel), (3, Privilege::USER), (4, kernel)] {
            assert_eq!(offered(config, privilege), None, "{config}");
        }
        // cpu-clock, minor, major, alignment and emulation faults, dummy, bpf-output, cgroup-switches.
        for config in [0, 5, 6, 7, 8, 9, 10, 11, 1 << 40] {
            assert_eq!(offered(config, plain), None, "{config}");
        }
        assert_eq!(offered(2, Privilege { exclude_idle: true, ..plain }), None);
    }

    /// Check that what makes an event another one is seen, and that there are no faults without programs for them.
    #[test]
    fn other_events_are_not_taken_for_offered_ones() {
        let faults = event(2, Privilege::default());
        for other in [
            Encoding { pmu_type: pmu_type::TRACEPOINT, ..faults.clone() },
            Encoding { pinned: true, ..faults.clone() },
            Encoding { exclusive: true, ..faults.clone() },
            Encoding { config1: 1, ..faults.clone() },
            Encoding { precise_ip: 1, ..faults.clone() },
        ] {
            assert!(Kind::offered(&other, true).is_err(), "{other:?}");
        }
        assert!(Kind::offered(&faults, false).is_err());
        assert!(Kind::offered(&event(3, Privilege::default()), false).is_ok());
    }
}
