use std::time::Duration;

use perfmon_core::{Encoding, Group, PlannedEvent, Reading, SetId, StartOn};
use perfmon_data::{GroupRead, group_read_words, pmu_type};
use perfmon_sys::{Errno, PageReading, UserPage, read_words};

use crate::counter::{Counter, Place};
use crate::user_read::UserRead;

/// Most events put together for the sake of one read; the kernel reads groups of up to 16 KiB.
const SHARED_READ_MAX: usize = 256;
/// A group whose child is just coming or going can't be read: for microseconds, or longer if that child has to
/// wait for a CPU meanwhile.
const CHILD_RETRIES: u32 = 5000;
const CHILD_RETRIES_WITHOUT_SLEEP: u32 = 100;
/// Most that may lie between the calls that enable a group and its witness.
const ENABLE_APART_NS: u64 = 100_000;
const CHILD_SLEEP: Duration = Duration::from_micros(50);

/// Events of one set that are opened and read as one perf group.
#[derive(Debug)]
pub(crate) struct CounterGroup {
    pub(crate) set: SetId,
    counters: Vec<Counter>,
    /// For each counter its place in the plan.
    places: Vec<usize>,
    words: Vec<u64>,
    /// Of a pinned group on a thread: an event that is never in error, but otherwise the same.
    witness: Option<Counter>,
    /// For each counter its page, where counters can be read without a system call.
    pages: Vec<UserPage>,
}

/// Which events of a plan are opened as one group.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    pub(crate) set: SetId,
    /// Places in the plan, leader first.
    pub(crate) places: Vec<usize>,
    /// All or nothing; otherwise the events are together only because one read is cheaper than many.
    pub(crate) together: bool,
}

/// Sorts the events of a plan into groups.
///
/// The kernel's software PMUs never run out of counters, so putting their events together changes nothing
/// but the number of reads. All other events on their own stay on their own.
pub(crate) fn plan_groups(events: &[PlannedEvent]) -> Vec<GroupPlan> {
    let mut plans: Vec<(Group, GroupPlan)> = Vec::new();
    for (place, event) in events.iter().enumerate() {
        let together = event.group != Group::Free;
        let joins = |(group, plan): &&mut (Group, GroupPlan)| {
            plan.set == event.set
                && *group == event.group
                && (together
                    || shares_read(event)
                        && plan.places.len() < SHARED_READ_MAX
                        && events.get(plan.places[0]).is_some_and(shares_read))
        };
        match plans.iter_mut().rev().find(joins) {
            Some((_, plan)) => plan.places.push(place),
            None => plans
                .push((event.group, GroupPlan { set: event.set, places: vec![place], together })),
        }
    }
    plans.into_iter().map(|(_, plan)| plan).collect()
}

/// Opens an event such that user mode may read it, if that can be.
fn open_readable(
    event: &PlannedEvent,
    target: &Place,
    leader: Option<&Counter>,
    user_read: &UserRead,
) -> Result<Counter, Errno> {
    let &PlannedEvent { ref encoding, period, .. } = event;
    let open = |encoding: &Encoding| Counter::open_overflowing(encoding, target, leader, period);
    let asking = user_read.asking(encoding);
    asking.and_then(|asking| open(&asking).ok()).map_or_else(|| open(encoding), Ok)
}

