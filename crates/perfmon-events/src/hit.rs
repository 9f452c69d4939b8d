//! What a name stands for.

use perfmon_core::Refusal;

use crate::found::Found;
use crate::modifiers::Modifiers;

/// One of the events that a name stands for; there is more than one where the machine has several PMUs
/// of a kind.
#[derive(Debug)]
pub(crate) struct Hit {
    /// How to write this event alone, without letters; `None` if the text as typed does.
    pub(crate) text: Option<String>,
    pub(crate) found: Result<Found, Refusal>,
}

impl Hit {
    /// The PMU that it is of, if sysfs names it.
    pub(crate) fn pmu(&self) -> Option<&str> {
        Some(&self.found.as_ref().ok()?.device.as_ref()?.name)
    }
}

/// All events that a name stands for. The first one is kept apart: nearly always it is the only one, and
/// then nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    first: Option<Hit>,
    others: Vec<Hit>,
}

impl Hits {
    /// The event that the text as typed stands for.
    pub(crate) fn one(found: Result<Found, Refusal>) -> Self {
        Self { first: Some(Hit { text: None, found }), others: Vec::new() }
    }

    pub(crate) fn push(&mut self, hit: Hit) {
        match self.first {
            None => self.first = Some(hit),
            Some(_) => self.others.push(hit),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn first(self) -> Option<Hit> {
        self.first
    }

    /// A text that stands for one event alone needs no other.
    pub(crate) fn typed_if_one(mut self) -> Self {
        if let (Some(one), []) = (&mut self.first, self.others.as_slice()) {
            one.text = None;
        }
        self
    }
}

impl FromIterator<Hit> for Hits {
    fn from_iter<I: IntoIterator<Item = Hit>>(hits: I) -> Self {
        let mut hits = hits.into_iter();
        Self { first: hits.next(), others: hits.collect() }
    }
}

impl IntoIterator for Hits {
    type Item = Hit;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Hit>, std::vec::IntoIter<Hit>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

/// What a word stands for, and what is left of its text.
pub(crate) struct Word<'a> {
    pub(crate) hits: Hits,
    pub(crate) end: End<'a>,
}

/// What stands behind a name.
pub(crate) enum End<'a> {
    /// Letters that are still to be read.
    Letters(Option<&'a str>),
    Read(Modifiers),
}
