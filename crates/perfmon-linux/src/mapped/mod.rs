//! Software counts of the calling thread, read from memory that programs in the kernel keep.

mod kernel_side;
mod offered;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use perfmon_core::{PlannedEvent, Reading, Refusal};
use rustix::time::{ClockId, clock_gettime};

use kernel_side::{Failure, HAS_FAULTS, Watched};
use offered::{COUNTS, Counts, Kind};

/// How a session's counts are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadPath {
    /// One system call for each group of events.
    Group {
        /// Why there is no faster way.
        why: String,
    },
    /// From the hardware counters themselves, where the kernel lets the thread do so at that moment.
    Counters,
    /// From memory that programs in the kernel keep up to date. The session has no perf events open.
    Mapped,
}

impl fmt::Display for ReadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group { why } => write!(f, "by system call: {why}"),
            Self::Counters => f.write_str("from the hardware counters"),
            Self::Mapped => f.write_str("from mapped memory"),
        }
    }
}

/// Whether a loaded context's events are in the page.
#[derive(Debug)]
pub(crate) enum Fast {
    /// They are not, for this reason.
    No(String),
    Mapped(Mapped),
    /// They were: their perf events go on.
    Fallen(Fallen),
}

/// Events of the calling thread that are read from the page.
#[derive(Debug)]
pub(crate) struct Mapped {
    watched: Arc<Watched>,
    /// For each event of the plan its count.
    kinds: Vec<Kind>,
    with_clock: bool,
    /// While it counts: what the slot said at the start, less what was counted before. Else what was counted.
    base: Counts,
    is_counting: bool,
    /// What was counted at the last good reading.
    last: Counts,
    /// The thread's own clock, at which nothing was counted yet.
    cpu_zero_ns: u64,
}

/// What was counted before the page was lost.
#[derive(Debug)]
pub(crate) struct Fallen {
    why: String,
    /// For each event of the plan; enabled for longer than counted.
    before: Vec<Reading>,
}

impl Fast {
    /// Puts the events of a plan into the page, if all of them are there with the kernel's values. `is_own`: they are
    /// those of the calling thread alone.
    pub(crate) fn load(events: &[PlannedEvent], is_own: bool) -> Self {
        if !is_own {
            return Self::No("only the calling thread's own counts are in memory".into());
        }
        let mut kinds = Vec::with_capacity(events.len());
        for event in events {
            match Kind::offered(&event.encoding, HAS_FAULTS) {
                Ok(kind) => kinds.push(kind),
                Err(why) => return Self::No(format!("event {}: {why}", kinds.len() + 1)),
            }
        }
        if kinds.is_empty() {
            return Self::No("there is no event".into());
        }
        match Mapped::load(kinds) {
            Ok(mapped) => Self::Mapped(mapped),
            Err(refusal) => Self::No(refusal.to_string()),
        }
    }

    pub(crate) fn not_wanted() -> Self {
        Self::No("fast reads were not asked for".into())
    }

    pub(crate) fn path(&self) -> ReadPath {
        match self {
            Self::No(why) => ReadPath::Group { why: why.clone() },
            Self::Fallen(fallen) => ReadPath::Group { why: fallen.why.clone() },
            Self::Mapped(_) => ReadPath::Mapped,
        }
    }
}

impl Mapped {
    fn load(kinds: Vec<Kind>) -> Result<Self, Refusal> {
        let watched = Watched::calling_thread()?;
        let faults = [Kind::Faults, Kind::UserFaults, Kind::KernelFaults];
        if kinds.iter().any(|kind| faults.contains(kind)) {
            watched.kernel().count_faults()?;
        }
        let with_clock = kinds.contains(&Kind::Run);
        let (base, last) = ([0; COUNTS], [0; COUNTS]);
        Ok(Self { watched, kinds, with_clock, base, is_counting: false, last, cpu_zero_ns: 0 })
    }

