use std::time::Duration;

use perfmon_core::{SetId, SwitchPolicy};
use perfmon_events::Event;

use super::rotating::REFERENCES_MAX;
use crate::Error;

/// Shortest dwell: a switch takes some ten microseconds, and a thread's timer is no finer.
pub const DWELL_MIN: Duration = Duration::from_micros(100);
/// Longest dwell, a day: what is longer is no rotation.
pub const DWELL_MAX: Duration = Duration::from_secs(86_400);
/// The set of events that count all the time.
pub(crate) const ALWAYS: SetId = SetId(u16::MAX);

/// One event set of a session: events that count together, in turn with those of other sets.
#[derive(Clone, Debug)]
pub struct PlannedSet {
    /// Its number: sets take turns in increasing order. 65,535 is taken.
    pub id: SetId,
    /// Its events as they were written.
    pub text: String,
    /// Its events; none makes a time in which nothing is counted but what always is.
    pub events: Vec<Event>,
    /// When it is left for the next.
    pub leave: Leave,
}

/// When an event set is left for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// After a time: threads' own time, in which they run, or wall time on CPUs and for process trees.
    After {
        /// The time; what is out of [`DWELL_MIN`] to [`DWELL_MAX`] is made one of these, and a note says so.
        dwell: Duration,
        /// Each stay draws its own time, from half of `dwell` to half as much again.
        randomised: bool,
    },
    /// After `period` occurrences of an event.
    Overflow {
        /// The event's number in the set.
        event: usize,
        /// The number of occurrences.
        period: u64,
    },
}

impl Leave {
    pub(crate) fn policy(self) -> SwitchPolicy {
        match self {
            Self::After { dwell, randomised } => {
                let dwell = dwell.clamp(DWELL_MIN, DWELL_MAX);
                let timeout_ns = u64::try_from(dwell.as_nanos()).unwrap_or(u64::MAX);
                SwitchPolicy::Timeout { timeout_ns, randomised }
            }
            Self::Overflow { .. } => SwitchPolicy::Overflow,
        }
    }

    /// What of it can't be had as it was asked for.
    pub(crate) fn note(self) -> Option<String> {
        let Self::After { dwell, .. } = self else { return None };
        let clamped = dwell.clamp(DWELL_MIN, DWELL_MAX);
        (clamped != dwell).then(|| {
            format!("a dwell of {dwell:?} is out of range: the sets' dwell is {clamped:?}")
        })
    }
}

/// Refuses sets that no session can have.
pub(crate) fn check(sets: &[PlannedSet], always: usize) -> Result<(), Error> {
    let refuse = |id: SetId, why: &str| Err(Error::Set { id, why: why.to_owned() });
    for (place, set) in sets.iter().enumerate() {
        if set.id == ALWAYS {
            return refuse(set.id, "the number is taken by the events that count all the time");
        }
        if sets.iter().take(place).any(|other| other.id == set.id) {
            return refuse(set.id, "there are two sets of this number");
        }
        if let Leave::Overflow { event, period } = set.leave {
            if set.events.get(event).is_none() {
                return refuse(set.id, "the event that is to end its turn is not in it");
            }
            if period == 0 || period >= 1 << 62 {
                return refuse(set.id, "the number of occurrences that ends its turn is 1 to 2^62");
            }
        }
    }
    let events = always + sets.iter().map(|set| set.events.len()).sum::<usize>();
    // Beside them there are the clock, and references in every set.
    if events + 1 + REFERENCES_MAX > usize::from(perfmon_core::MAX_PMDS) {
        return Err(Error::TooManyEvents(events));
    }
    Ok(())
}
