//! The kernel's generic hardware events, under the names that perf gives them.
//!
//! Source: `include/uapi/linux/perf_event.h` (Linux 6.18) for the numbers, perf-list(1) and
//! `tools/perf/util/parse-events.l` for the names.

use perfmon_data::pmu_type::{HARDWARE, HW_CACHE};

/// A generic event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generic {
    pub(crate) pmu_type: u32,
    pub(crate) config: u64,
}

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
const CACHES: &[(&[&str], u64, &[Operation])] = {
    use Operation::{Load, Prefetch, Store};
    &[
        (&["L1-dcache", "L1-d", "l1d"], 0, &[Load, Store, Prefetch]),
        (&["L1-icache", "L1-i", "l1i"], 1, &[Load, Prefetch]),
        (&["LLC"], 2, &[Load, Store, Prefetch]),
        (&["dTLB", "d-tlb"], 3, &[Load, Store, Prefetch]),
        (&["iTLB", "i-tlb"], 4, &[Load]),
        (&["branch"], 5, &[Load]),
        (&["node"], 6, &[Load, Store, Prefetch]),
    ]
};

/// `enum perf_hw_cache_op_id`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Load = 0,
    Store = 1,
    Prefetch = 2,
}

/// Words for an operation; the one that perf lists first.
const OPERATIONS: &[(Operation, &[&str])] = &[
    (Operation::Load, &["loads", "load", "read", "reads"]),
    (Operation::Store, &["stores", "store", "write", "writes"]),
    (Operation::Prefetch, &["prefetches", "prefetch"]),
];

/// `enum perf_hw_cache_op_result_id`: words behind an operation.
const RESULTS: &[(u64, &[&str])] =
    &[(0, &["refs", "access", "accesses"]), (1, &["misses", "miss"])];

/// The generic event called `name`, unless it is a software event.
pub(crate) fn find(name: &str) -> Option<Generic> {
    if let Some(&(_, config)) = HARDWARE_EVENTS.iter().find(|(names, _)| names.contains(&name)) {
        return Some(Generic { pmu_type: HARDWARE, config });
    }
    cache_event(name).map(|config| Generic { pmu_type: HW_CACHE, config })
}

/// `config` of a cache event, such as `L1-dcache-load-misses`: a cache, then an operation (a load if none
/// is named), then a result (all accesses if none is named).
fn cache_event(name: &str) -> Option<u64> {
    if !name.as_bytes().contains(&b'-') {
        return None;
    }
    let (rest, id, operations) = CACHES.iter().find_map(|&(names, id, operations)| {
        let rest = names.iter().find_map(|cache| name.strip_prefix(cache)?.strip_prefix('-'))?;
        Some((rest, id, operations))
    })?;
    let result = |word: &str| RESULTS.iter().find(|(_, words)| words.contains(&word));
    let (word, behind) = match rest.split_once('-') {
        Some((word, behind)) => (word, Some(behind)),
        None => (rest, None),
    };
    let operation = OPERATIONS.iter().find(|(_, words)| words.contains(&word));
    let (operation, result) = match (operation, behind) {
        (Some((operation, _)), None) => (*operation, 0),
        (Some((operation, _)), Some(behind)) => (*operation, result(behind)?.0),
        (None, None) => (Operation::Load, result(word)?.0),
        (None, Some(_)) => return None,
    };
    operations.contains(&operation).then_some(id | (operation as u64) << 8 | result << 16)
}

/// Names as perf lists them, those of one event together, and the event.
pub(crate) fn events() -> impl Iterator<Item = (Vec<String>, Generic)> {
    let hardware = HARDWARE_EVENTS.iter().map(|&(names, config)| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        (names, Generic { pmu_type: HARDWARE, config })
    });
    let caches = CACHES.iter().flat_map(|&(names, id, operations)| {
        operations.iter().flat_map(move |&operation| {
            let words = OPERATIONS.iter().find(|(other, _)| *other == operation);
            let words = words.map_or(&[][..], |(_, words)| words);
            let endings = [(words.first(), "", 0), (words.get(1), "-misses", 1)];
            endings.into_iter().filter_map(move |(word, ending, result)| {
                let name = format!("{}-{}{ending}", names[0], word?);
                let config = id | (operation as u64) << 8 | result << 16;
                Some((vec![name], Generic { pmu_type: HW_CACHE, config }))
            })
        })
    });
    hardware.chain(caches)
}
