//! What `doctor` found out, as it is printed: the fields are those of docs/schema.md.

use serde::Serialize;

pub(crate) const SCHEMA: &str = "pfmon.doctor/1";

/// The result of `pfmon doctor`.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorResult {
    pub(crate) schema: &'static str,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// The kernel's word for the architecture.
    pub(crate) machine: String,
    pub(crate) uid: u32,
    /// Those of this process that matter.
    pub(crate) capabilities: Vec<&'static str>,
    pub(crate) abilities: Vec<AbilityRow>,
}

/// Something that can be done here, or not.
#[derive(Debug, Serialize)]
pub(crate) struct AbilityRow {
    pub(crate) area: &'static str,
    pub(crate) name: &'static str,
    pub(crate) available: bool,
    /// More of what was found: numbers, limits.
    pub(crate) detail: Option<String>,
    /// What is done with it.
    pub(crate) serves: &'static str,
    /// Why it is not available.
    pub(crate) why: Option<String>,
    /// What to change for it.
    pub(crate) hint: Option<String>,
}
