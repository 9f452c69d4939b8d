// guest rows: arm64-6.12
//! The bytes of the perf ABI, as far as counting needs them: [`Attr`], [`GroupRead`] and the records of threads.
//!
//! # References
//! - `include/uapi/linux/perf_event.h`
//! - perf_event_open(2)

#![forbid(unsafe_code)]

mod attr;
mod read_format;
mod record;

pub use attr::{ATTR_SIZE_BYTES, Attr, pmu_type};
pub use read_format::{EventRead, GroupRead, group_read_words};
pub use record::{Record, Records};
