//! One module a subcommand.

pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod list;
pub(crate) mod names;
pub(crate) mod pmu;
mod prober;
mod refusal;
pub(crate) mod stat;
mod sysfs;
