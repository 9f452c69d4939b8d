//! Refusals as they are printed.

use perfmon::Refusal;
use serde::Serialize;

/// Why something can't be had.
#[derive(Debug, Serialize)]
pub(crate) struct RefusalRow {
    pub(crate) errno: Option<i32>,
    pub(crate) errno_name: Option<&'static str>,
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
    #[serde(skip)]
    pub(crate) whole: String,
}

impl RefusalRow {
    pub(crate) fn new(refusal: &Refusal) -> Self {
        Self {
            errno: refusal.errno_number(),
            errno_name: refusal.errno_name(),
            why: refusal.why().to_owned(),
            hint: refusal.next_step().map(ToOwned::to_owned),
            whole: refusal.to_string(),
        }
    }
}
