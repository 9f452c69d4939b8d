use crate::SplitMix64;

/// Highest rate of a script: one occurrence a nanosecond, so that no two fall on the same instant.
pub const OCCURRENCES_PER_US_MAX: u16 = 1000;

/// A time of constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// How long it lasts, in nanoseconds.
    pub duration_ns: u64,
    /// How often the event occurs per microsecond, evenly spread.
    pub occurrences_per_us: u16,
}

/// When an event occurs: segments that follow one another from time 0 on, over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    segments: Vec<Segment>,
    cycle_ns: u128,
    // In thousandths of an occurrence, which makes rates per microsecond exact at any nanosecond.
    cycle_milli: u128,
}

impl Script {
    /// The script of `segments`.
    ///
    /// # Panics
    /// If they last no time at all, or a rate is above [`OCCURRENCES_PER_US_MAX`].
    pub fn new(segments: impl IntoIterator<Item = Segment>) -> Self {
        let segments = Vec::from_iter(segments);
        let cycle_ns = segments.iter().map(|segment| u128::from(segment.duration_ns)).sum();
        assert!(cycle_ns > 0, "a script must last some time");
        let is_slow = |segment: &Segment| segment.occurrences_per_us <= OCCURRENCES_PER_US_MAX;
        assert!(segments.iter().all(is_slow), "an event occurs once a nanosecond at most");
        let cycle_milli = segments.iter().map(|segment| segment.milli(segment.duration_ns)).sum();
        Self { segments, cycle_ns, cycle_milli }
    }

    /// A rate that never changes.
    ///
    /// # Panics
    /// If it is above [`OCCURRENCES_PER_US_MAX`].
    pub fn constant(occurrences_per_us: u16) -> Self {
        Self::new([Segment { duration_ns: 1000, occurrences_per_us }])
    }

    /// `segment_count` segments of up to `duration_ns_max` nanoseconds (both at least 1), with rates
    /// from 0 to the highest, drawn from `seed`.
    pub fn seeded(seed: u64, segment_count: usize, duration_ns_max: u64) -> Self {
        let mut prng = SplitMix64::new(seed);
        Self::new((0..segment_count.max(1)).map(|_| {
            let duration_ns = prng.next_u64() % duration_ns_max.max(1) + 1;
            let rate = prng.next_u64() % (u64::from(OCCURRENCES_PER_US_MAX) + 1);
            let occurrences_per_us = u16::try_from(rate).unwrap_or(OCCURRENCES_PER_US_MAX);
            Segment { duration_ns, occurrences_per_us }
        }))
    }

    /// How often the event occurs from time 0 to `time_ns`.
    ///
    /// # Panics
    /// If that is 2⁶⁴ or more, which takes 584 years.
    pub fn occurrences_until(&self, time_ns: u64) -> u64 {
        let time_ns = u128::from(time_ns);
        let mut milli = time_ns / self.cycle_ns * self.cycle_milli;
        let mut left_ns = u64::try_from(time_ns % self.cycle_ns).unwrap_or(u64::MAX);
        for segment in &self.segments {
            let part_ns = left_ns.min(segment.duration_ns);
            milli += segment.milli(part_ns);
            left_ns -= part_ns;
        }
        u64::try_from(milli / 1000).expect("at most one occurrence a nanosecond")
    }

    /// The first instant by which the event has occurred `count` times more than at `start_ns`, if that
    /// is not after `end_ns`.
    pub(crate) fn instant(&self, start_ns: u64, end_ns: u64, count: u64) -> Option<u64> {
        let goal = self.occurrences_until(start_ns).checked_add(count)?;
        if self.occurrences_until(end_ns) < goal {
            return None;
        }
        let (mut low, mut high) = (start_ns, end_ns);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.occurrences_until(middle) < goal {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

impl Segment {
    fn milli(&self, part_ns: u64) -> u128 {
        u128::from(part_ns) * u128::from(self.occurrences_per_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a constant rate occurs evenly, and that its instants are found to the nanosecond.
    #[test]
    fn constant_rate() {
        let script = Script::constant(300);
        let counts = [0, 3, 4, 1000, 1_000_000].map(|time_ns| script.occurrences_until(time_ns));
        assert_eq!(counts, [0, 0, 1, 300, 300_000]);
        assert_eq!(script.instant(0, 1000, 1), Some(4));
        assert_eq!(script.instant(4, 1000, 299), Some(1000));
        assert_eq!(script.instant(4, 999, 299), None);
    }

    /// Check that segments follow one another, and that the first follows the last.
    #[test]
    fn segments_cycle() {
        let busy = Segment { duration_ns: 10, occurrences_per_us: 1000 };
        let idle = Segment { duration_ns: 90, occurrences_per_us: 0 };
        let script = Script::new([busy, idle]);
        let counts = [5, 10, 100, 105, 1000].map(|time_ns| script.occurrences_until(time_ns));
        assert_eq!(counts, [5, 10, 10, 15, 100]);
    }

    /// Check that a seed replays its script, that another seed gives another one, and that no script
    /// is faster than one occurrence a nanosecond.
    #[test]
    fn seeds_replay() {
        let script = Script::seeded(1, 5, 50);
        assert_eq!(script, Script::seeded(1, 5, 50));
        assert_ne!(script, Script::seeded(2, 5, 50));
        let steps = (0..1000).map(|time_ns| {
            script.occurrences_until(time_ns + 1) - script.occurrences_until(time_ns)
        });
        assert!(steps.into_iter().all(|step| step <= 1));
    }
}