    /// Lets the events count.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        if !self.is_counting {
            self.base = self.watched.counts(&self.base)?;
            self.cpu_zero_ns = cpu_ns().wrapping_sub(Kind::Run.of(&self.last));
            self.is_counting = true;
        }
        Ok(())
    }

    /// Freezes them.
    pub(crate) fn stop(&mut self) -> Result<(), Failure> {
        if self.is_counting {
            self.last = self.watched.counts(&self.base)?;
            self.base = self.last;
            self.is_counting = false;
        }
        Ok(())
    }

    /// What each event has counted, with the time for which the thread ran.
    #[inline]
    pub(crate) fn read(&mut self, readings: &mut [Reading]) -> Result<(), Failure> {
        let put = |counts: &Counts| {
            put_readings(&self.kinds, counts, readings);
            *counts
        };
        if self.is_counting
            && let Some(counts) = self.watched.glance(true, &self.base, put)
        {
            self.last = counts;
            return Ok(());
        }
        self.read_by_all_means(readings)
    }

    #[cold]
    #[inline(never)]
    fn read_by_all_means(&mut self, readings: &mut [Reading]) -> Result<(), Failure> {
        self.last = self.counted()?;
        put_readings(&self.kinds, &self.last, readings);
        Ok(())
    }

    /// What each event has counted, without a look at the clock unless one of them is a clock. False, if it can't be
    /// read, or `values` are not as many as there are events.
    #[inline]
    pub(crate) fn values(&self, values: &mut [u64]) -> bool {
        if values.len() != self.kinds.len() {
            return false;
        }
        let put = |counts: &Counts| put_values(&self.kinds, counts, values);
        let is_read =
            self.is_counting && self.watched.glance(self.with_clock, &self.base, put).is_some();
        is_read || self.values_by_all_means(values)
    }

    #[cold]
    #[inline(never)]
    fn values_by_all_means(&self, values: &mut [u64]) -> bool {
        self.counted().map(|counts| put_values(&self.kinds, &counts, values)).is_ok()
    }

    fn counted(&self) -> Result<Counts, Failure> {
        if self.is_counting { self.watched.counts(&self.base) } else { Ok(self.base) }
    }

    pub(crate) fn is_counting(&self) -> bool {
        self.is_counting
    }

    /// Whether the page is lost, so that the events have to be opened; else why they can't be read now.
    pub(crate) fn judge(&self, failure: Failure) -> Result<(), Refusal> {
        match failure {
            Failure::Lost if self.watched.is_calling_thread() => Ok(()),
            Failure::Lost => Err(Refusal::new(
                "the memory with the counts is not kept any more, and only their own thread can count on",
            )),
            Failure::NotHere => Err(Refusal::new(
                "this kernel hides a process from programs, so that only the thread itself can read its counts \
                 without a system call",
            )),
            Failure::Busy => Err(Refusal::new("the memory with the counts kept changing")),
        }
    }

    /// What goes on by perf events: the time since the last good reading was not counted, and the readings say so.
    pub(crate) fn fall(&self) -> Fallen {
        let running_ns = Kind::Run.of(&self.last);
        let since_zero_ns = cpu_ns().wrapping_sub(self.cpu_zero_ns);
        let enabled_ns =
            if self.is_counting { since_zero_ns.max(running_ns + 1) } else { running_ns };
        let before = self.kinds.iter().map(|kind| Reading {
            value: kind.of(&self.last),
            enabled_ns,
            running_ns,
            in_error: false,
        });
        let why = "the memory with the counts was not kept any more".into();
        Fallen { why, before: before.collect() }
    }
}

impl Fallen {
    /// Adds what was counted before.
    pub(crate) fn complete(&self, readings: &mut [Reading]) {
        for (reading, before) in readings.iter_mut().zip(&self.before) {
            reading.value = reading.value.wrapping_add(before.value);
            reading.enabled_ns += before.enabled_ns;
            reading.running_ns += before.running_ns;
        }
    }
}

#[inline]
fn put_readings(kinds: &[Kind], counts: &Counts, readings: &mut [Reading]) {
    let run_ns = Kind::Run.of(counts);
    for (reading, kind) in readings.iter_mut().zip(kinds) {
        let value = kind.of(counts);
        *reading = Reading { value, enabled_ns: run_ns, running_ns: run_ns, in_error: false };
    }
}

#[inline]
fn put_values(kinds: &[Kind], counts: &Counts, values: &mut [u64]) {
    values.iter_mut().zip(kinds).for_each(|(value, kind)| *value = kind.of(counts));
}

/// The CPU time of the calling thread.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
