//! What `pmu` found, as it is printed: the fields are those of docs/schema.md.

use serde::Serialize;

pub(crate) const SCHEMA: &str = "pfmon.pmu/1";

/// The result of `pfmon pmu`.
#[derive(Debug, Serialize)]
pub(crate) struct PmuResult {
    pub(crate) schema: &'static str,
    /// PMUs were looked up on this machine.
    pub(crate) here: bool,
    pub(crate) cpus: Vec<String>,
    pub(crate) descriptions: Vec<DescriptionRow>,
    /// The PMUs in sysfs.
    pub(crate) kernel_pmus: Vec<KernelPmuRow>,
    /// The one description that was asked for.
    pub(crate) details: Option<Details>,
    pub(crate) notes: Vec<String>,
}

/// A description.
#[derive(Debug, Serialize)]
pub(crate) struct DescriptionRow {
    pub(crate) name: String,
    pub(crate) also: Vec<String>,
    pub(crate) version: String,
    pub(crate) about: String,
    /// It describes a PMU of this machine's CPU.
    pub(crate) active: bool,
    /// The PMUs in sysfs that it is about.
    pub(crate) devices: Vec<String>,
    /// The fixed `perf_event_attr.type`, of a PMU that all machines have.
    pub(crate) perf_type: Option<u32>,
    pub(crate) events: usize,
    pub(crate) pmcs: usize,
    pub(crate) pmds: usize,
    pub(crate) file: String,
    pub(crate) built_in: bool,
}

/// A PMU in sysfs.
#[derive(Debug, Serialize)]
pub(crate) struct KernelPmuRow {
    pub(crate) name: String,
    pub(crate) r#type: u32,
    pub(crate) cpus: Option<String>,
    /// The descriptions that are about it.
    pub(crate) descriptions: Vec<String>,
}

/// What a description says beside its events.
#[derive(Debug, Serialize)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) sources: Vec<String>,
    pub(crate) architectural: bool,
    pub(crate) machines: Vec<MachineRow>,
    pub(crate) device_patterns: Vec<String>,
    pub(crate) event_layout: Option<String>,
    pub(crate) layouts: Vec<LayoutRow>,
    pub(crate) pmcs: Vec<PmcRow>,
    pub(crate) pmds: Vec<PmdRow>,
    pub(crate) modifiers: Vec<ModifierRow>,
    pub(crate) constraints: Vec<ConstraintRow>,
    pub(crate) errata: Vec<ErrataRow>,
    pub(crate) event_sources: Vec<SourceRow>,
}

/// A machine that a description fits.
#[derive(Debug, Serialize)]
pub(crate) struct MachineRow {
    pub(crate) arch: Option<String>,
    pub(crate) vendor: Option<String>,
    pub(crate) family: Option<u32>,
    pub(crate) models: Vec<(u32, u32)>,
    pub(crate) steppings: Vec<(u32, u32)>,
    pub(crate) implementer: Option<u32>,
    pub(crate) parts: Vec<u32>,
}

/// How bits of a control register become a perf event.
#[derive(Debug, Serialize)]
pub(crate) struct LayoutRow {
    pub(crate) name: String,
    pub(crate) fields: Vec<LayoutFieldRow>,
}

/// A field of a layout.
#[derive(Debug, Serialize)]
pub(crate) struct LayoutFieldRow {
    pub(crate) name: String,
    /// `None` if no register holds it.
    pub(crate) bits: Option<String>,
    pub(crate) perf: String,
}

/// A control register.
#[derive(Debug, Serialize)]
pub(crate) struct PmcRow {
    pub(crate) index: u16,
    pub(crate) name: String,
    pub(crate) address: Option<u64>,
    pub(crate) default: u64,
    pub(crate) reserved: u64,
    pub(crate) layout: Option<String>,
    pub(crate) thread_only: bool,
    pub(crate) system_only: bool,
    pub(crate) unsupported: Option<String>,
}

/// A data register.
#[derive(Debug, Serialize)]
pub(crate) struct PmdRow {
    pub(crate) index: u16,
    pub(crate) name: String,
    pub(crate) address: Option<u64>,
    pub(crate) width: u8,
    pub(crate) pmcs: Vec<u16>,
    /// The first bit of its part of the control register.
    pub(crate) shift: u8,
    /// The one event that it counts.
    pub(crate) fixed: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) thread_only: bool,
    pub(crate) system_only: bool,
    pub(crate) unsupported: Option<String>,
}

/// A modifier of events.
#[derive(Debug, Serialize)]
pub(crate) struct ModifierRow {
    pub(crate) name: String,
    pub(crate) field: Option<String>,
    pub(crate) about: String,
}

/// An event that not all counters can count.
#[derive(Debug, Serialize)]
pub(crate) struct ConstraintRow {
    pub(crate) event: String,
    pub(crate) pmds: Vec<u16>,
}

/// An event with something known to be wrong.
#[derive(Debug, Serialize)]
pub(crate) struct ErrataRow {
    pub(crate) event: String,
    pub(crate) errata: String,
}

/// An event that is described elsewhere than the others.
#[derive(Debug, Serialize)]
pub(crate) struct SourceRow {
    pub(crate) event: String,
    pub(crate) source: String,
}
