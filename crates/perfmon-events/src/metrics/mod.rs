//! Metrics: numbers derived from counts, such as instructions per cycle. Text files with events and
//! formulas become groups of metrics, which are evaluated over counts. `docs/metrics.md` has the format.
//!
//! ```
//! use perfmon_events::metrics::{Group, MetricValue, Operand};
//!
//! let group = Group::builtin("ipc").unwrap();
//! assert_eq!(group.event_list(), "{instructions,cycles}");
//! let count = |variable: &str| match group.index(variable) {
//!     Some(0) => Operand::Exact(3e9),
//!     Some(1) => Operand::Exact(2e9),
//!     _ => Operand::Missing("not counted".to_owned()),
//! };
//! assert_eq!(group.metrics[0].name, "IPC");
//! assert_eq!(group.metrics[0].evaluate(&count, false), MetricValue::Exact(1.5));
//! ```
//!
//! # What is an error, and what a value
//!
//! A file that can't be read is a [`MetricsError`]. A metric that has no number, since one of its events
//! has none, a divisor is 0, or its events did not run together, is a [`MetricValue`] that says why; the
//! other metrics of the group stay.

mod builtin;
mod error;
mod evaluate;
mod find;
mod formula;
mod group;
mod likwid;
mod toml_file;

pub use error::MetricsError;
pub use evaluate::{MetricValue, Operand};
pub use find::{directories, find, names};
pub use formula::Formula;
pub use group::{BUILT_IN_VARIABLES, FILE_BYTES_MAX, Group, GroupEvent, Metric};
