//! What wakes user space when a set of events is due to be left.

use std::os::fd::{AsFd, BorrowedFd};

use perfmon_core::{Encoding, Privilege};
use perfmon_data::pmu_type;
use perfmon_sys::{Errno, Ring, disable, enable, set_period};

use crate::counter::{Counter, Place};
use crate::group::CounterGroup;

/// `PERF_COUNT_SW_TASK_CLOCK`.
const TASK_CLOCK: u64 = 1;
/// Pages of a ring that has a few records of 8 bytes at a time.
const RING_PAGES: usize = 1;
/// What a timer is set to before it is set.
const NEVER_NS: u64 = 1 << 62;

/// What has happened to a loaded context since it was asked last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    /// The time set has run out.
    pub timer: bool,
    /// Places in the plan of the events that have overflowed.
    pub events: Vec<usize>,
}

/// An event whose overflows can be waited for.
#[derive(Debug)]
pub(crate) struct Alarm {
    counter: Counter,
    ring: Ring,
    /// Its place in the plan; `None` for a timer.
    place: Option<usize>,
}

/// The alarms of a context.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    alarms: Vec<Alarm>,
    records: Vec<u8>,
}

impl Alarm {
    /// A timer of the running time of the thread at `place`.
    fn timer(place: &Place) -> Result<Self, Errno> {
        let open = |privilege| {
            let pmu_type = pmu_type::SOFTWARE;
            let encoding =
                Encoding { pmu_type, config: TASK_CLOCK, privilege, ..Encoding::default() };
            Counter::open_overflowing(&encoding, place, None, NEVER_NS)
        };
        // Clocks count at all levels, but an overflow at one that is excluded is passed over. So whoever may not look at the
        // kernel has a timer that waits, period by period, until it goes off in user mode.
        let counter = open(Privilege::default()).or_else(|errno| match errno {
            Errno::ACCESS | Errno::PERM => open(Privilege::USER),
            errno => Err(errno),
        })?;
        let ring = Ring::map(&counter, RING_PAGES)?;
        Ok(Self { counter, ring, place: None })
    }
}

impl Alarms {
    /// A timer for the thread at `place`.
    pub(crate) fn with_timer(place: &Place) -> Result<Self, Errno> {
        Ok(Self { alarms: vec![Alarm::timer(place)?], records: Vec::new() })
    }

    /// Also waits for the event at `place` of the plan, which is in one of `groups`, if it was had.
    pub(crate) fn watch(&mut self, groups: &[CounterGroup], place: usize) -> Result<(), Errno> {
        let mut members = groups.iter().flat_map(CounterGroup::members);
        let Some((_, counter)) = members.find(|(other, _)| *other == place) else { return Ok(()) };
        let counter = counter.duplicate()?;
        let ring = Ring::map(&counter, RING_PAGES)?;
        self.alarms.push(Alarm { counter, ring, place: Some(place) });
        Ok(())
    }

    /// Lets the timer go off after `after_ns` more; 0 for never.
    pub(crate) fn set_timer(&self, after_ns: u64) -> Result<(), Errno> {
        let Some(timer) = self.alarms.iter().find(|alarm| alarm.place.is_none()) else {
            return Err(Errno::NOTSUP);
        };
        if after_ns == 0 {
            return disable(&timer.counter);
        }
        set_period(&timer.counter, after_ns)?;
        enable(&timer.counter)
    }

    /// As [`set_timer`](Self::set_timer), but it runs from the thread's exec on.
    pub(crate) fn set_timer_on_exec(&self, after_ns: u64) -> Result<(), Errno> {
        let Some(timer) = self.alarms.iter().find(|alarm| alarm.place.is_none()) else {
            return Err(Errno::NOTSUP);
        };
        set_period(&timer.counter, after_ns.max(1))
    }

    /// Descriptors that are readable once something has happened, and hung up once the thread has ended.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.alarms.iter().map(|alarm| alarm.counter.as_fd())
    }

    pub(crate) fn fired(&mut self) -> Fired {
        let mut fired = Fired::default();
        for alarm in &mut self.alarms {
            self.records.clear();
            alarm.ring.drain(&mut self.records);
            if self.records.is_empty() {
                continue;
            }
            match alarm.place {
                Some(place) => fired.events.push(place),
                None => fired.timer = true,
            }
        }
        fired
    }
}
