//! What the kernel never puts into one group, known without trying.
//!
//! Reference: Linux, `kernel/events/core.c`, `perf_event_open`: all events of a group but software ones are of one
//! PMU.

use perfmon::{Encoding, Event};
use perfmon_data::pmu_type;

use crate::cmd::sysfs::SysfsPmu;

/// PMUs in sysfs that are software ones to the kernel (`perf_sw_context`).
const SOFTWARE: [&str; 6] = ["software", "tracepoint", "breakpoint", "kprobe", "uprobe", "msr"];

/// Whether nothing is known to keep `events` from sharing a group.
pub(super) fn allows(pmus: &[SysfsPmu], events: &[&Event]) -> bool {
    let encodings = events.iter().filter_map(|event| event.encoding.as_ref().ok());
    let mut hardware = encodings.filter_map(|encoding| hardware(pmus, encoding));
    let first = hardware.next();
    hardware.all(|other| Some(other) == first)
}

/// The type of the hardware PMU that counts it; `None` if the kernel itself does.
fn hardware(pmus: &[SysfsPmu], encoding: &Encoding) -> Option<u32> {
    let own = |pmu: &&SysfsPmu| pmu.pmu_type == encoding.pmu_type;
    match encoding.pmu_type {
        pmu_type::SOFTWARE | pmu_type::TRACEPOINT | pmu_type::BREAKPOINT => None,
        pmu_type::HARDWARE | pmu_type::HW_CACHE => {
            // `PERF_PMU_TYPE_SHIFT`: a core type's own, or the only core PMU, which takes raw events.
            let extended = u32::try_from(encoding.config >> 32).unwrap_or(0);
            Some(if extended == 0 { pmu_type::RAW } else { extended })
        }
        _ if pmus.iter().find(own).is_some_and(|pmu| SOFTWARE.contains(&pmu.name.as_str())) => None,
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use perfmon::{Group, Names};

    use super::*;

    /// Check which PMUs share a group: one hardware PMU, and all of the kernel's own.
    #[test]
    fn one_hardware_pmu_a_group() {
        let pmu = |name: &str, pmu_type| SysfsPmu { name: name.into(), pmu_type, cpus: None };
        let pmus = [pmu("msr", 9), pmu("cpu_atom", 10), pmu("uprobe", 8)];
        let names = Names::with_roots("/nonexistent", "/nonexistent");
        let event = |pmu_type, config| {
            let mut event = names.parse("page-faults").unwrap().remove(0);
            assert_eq!(event.group, Group::Free);
            event.encoding = Ok(Encoding { pmu_type, config, ..Encoding::default() }.into());
            event
        };
        let allowed = |types: &[(u32, u64)]| {
            let events: Vec<Event> = types.iter().map(|it| event(it.0, it.1)).collect();
            allows(&pmus, &events.iter().collect::<Vec<_>>())
        };
        assert!(allowed(&[]));
        assert!(allowed(&[
            (1, 0),
            (0, 0),
            (2, 7),
            (3, 0x10002),
            (4, 0x76),
            (5, 0),
            (9, 0),
            (8, 0)
        ]));
        assert!(allowed(&[(10, 1), (0, 10 << 32), (1, 2)]));
        assert!(!allowed(&[(4, 1), (0, 10 << 32)]));
        assert!(!allowed(&[(0, 4 << 32), (1, 0), (0, 10 << 32)]));
        assert!(!allowed(&[(20, 0), (21, 0)]));
    }
}
