use std::fmt;

use perfmon_core::{Count, Tally};

/// What a session says of its events, in the order asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(Vec<CountRow>);

/// One event with its tally.
#[derive(Clone, Debug, PartialEq)]
pub struct CountRow {
    /// The event as it was typed.
    pub event: String,
    /// What is counted: `events`, or `ns`.
    pub unit: String,
    /// The count and the times behind it.
    pub tally: Tally,
}

impl Counts {
    pub(crate) fn new(rows: Vec<CountRow>) -> Self {
        Self(rows)
    }

    /// The tally of the event that was typed as `event`; `None` if none was.
    pub fn get(&self, event: &str) -> Option<&Tally> {
        self.0.iter().find(|row| row.event == event).map(|row| &row.tally)
    }

    /// The exact count of the event that was typed as `event`; `None` if there is none.
    pub fn exact(&self, event: &str) -> Option<u64> {
        self.get(event)?.count.exact()
    }

    /// The rows, in the order asked for.
    pub fn iter(&self) -> std::slice::Iter<'_, CountRow> {
        self.0.iter()
    }
}

impl IntoIterator for Counts {
    type Item = CountRow;
    type IntoIter = std::vec::IntoIter<CountRow>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Counts {
    type Item = &'a CountRow;
    type IntoIter = std::slice::Iter<'a, CountRow>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for CountRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, unit, tally } = self;
        let unit = if unit == "events" { String::new() } else { format!(" {unit}") };
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
