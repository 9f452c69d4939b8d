//! The events that were found. There may be ten thousands: all their text is in one string.

use std::ops::Range;

use perfmon::{Entry, Source};

/// A part of [`Found::text`].
type Piece = Range<usize>;

/// The events that were found, those of a PMU one behind the other.
#[derive(Default)]
pub(crate) struct Found {
    text: String,
    /// Other names, and unit masks with what they count, of all events.
    pieces: Vec<Piece>,
    pub(crate) events: Vec<FoundEvent>,
}

/// An event that was found.
#[derive(Clone)]
pub(crate) struct FoundEvent {
    pub(crate) source: Source,
    pub(crate) elsewhere: bool,
    pmu: Piece,
    name: Piece,
    about: Piece,
    errata: Option<Piece>,
    also: Range<usize>,
    /// Name and description by turns.
    masks: Range<usize>,
}

impl Found {
    /// Adds an event of a catalog.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) {
        let last = self.events.last().map(|last| last.pmu.clone());
        let pmu = match last.filter(|last| self.text[last.clone()] == *entry.pmu) {
            Some(last) => last,
            None => self.put(&entry.pmu),
        };
        let name = self.put(&entry.name);
        let about = self.put(&entry.about);
        let errata = entry.errata.as_ref().map(|errata| self.put(errata));
        let also = self.put_all(entry.also.iter().map(|name| &**name));
        let masks = entry.masks.iter().flat_map(|(name, about)| [&**name, &**about]);
        let masks = self.put_all(masks);
        let (source, elsewhere) = (entry.source, entry.elsewhere);
        self.events.push(FoundEvent { source, elsewhere, pmu, name, about, errata, also, masks });
    }

    fn put(&mut self, text: &str) -> Piece {
        let start = self.text.len();
        // A table has one line an event.
        self.text.extend(
            text.split('\n')
                .enumerate()
                .flat_map(|(place, line)| [if place > 0 { " " } else { "" }, line]),
        );
        start..self.text.len()
    }

    fn put_all<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Range<usize> {
        let start = self.pieces.len();
        for text in texts {
            let piece = self.put(text);
            self.pieces.push(piece);
        }
        start..self.pieces.len()
    }

    /// Puts the events of a PMU together where their source mixes them.
    pub(crate) fn sort(&mut self) {
        let Self { text, events, .. } = self;
        let from = events.partition_point(|event| event.source != Source::Vendor);
        let pmu = |event: &FoundEvent| &text[event.pmu.clone()];
        if let Some(mixed) = events.get_mut(from..) {
            mixed.sort_by(|left, right| pmu(left).cmp(pmu(right)));
        }
    }

    pub(crate) fn pmu(&self, event: &FoundEvent) -> &str {
        &self.text[event.pmu.clone()]
    }

    /// The name, as it is to be typed.
    pub(crate) fn name(&self, event: &FoundEvent) -> &str {
        &self.text[event.name.clone()]
    }

    pub(crate) fn about(&self, event: &FoundEvent) -> &str {
        &self.text[event.about.clone()]
    }

    pub(crate) fn errata(&self, event: &FoundEvent) -> Option<&str> {
        event.errata.clone().map(|errata| &self.text[errata])
    }

    /// Other names.
    pub(crate) fn also(&self, event: &FoundEvent) -> impl Iterator<Item = &str> {
        self.texts(event.also.clone())
    }

    /// Unit masks, with what they count.
    pub(crate) fn masks(&self, event: &FoundEvent) -> impl Iterator<Item = (&str, &str)> {
        let at = |place: usize| &self.text[self.pieces[place].clone()];
        event.masks.clone().step_by(2).map(move |place| (at(place), at(place + 1)))
    }

    fn texts(&self, pieces: Range<usize>) -> impl Iterator<Item = &str> {
        self.pieces[pieces].iter().map(|piece| &self.text[piece.clone()])
    }
}
