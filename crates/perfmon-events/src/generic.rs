//! The kernel's generic events, under the names that perf gives them.
//!
//! Source: `include/uapi/linux/perf_event.h` (Linux 6.18) for the numbers, perf-list(1) and
//! `tools/perf/util/parse-events.l` for the names.

use crate::blind::Subject;

/// `PERF_TYPE_HARDWARE`.
const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_TYPE_HW_CACHE`.
const HW_CACHE: u32 = 3;

/// A generic event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generic {
    pub(crate) pmu_type: u32,
    pub(crate) config: u64,
    /// Which rows of the blind table may apply to it.
    pub(crate) subject: Option<Subject>,
}

/// Names and `enum perf_sw_ids`.
const SOFTWARE_EVENTS: &[(&[&str], u64, Subject)] = &[
    (&["cpu-clock"], 0, Subject::Clock),
    (&["task-clock"], 1, Subject::Clock),
    (&["page-faults", "faults"], 2, Subject::PageFault),
    (&["context-switches", "cs"], 3, Subject::Scheduler),
    (&["cpu-migrations", "migrations"], 4, Subject::Scheduler),
    (&["minor-faults"], 5, Subject::PageFault),
    (&["major-faults"], 6, Subject::PageFault),
    (&["alignment-faults"], 7, Subject::Trap),
    (&["emulation-faults"], 8, Subject::Trap),
    (&["dummy"], 9, Subject::CountsNothing),
    (&["bpf-output"], 10, Subject::CountsNothing),
    (&["cgroup-switches"], 11, Subject::Scheduler),
];

/// Names and `enum perf_hw_id`.
const HARDWARE_EVENTS: &[(&[&str], u64)] = &[
    (&["cpu-cycles", "cycles"], 0),
    (&["instructions"], 1),
    (&["cache-references"], 2),
    (&["cache-misses"], 3),
    (&["branch-instructions", "branches"], 4),
    (&["branch-misses"], 5),
    (&["bus-cycles"], 6),
    (&["stalled-cycles-frontend", "idle-cycles-frontend"], 7),
    (&["stalled-cycles-backend", "idle-cycles-backend"], 8),
    (&["ref-cycles"], 9),
];

/// Names and `enum perf_hw_cache_id`, with the operations that perf names for each.
const CACHES: &[(&str, u64, &[Operation])] = {
    use Operation::{Load, Prefetch, Store};
    &[
        ("L1-dcache", 0, &[Load, Store, Prefetch]),
        ("L1-icache", 1, &[Load, Prefetch]),
        ("LLC", 2, &[Load, Store, Prefetch]),
        ("dTLB", 3, &[Load, Store, Prefetch]),
        ("iTLB", 4, &[Load]),
        ("branch", 5, &[Load]),
        ("node", 6, &[Load, Store, Prefetch]),
    ]
};

/// `enum perf_hw_cache_op_id`.
#[derive(Clone, Copy)]
enum Operation {
    Load = 0,
    Store = 1,
    Prefetch = 2,
}

impl Operation {
    /// What follows the cache's name, with `enum perf_hw_cache_op_result_id`.
    const fn endings(self) -> [(&'static str, u64); 2] {
        match self {
            Self::Load => [("-loads", 0), ("-load-misses", 1)],
            Self::Store => [("-stores", 0), ("-store-misses", 1)],
            Self::Prefetch => [("-prefetches", 0), ("-prefetch-misses", 1)],
        }
    }
}

/// The generic event called `name`.
pub(crate) fn find(name: &str) -> Option<Generic> {
    let software = SOFTWARE_EVENTS.iter().find(|(names, ..)| names.contains(&name));
    if let Some(&(_, config, subject)) = software {
        return Some(Generic { pmu_type: SOFTWARE, config, subject: Some(subject) });
    }
    if let Some(&(_, config)) = HARDWARE_EVENTS.iter().find(|(names, _)| names.contains(&name)) {
        return Some(Generic { pmu_type: HARDWARE, config, subject: None });
    }
    cache_events()
        .find(|(cache, ending, _)| name.strip_prefix(cache) == Some(ending))
        .map(|(.., config)| Generic { pmu_type: HW_CACHE, config, subject: None })
}

/// All names.
pub(crate) fn names() -> impl Iterator<Item = String> {
    let software = SOFTWARE_EVENTS.iter().flat_map(|(names, ..)| *names);
    let hardware = HARDWARE_EVENTS.iter().flat_map(|(names, _)| *names);
    let caches = cache_events().map(|(cache, ending, _)| format!("{cache}{ending}"));
    software.chain(hardware).map(|&name| name.to_owned()).chain(caches)
}

/// Name (in two parts) and `config` of each hardware cache event.
fn cache_events() -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    CACHES.iter().flat_map(|&(cache, id, operations)| {
        operations.iter().flat_map(move |&operation| {
            operation.endings().map(|(ending, result)| {
                (cache, ending, id | (operation as u64) << 8 | result << 16)
            })
        })
    })
}
