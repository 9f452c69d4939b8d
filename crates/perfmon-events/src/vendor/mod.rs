//! Events that vendors publish as JSON files: Intel's `perfmon` repository, Arm's `data` repository, and the
//! kernel's `tools/perf/pmu-events`.
//!
//! What is given may be a whole repository, of which the files of the machine's CPU are read; a folder of files of
//! one CPU; or one file. `layout` finds the files, `json` reads their entries, `entry` and `terms` make events of
//! them.
//!
//! References: <https://github.com/intel/perfmon>, <https://github.com/ARM-software/data>; Linux,
//! `tools/perf/pmu-events/README` and `jevents.py`, whose names for PMUs and terms are used.

mod arm;
mod entry;
mod json;
mod layout;
mod load;
mod map;
mod problems;
mod terms;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use perfmon_core::Refusal;

use crate::machine::CpuId;

/// The events of vendor files for one CPU.
#[derive(Debug)]
pub(crate) struct VendorEvents {
    /// In order of their names without regard to case; of one name, those of core PMUs first.
    events: Vec<VendorEvent>,
    problems: Vec<String>,
}

/// One event of a vendor file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VendorEvent {
    /// As the file spells it.
    pub(crate) name: String,
    /// What it counts; empty if the file does not say.
    pub(crate) about: String,
    /// The PMU's name in sysfs, without the number of one of many: `cpu` for whatever the core PMU is called.
    pub(crate) pmu: String,
    /// Terms of the PMU's format, with their values; those that are 0 are left out, but for the first.
    pub(crate) terms: Vec<(String, u64)>,
    /// What a count of 1 stands for, in `unit`.
    pub(crate) scale: Option<f64>,
    pub(crate) unit: Option<String>,
    pub(crate) errata: Option<String>,
    pub(crate) deprecated: bool,
    /// The counters that can count it, in the vendor's words.
    pub(crate) counters: Option<String>,
    /// Where it is defined.
    pub(crate) file: PathBuf,
}

impl VendorEvents {
    /// Reads the files at `path` that are for `cpu`. What is wrong with single files and entries is told by
    /// [`problems`](Self::problems); it is an error if there are no events at all.
    pub(crate) fn load(path: &Path, cpu: &CpuId) -> Result<Self, Refusal> {
        load::load(path, cpu)
    }

    /// All events called `name`, without regard to case: one a PMU, that of the core PMU first.
    pub(crate) fn find_all(&self, name: &str) -> &[VendorEvent] {
        let first = self.events.partition_point(|event| order(&event.name, name).is_lt());
        let rest = self.events.get(first..).unwrap_or_default();
        let count = rest.partition_point(|event| order(&event.name, name).is_eq());
        rest.get(..count).unwrap_or_default()
    }

    /// All events, in order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &VendorEvent> {
        self.events.iter()
    }

    /// What could not be used, and why: `file: what`.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }
}

/// The order of names without regard to case.
fn order(left: &str, right: &str) -> Ordering {
    let left = left.bytes().map(|byte| byte.to_ascii_lowercase());
    left.cmp(right.bytes().map(|byte| byte.to_ascii_lowercase()))
}
