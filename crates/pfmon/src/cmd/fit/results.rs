//! What `fit` found out, as it is printed: the fields are those of docs/schema.md.

use serde::Serialize;

use crate::cmd::refusal::RefusalRow;

pub(crate) const SCHEMA: &str = "pfmon.fit/1";

/// The result of `pfmon fit`.
#[derive(Debug, Serialize)]
pub(crate) struct FitResult {
    pub(crate) schema: &'static str,
    /// Names were looked up on this machine, and events were tried.
    pub(crate) here: bool,
    pub(crate) cpus: Vec<String>,
    pub(crate) events: Vec<EventRow>,
    /// All events can be counted together; `None` if that is not known.
    pub(crate) fits: Option<bool>,
    /// There is no split into fewer groups; `None` if that is not known, since nothing was tried.
    pub(crate) is_smallest: Option<bool>,
    /// The events of each group.
    pub(crate) groups: Vec<Vec<String>>,
    /// The groups as they can be typed; empty without any.
    pub(crate) split: String,
    pub(crate) notes: Vec<String>,
}

/// An event.
#[derive(Debug, Serialize)]
pub(crate) struct EventRow {
    pub(crate) event: String,
    /// The place of its group; `None` if it is left out.
    pub(crate) group: Option<usize>,
    /// Why it is left out.
    pub(crate) refusal: Option<RefusalRow>,
}
