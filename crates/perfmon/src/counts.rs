use std::fmt;
use std::sync::Arc;

use perfmon_core::{Count, Tally};
use perfmon_events::Event;

/// What a session says of its events, in the order asked for.
#[derive(Clone, Debug)]
pub struct Counts {
    events: Arc<[Event]>,
    tallies: Vec<Tally>,
}

/// One event with its tally.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountRow<'a> {
    /// The event as it was typed.
    pub event: &'a str,
    /// What is counted: `events`, `ns`, or a unit of the PMU's.
    pub unit: &'a str,
    /// The count times this is in `unit`; 1 for all but some events of sysfs PMUs.
    pub scale: f64,
    /// The count and the times behind it.
    pub tally: &'a Tally,
}

impl Counts {
    /// One tally for each of `events`.
    pub(crate) fn new(events: Arc<[Event]>, tallies: Vec<Tally>) -> Self {
        Self { events, tallies }
    }

    /// The tally of the event that was typed as `event`; `None` if none was.
    pub fn get(&self, event: &str) -> Option<&Tally> {
        self.iter().find(|row| row.event == event).map(|row| row.tally)
    }

    /// The exact count of the event that was typed as `event`; `None` if there is none.
    pub fn exact(&self, event: &str) -> Option<u64> {
        self.get(event)?.count.exact()
    }

    /// The rows, in the order asked for.
    pub fn iter(&self) -> impl Iterator<Item = CountRow<'_>> {
        self.events.iter().zip(&self.tallies).map(|(event, tally)| CountRow {
            event: &event.text,
            unit: &event.unit,
            scale: event.scale,
            tally,
        })
    }
}

impl fmt::Display for CountRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, unit, scale, tally } = self;
        let unit = match (*unit, *scale == 1.0) {
            ("events", true) => String::new(),
            (unit, true) => format!(" {unit}"),
            (unit, false) => format!(" × {scale} {unit}"),
        };
        match &tally.count {
            Count::Exact(value) => write!(f, "{event}: {value}{unit}"),
            Count::Estimated(estimate) => write!(
                f,
                "{event}: about {}{unit} ({:.1} % counted; {})",
                estimate.value,
                tally.coverage() * 100.0,
                estimate.reason
            ),
            Count::NotCounted(reason) => write!(f, "{event}: not counted: {reason}"),
            Count::Unsupported(reason) => write!(f, "{event}: unsupported: {reason}"),
        }
    }
}
