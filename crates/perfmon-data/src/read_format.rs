/// How many 64-bit words a read of a group with `members` events gives.
pub const fn group_read_words(members: usize) -> usize {
    3 + members
}

/// A group's counts as read(2) gives them: `PERF_FORMAT_GROUP` with both total times.
///
/// # References
/// - perf_event_open(2), "Reading results"
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRead<'a> {
    /// Nanoseconds for which the group was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds for which it was on the PMU.
    pub running_ns: u64,
    /// The counts, leader first, then its siblings in the order in which they were opened.
    pub values: &'a [u64],
}

impl<'a> GroupRead<'a> {
    /// Takes apart the `words` read; `None` if they are fewer than they say.
    #[inline]
    pub fn parse(words: &'a [u64]) -> Option<Self> {
        let [members, enabled_ns, running_ns, values @ ..] = words else { return None };
        let values = values.get(..usize::try_from(*members).ok()?)?;
        Some(Self { enabled_ns: *enabled_ns, running_ns: *running_ns, values })
    }
}

/// One event's count as read(2) gives it, and the event's id: both total times and `PERF_FORMAT_ID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRead {
    /// The count.
    pub value: u64,
    /// Nanoseconds for which the event was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds for which it was on the PMU.
    pub running_ns: u64,
    /// The event's id; an inherited event has that of the one it was inherited from.
    pub id: u64,
}

impl EventRead {
    /// How many words a read gives.
    pub const WORDS: usize = 4;

    /// Takes apart the `words` read; `None` if they are too few.
    pub fn parse(words: &[u64]) -> Option<Self> {
        let &[value, enabled_ns, running_ns, id, ..] = words else { return None };
        Some(Self { value, enabled_ns, running_ns, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a group is taken apart, and that too few words are noticed.
    #[test]
    fn group_is_taken_apart() {
        let words = [2, 100, 50, 7, 9];
        let expected = GroupRead { enabled_ns: 100, running_ns: 50, values: &[7, 9] };
        assert_eq!(GroupRead::parse(&words), Some(expected));
        assert_eq!(group_read_words(2), words.len());
        assert_eq!(GroupRead::parse(&words[..4]), None);
        assert_eq!(GroupRead::parse(&[]), None);
        assert_eq!(GroupRead::parse(&[u64::MAX, 0, 0, 1]), None);
    }
}
