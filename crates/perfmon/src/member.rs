use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use perfmon_core::{Backend, Context, Count, Outcome, Reading, Reason, Refusal, StartOn, Tally};

use crate::Error;

/// One part of a scope: what a row is about where results are split up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// All of it: a thread, or a command with its descendants.
    Whole,
    /// A thread, by id.
    Thread(u32),
    /// A process, by id: all its threads.
    Process(u32),
    /// A CPU.
    Cpu(u32),
    /// What of a cgroup ran on a CPU.
    Cgroup(Arc<PathBuf>, u32),
    /// What has no row of its own.
    Rest,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("all"),
            Self::Thread(tid) => write!(f, "tid:{tid}"),
            Self::Process(pid) => write!(f, "pid:{pid}"),
            Self::Cpu(cpu) => write!(f, "cpu:{cpu}"),
            Self::Rest => f.write_str("rest"),
            Self::Cgroup(directory, cpu) => write!(f, "cgroup:{},cpu:{cpu}", directory.display()),
        }
    }
}

/// A loaded context of a session.
#[derive(Debug)]
pub(crate) struct Member<L> {
    pub(crate) part: Part,
    pub(crate) context: Context,
    pub(crate) loaded: L,
    /// Why an event of the plan can't be counted here.
    pub(crate) outcomes: Vec<Outcome>,
    /// For each event of the session its place in the plan; `None` if it was not planned here.
    pub(crate) places: Vec<Option<usize>>,
    /// The last good readings, in the plan's order.
    pub(crate) readings: Vec<Reading>,
    /// Where the next ones go: a read that fails must not spoil the last.
    pub(crate) next_readings: Vec<Reading>,
    /// How it is started and stopped.
    pub(crate) switch: Switch,
    /// Why the last read failed.
    pub(crate) read_failed: Option<Refusal>,
    /// The context was started at least once.
    pub(crate) ever_started: bool,
    /// What of the readings belongs to single threads or processes, where these are told apart.
    pub(crate) rows: Vec<(Part, Vec<Reading>)>,
}

/// How a member is started and stopped.
#[derive(Debug)]
pub(crate) enum Switch {
    /// By the backend.
    Backend,
    /// It counts all the time: by what was read then.
    Readings {
        /// What does not belong to the count, one reading per event; none before the first start.
        baseline: Vec<Reading>,
        /// Whether it is stopped.
        stopped: bool,
    },
}

impl Switch {
    pub(crate) fn new(start_on: StartOn) -> Self {
        match start_on {
            StartOn::Call => Self::Backend,
            // What an exec starts counts until it is read for the last time.
            StartOn::Exec => Self::Readings { baseline: Vec::new(), stopped: false },
            StartOn::Load => Self::Readings { baseline: Vec::new(), stopped: true },
        }
    }
}

impl<L> Member<L> {
    /// Reads all counters, unless what counts is what they said when they were stopped. A failure is kept for
    /// the tallies: the other members go on.
    pub(crate) fn read<B: Backend<Loaded = L>>(&mut self, backend: &mut B) {
        if matches!(self.switch, Switch::Readings { stopped: true, .. }) {
            return;
        }
        self.read_failed = backend.read(&mut self.loaded, &mut self.next_readings).err();
        if self.read_failed.is_some() {
            return;
        }
        self.context.fold(&mut self.next_readings);
        if let Switch::Readings { baseline, .. } = &self.switch {
            for (reading, before) in self.next_readings.iter_mut().zip(baseline) {
                *reading = since(reading, before);
            }
        }
        std::mem::swap(&mut self.readings, &mut self.next_readings);
    }

    /// Lets it count.
    pub(crate) fn start<B: Backend<Loaded = L>>(&mut self, backend: &mut B) -> Result<(), Error> {
        let set = self.context.start()?;
        self.ever_started = true;
        let what = "can't start counting";
        let Switch::Readings { baseline, stopped } = &mut self.switch else {
            return backend.start(&mut self.loaded, set).map_err(|why| Error::refused(what, why));
        };
        if !*stopped {
            return Ok(());
        }
        let counted = self.readings.clone();
        baseline.clear();
        *stopped = false;
        self.read(backend);
        if let Some(refusal) = &self.read_failed {
            if let Switch::Readings { stopped, .. } = &mut self.switch {
                *stopped = true;
            }
            return Err(Error::refused(what, refusal.clone()));
        }
        if let Switch::Readings { baseline, .. } = &mut self.switch {
            let before =
                self.readings.iter().zip(&counted).map(|(now, counted)| since(now, counted));
            baseline.extend(before);
        }
        self.readings = counted;
        Ok(())
    }

    /// Stops it: what was counted stays.
    pub(crate) fn stop<B: Backend<Loaded = L>>(&mut self, backend: &mut B) -> Result<(), Error> {
        let set = self.context.stop()?;
        if matches!(self.switch, Switch::Backend) {
            return backend
                .stop(&mut self.loaded, set)
                .map_err(|refusal| Error::refused("can't stop counting", refusal));
        }
        self.read(backend);
        if let Switch::Readings { stopped, .. } = &mut self.switch {
            *stopped = true;
        }
        Ok(())
    }

    /// What event number `event` of the session counted since `before` (readings of this member; none: since
    /// the start); `None` if the event was not planned here.
    pub(crate) fn tally(&self, event: usize, before: Option<&[Reading]>) -> Option<Tally> {
        let place = (*self.places.get(event)?)?;
        if let Some(Err(refusal)) = self.outcomes.get(place) {
            return Some(Tally::without_value(Count::Unsupported(Reason::Refused(
                refusal.clone(),
            ))));
        }
        if !self.ever_started {
            return Some(Tally::without_value(Count::NotCounted(Reason::NeverStarted)));
        }
        if let Some(refusal) = &self.read_failed {
            return Some(Tally::without_value(Count::NotCounted(Reason::Refused(refusal.clone()))));
        }
        let now = self.readings.get(place)?;
        let before = before.and_then(|readings| readings.get(place));
        Some(Tally::from_reading(&before.map_or(*now, |before| since(now, before))))
    }

    /// As [`tally`](Self::tally), split up into the threads or processes that are told apart and the rest.
    pub(crate) fn split(&self, event: usize, before: Option<&[Reading]>) -> Vec<(Part, Tally)> {
        let Some(whole) = self.tally(event, before) else { return Vec::new() };
        let place = self.places.get(event).copied().flatten();
        let (Some(place), Some(_)) = (place, whole.count.value()) else {
            return vec![(self.part.clone(), whole)];
        };
        let mut rest = self.readings.get(place).copied().unwrap_or_default();
        let mut parts = Vec::with_capacity(self.rows.len() + 1);
        for (part, readings) in &self.rows {
            let Some(reading) = readings.get(place) else { continue };
            rest = since(&rest, reading);
            parts.push((part.clone(), Tally::from_reading(reading)));
        }
        if parts.is_empty() {
            return vec![(self.part.clone(), whole)];
        }
        // Where each has a row, the rest may be nothing.
        if self.part != Part::Rest || rest != Reading::default() {
            parts.insert(0, (self.part.clone(), Tally::from_reading(&rest)));
        }
        parts
    }
}

/// What happened between two readings.
pub(crate) fn since(now: &Reading, before: &Reading) -> Reading {
    Reading {
        value: now.value.wrapping_sub(before.value),
        enabled_ns: now.enabled_ns.saturating_sub(before.enabled_ns),
        running_ns: now.running_ns.saturating_sub(before.running_ns),
        in_error: now.in_error,
    }
}
