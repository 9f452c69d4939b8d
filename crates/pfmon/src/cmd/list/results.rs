//! What `list` found, as it is printed: the fields are those of docs/schema.md.

use serde::Serialize;

use super::found::{Found, FoundEvent};
use super::tries::{Opens, Outcome, Tried};

pub(crate) const SCHEMA: &str = "pfmon.list/1";

/// The result of `pfmon list`.
#[derive(Debug, Serialize)]
pub(crate) struct ListResult<'a> {
    pub(crate) schema: &'static str,
    /// Names were looked up on this machine.
    pub(crate) here: bool,
    pub(crate) cpus: Vec<String>,
    pub(crate) events: Vec<EventRow<'a>>,
    pub(crate) notes: Vec<String>,
    /// Events that were not tried since there are too many.
    #[serde(skip)]
    pub(crate) left_out: usize,
}

/// An event.
#[derive(Debug, Serialize)]
pub(crate) struct EventRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) also: Vec<&'a str>,
    pub(crate) source: &'static str,
    pub(crate) pmu: &'a str,
    pub(crate) about: &'a str,
    pub(crate) errata: Option<&'a str>,
    pub(crate) masks: Vec<MaskRow<'a>>,
    /// It is of a description of another machine.
    pub(crate) elsewhere: bool,
    pub(crate) opens: Option<&'static str>,
    /// The unit mask with which it was tried.
    pub(crate) tried_mask: Option<&'a str>,
    /// It was opened itself, and not judged by its kind.
    pub(crate) tried: bool,
    pub(crate) reason: Option<&'a str>,
    /// The reason without what to do.
    #[serde(skip)]
    pub(crate) short_reason: &'a str,
}

/// A unit mask.
#[derive(Debug, Serialize)]
pub(crate) struct MaskRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) about: &'a str,
}

/// The rows of all events that were found.
pub(crate) fn rows<'a>(found: &'a Found, tried: &'a Tried) -> Vec<EventRow<'a>> {
    let pairs = found.events.iter().zip(&tried.outcomes);
    let row = |(event, outcome): (&FoundEvent, &Outcome)| {
        let why = match outcome.opens {
            Opens::No { reason } => tried.reasons.get(reason),
            _ => None,
        };
        EventRow {
            name: found.name(event),
            also: found.also(event).collect(),
            source: event.source.name(),
            pmu: found.pmu(event),
            about: found.about(event),
            errata: found.errata(event),
            masks: found.masks(event).map(|(name, about)| MaskRow { name, about }).collect(),
            elsewhere: event.elsewhere,
            opens: match outcome.opens {
                Opens::NotTried => None,
                Opens::Yes => Some("yes"),
                Opens::User => Some("user"),
                Opens::No { .. } => Some("no"),
            },
            tried_mask: found.masks(event).next().map(|it| it.0).filter(|_| outcome.with_mask),
            tried: outcome.itself,
            reason: why.map(|why| why.whole.as_str()),
            short_reason: why.map_or("", |why| &why.short),
        }
    };
    pairs.map(row).collect()
}
