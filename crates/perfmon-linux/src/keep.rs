use std::sync::{Mutex, PoisonError};

use perfmon_core::{Encoding, Inherit, Privilege, StartOn};
use perfmon_data::pmu_type;

use crate::counter::{Counter, Place};

/// One disabled event of each software event that this process has counted and let go: `config` and the event, or
/// none if the kernel refused.
///
/// The first and the last event of a software type patch the kernel's text, which costs about 100 µs; while
/// one is open, opening and closing others is 5 to 11 times cheaper.
static KEPT_OPEN: Mutex<Vec<(u64, Option<Counter>)>> = Mutex::new(Vec::new());

/// Keeps the kernel ready for the event of `encoding`, if it is a software event. Where the kernel refuses, the
/// next open costs more, that is all.
pub(crate) fn keep_open(encoding: &Encoding) {
    if encoding.pmu_type != pmu_type::SOFTWARE {
        return;
    }
    let mut kept = KEPT_OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.iter().any(|(config, _)| *config == encoding.config) {
        return;
    }
    let config = encoding.config;
    let encoding = Encoding {
        pmu_type: pmu_type::SOFTWARE,
        config,
        privilege: Privilege::USER,
        ..Encoding::default()
    };
    let place =
        Place { tid: 0, cpu: -1, cgroup: None, inherit: Inherit::None, start_on: StartOn::Call };
    kept.push((config, Counter::open(&encoding, &place, None).ok()));
}