/// Opens the group once more, enabled, which makes the kernel check it with its leader: an event that does not fit is
/// refused, with its place in the plan.
fn check_fits(
    plan: &GroupPlan,
    events: &[PlannedEvent],
    target: &Place,
) -> Result<(), (usize, Errno)> {
    let mut members = plan.places.iter().filter_map(|&place| Some((place, events.get(place)?)));
    let hardware = members.clone().filter(|(_, event)| !is_software(&event.encoding)).count();
    let Some((_, leader)) = members.next().filter(|_| hardware > 1) else { return Ok(()) };
    // What else goes wrong is not of the group.
    let Ok(leader) = Counter::open_enabled(&leader.encoding, target) else { return Ok(()) };
    let mut counters = Vec::new();
    for (place, event) in members {
        match Counter::open(&event.encoding, target, Some(&leader)) {
            Ok(counter) => counters.push(counter),
            Err(Errno::INVAL) => return Err((place, Errno::INVAL)),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Whether `enabled_ns` is less than the `witness_ns` that it should be, by more than what lies between the two calls
/// that enable them.
fn falls_short(enabled_ns: u64, witness_ns: u64) -> bool {
    witness_ns.saturating_sub(enabled_ns) > (witness_ns / 100).max(ENABLE_APART_NS)
}

fn shares_read(event: &PlannedEvent) -> bool {
    let encoding = &event.encoding;
    is_software(encoding) && !encoding.pinned && !encoding.exclusive
}

/// Whether the event is one of the PMUs that never run out of counters.
pub fn is_software(encoding: &Encoding) -> bool {
    // The PMUs of probes have numbers of their own, but are the only ones with a path.
    encoding.path.is_some()
        || matches!(
            encoding.pmu_type,
            pmu_type::SOFTWARE | pmu_type::TRACEPOINT | pmu_type::BREAKPOINT
        )
}

/// Whether the kernel checks that a group fits onto the PMU with its leader, although that is still disabled: x86's
/// `validate_group` does; arm64's leaves it out, and so takes groups that will never be scheduled.
const LEADER_IS_CHECKED: bool = cfg!(target_arch = "x86_64");

impl CounterGroup {
    /// Opens the events of `plan`. Gives the group, unless none of its events could be had, and what was
    /// refused: places in the plan with their errno.
    pub(crate) fn open(
        plan: &GroupPlan,
        events: &[PlannedEvent],
        target: &Place,
        user_read: &UserRead,
    ) -> (Option<Self>, Vec<(usize, Errno)>) {
        let mut group = Self {
            set: plan.set,
            counters: Vec::with_capacity(plan.places.len()),
            places: Vec::with_capacity(plan.places.len()),
            words: Vec::new(),
            witness: None,
            pages: Vec::new(),
        };
        if target.is_thread() && events.get(plan.places[0]).is_some_and(|e| e.encoding.pinned) {
            // Before the group, so that it is enabled no later.
            group.witness = Counter::open_witness(target).ok();
        }
        let mut refused = Vec::new();
        for &place in &plan.places {
            let Some(event) = events.get(place) else { continue };
            match open_readable(event, target, group.counters.first(), user_read) {
                Ok(counter) => {
                    group.counters.push(counter);
                    group.places.push(place);
                }
                Err(errno) => refused.push((place, errno)),
            }
            if plan.together && !refused.is_empty() {
                return (None, refused);
            }
        }
        let is_unchecked = target.start_on == StartOn::Call && !LEADER_IS_CHECKED;
        if plan.together
            && is_unchecked
            && let Err(refusal) = check_fits(plan, events, target)
        {
            return (None, vec![refusal]);
        }
        // One more than a full answer, so that a longer one is noticed.
        group.words = vec![0; group_read_words(group.counters.len()) + 1];
        (Some(group).filter(|group| !group.counters.is_empty()), refused)
    }

    /// The places that its events have in the plan.
    pub(crate) fn places(&self) -> &[usize] {
        &self.places
    }

    /// Its events: for each its place in the plan and its counter.
    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, &Counter)> {
        self.places.iter().copied().zip(&self.counters)
    }

    /// Maps the counters for reads without a system call, if the kernel gives all of them.
    pub(crate) fn map_pages(&mut self) {
        let pages: Result<_, _> = self.counters.iter().map(UserPage::map).collect();
        self.pages = pages.unwrap_or_default();
    }

    /// Whether it has pages to read from.
    pub(crate) fn has_pages(&self) -> bool {
        !self.pages.is_empty()
    }

    /// The hardware counter that holds the event at `place` of the plan now, if user mode may read it.
    pub(crate) fn hardware_index(&self, place: usize) -> Option<u32> {
        let member = self.places.iter().position(|&other| other == place)?;
        self.pages.get(member)?.hardware_index()
    }

    pub(crate) fn enable(&self) -> Result<(), Errno> {
        self.witness.iter().chain(self.counters.first()).try_for_each(perfmon_sys::enable)
    }

    pub(crate) fn disable(&self) -> Result<(), Errno> {
        self.counters.first().into_iter().chain(&self.witness).try_for_each(perfmon_sys::disable)
    }

    /// Reads the group into the places that its events have in the plan. Allocates nothing.
    #[inline]
    pub(crate) fn read(&mut self, readings: &mut [Reading]) -> Result<(), Errno> {
        if !self.pages.is_empty() && self.read_pages(readings) {
            return Ok(());
        }
        let Some(leader) = self.counters.first() else { return Ok(()) };
        let mut retries = 0;
        let length = loop {
            match read_words(leader, &mut self.words) {
                Err(Errno::CHILD) if retries < CHILD_RETRIES => {
                    retries += 1;
                    if retries < CHILD_RETRIES_WITHOUT_SLEEP {
                        std::thread::yield_now();
                    } else {
                        // A real sleep lets the child have our CPU, whatever our priorities.
                        std::thread::sleep(CHILD_SLEEP);
                    }
                }
                result => break result?,
            }
        };
        let words = self.words.get(..length).unwrap_or_default();
        if words.is_empty() {
            // End of file: the kernel's word for an event in error.
            for &place in &self.places {
                if let Some(reading) = readings.get_mut(place) {
                    *reading = Reading { in_error: true, ..Reading::default() };
                }
            }
            return Ok(());
        }
        let group = GroupRead::parse(words).ok_or(Errno::IO)?;
        if group.values.len() != self.places.len() {
            return Err(Errno::IO);
        }
        let in_error = self.was_in_error(group.enabled_ns)?;
        for (&place, &value) in self.places.iter().zip(group.values) {
            if let Some(reading) = readings.get_mut(place) {
                *reading = Reading {
                    value,
                    enabled_ns: group.enabled_ns,
                    running_ns: group.running_ns,
                    in_error,
                };
            }
        }
        Ok(())
    }

    /// Whether the group was in error for part of the time: a target's end makes the kernel forget it, but a
    /// group in error is not enabled.
    fn was_in_error(&self, enabled_ns: u64) -> Result<bool, Errno> {
        let Some(witness) = &self.witness else { return Ok(false) };
        let mut words = [0; group_read_words(1)];
        let length = read_words(witness, &mut words)?;
        let witness = GroupRead::parse(words.get(..length).unwrap_or_default()).ok_or(Errno::IO)?;
        Ok(falls_short(enabled_ns, witness.enabled_ns))
    }

    /// Reads all counters from their pages; false if one could not be, or shares the PMU (its times are
    /// then older than its count).
    fn read_pages(&self, readings: &mut [Reading]) -> bool {
        for (&place, page) in self.places.iter().zip(&self.pages) {
            let Some(PageReading { value, enabled_ns, running_ns }) = page.read() else {
                return false;
            };
            if enabled_ns != running_ns {
                return false;
            }
            if let Some(reading) = readings.get_mut(place) {
                *reading = Reading { value, enabled_ns, running_ns, in_error: false };
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a group that missed a part of its time is noticed, and one that was enabled a call later is not.
    #[test]
    fn missing_enabled_time_is_noticed() {
        assert!(falls_short(0, 1_000_000));
        assert!(falls_short(50_000_000, 100_000_000));
        assert!(falls_short(98_999_999, 100_000_000));
        assert!(!falls_short(99_500_000, 100_000_000));
        assert!(!falls_short(0, 100_000));
        assert!(!falls_short(100, 50));
    }
}
