use std::collections::HashMap;

use perfmon_core::{Encoding, Inherit, Privilege, StartOn};
use perfmon_data::pmu_type;

use crate::counter::{Counter, Place};

/// One disabled event of each software event in use.
///
/// The first and the last event of a software type patch the kernel's text, which costs about 100 µs; while
/// one is open, opening and closing others is 5 to 11 times cheaper.
#[derive(Debug, Default)]
pub(crate) struct KeptOpen(HashMap<u64, Option<Counter>>);

impl KeptOpen {
    /// Keeps the kernel ready for the event of `encoding`, if it is a software event. Where the kernel
    /// refuses, the next open costs more, that is all.
    pub(crate) fn keep(&mut self, encoding: &Encoding) {
        if encoding.pmu_type != pmu_type::SOFTWARE {
            return;
        }
        self.0.entry(encoding.config).or_insert_with(|| {
            let encoding = Encoding {
                pmu_type: pmu_type::SOFTWARE,
                config: encoding.config,
                privilege: Privilege::USER,
                ..Encoding::default()
            };
            let place = Place {
                tid: 0,
                cpu: -1,
                cgroup: None,
                inherit: Inherit::None,
                start_on: StartOn::Call,
            };
            Counter::open(&encoding, &place, None).ok()
        });
    }
}
