//! What `explain` found out, as it is printed: the fields are those of docs/schema.md.

use perfmon::{ParseError, Refusal, Step};
use serde::Serialize;

pub(crate) use super::attr::AttrRow;
use crate::cmd::refusal::RefusalRow;

pub(crate) const SCHEMA: &str = "pfmon.explain/1";

/// The result of `pfmon explain`.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainResult {
    pub(crate) schema: &'static str,
    /// Names were looked up on this machine.
    pub(crate) here: bool,
    pub(crate) cpus: Vec<String>,
    /// One for each argument.
    pub(crate) strings: Vec<StringRow>,
    pub(crate) notes: Vec<String>,
}

/// An argument.
#[derive(Debug, Serialize)]
pub(crate) struct StringRow {
    pub(crate) string: String,
    /// Why it can't be read.
    pub(crate) error: Option<ErrorRow>,
    pub(crate) events: Vec<EventRow>,
}

/// Why a string can't be read.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorRow {
    pub(crate) message: String,
    /// Bytes before the place.
    pub(crate) position: usize,
    pub(crate) expected: String,
    pub(crate) near: Vec<String>,
    pub(crate) steps: Vec<StepRow>,
    /// With the place pointed at.
    #[serde(skip)]
    pub(crate) whole: String,
}

impl ErrorRow {
    pub(crate) fn new(error: &ParseError, steps: Vec<StepRow>) -> Self {
        let whole = error.to_string();
        Self {
            message: whole.lines().next().unwrap_or_default().to_owned(),
            position: error.position(),
            expected: error.expected().to_owned(),
            near: error.near_matches().to_vec(),
            steps,
            whole,
        }
    }
}

/// A source that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StepRow {
    pub(crate) source: &'static str,
    pub(crate) found: bool,
    pub(crate) what: String,
}

impl StepRow {
    pub(crate) fn new(step: &Step) -> Self {
        Self { source: step.source.name(), found: step.found, what: step.what.clone() }
    }
}

/// An event.
#[derive(Debug, Serialize)]
pub(crate) struct EventRow {
    pub(crate) event: String,
    pub(crate) item: usize,
    pub(crate) group: Option<u16>,
    pub(crate) steps: Vec<StepRow>,
    /// The description or file that says what follows.
    pub(crate) origin: Option<String>,
    pub(crate) about: Option<String>,
    pub(crate) masks: Vec<MaskRow>,
    pub(crate) fields: Vec<FieldRow>,
    pub(crate) errata: Option<String>,
    pub(crate) registers: Vec<RegisterRow>,
    pub(crate) pmu: Option<String>,
    pub(crate) cpus: Option<Vec<u32>>,
    pub(crate) unit: String,
    pub(crate) scale: f64,
    /// Why this machine can't have it.
    pub(crate) refusal: Option<RefusalRow>,
    pub(crate) attr: Option<AttrRow>,
    pub(crate) opens: Option<&'static str>,
    pub(crate) tries: Vec<TryRow>,
}

/// A unit mask that is in force.
#[derive(Debug, Serialize)]
pub(crate) struct MaskRow {
    pub(crate) name: String,
    pub(crate) about: String,
}

impl MaskRow {
    pub(crate) fn new((name, about): (String, String)) -> Self {
        Self { name, about }
    }
}

/// A field that the event sets.
#[derive(Debug, Serialize)]
pub(crate) struct FieldRow {
    pub(crate) name: String,
    pub(crate) value: u64,
}

impl FieldRow {
    pub(crate) fn new((name, value): (String, u64)) -> Self {
        Self { name, value }
    }
}

/// A control register, what it holds for the event, and the data register that then counts it.
#[derive(Debug, Serialize)]
pub(crate) struct RegisterRow {
    pub(crate) pmc: String,
    pub(crate) value: u64,
    pub(crate) pmd: String,
}

impl RegisterRow {
    pub(crate) fn new((pmc, value, pmd): (String, u64, String)) -> Self {
        Self { pmc, value, pmd }
    }
}

/// One try to open an event.
#[derive(Debug, Serialize)]
pub(crate) struct TryRow {
    pub(crate) what: String,
    pub(crate) opens: bool,
    pub(crate) refusal: Option<RefusalRow>,
}

impl TryRow {
    pub(crate) fn new(what: String, result: Result<(), Refusal>) -> Self {
        let refusal = result.err().map(|refusal| RefusalRow::new(&refusal));
        Self { what, opens: refusal.is_none(), refusal }
    }
}
