//! All contexts of a session whose sets take turns.

use std::fmt;

use perfmon_core::{Backend, Refusal, SplitMix64};

use super::log::Log;
use super::rotating::{Residence, Rotating, Stats, Why};

/// The contexts, and what is noted of their turns.
pub(crate) struct Rotation<L> {
    pub(crate) members: Vec<Rotating<L>>,
    random: SplitMix64,
    log: Option<Log>,
}

impl<L> Rotation<L> {
    pub(crate) fn new(seed: u64) -> Self {
        Self { members: Vec::new(), random: SplitMix64::new(seed), log: None }
    }

    /// Notes each stay from now on.
    pub(crate) fn set_log(&mut self, log: Log) {
        self.log = Some(log);
    }

    pub(crate) fn take_log(&mut self) -> Option<Log> {
        self.log.take()
    }

    /// When the first set is due, by the backend's clock.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.members.iter().filter_map(Rotating::due_ns).min()
    }

    /// Leaves the sets that are due by wall time.
    pub(crate) fn leave_due<B: Backend<Loaded = L>>(&mut self, backend: &mut B) {
        for number in 0..self.members.len() {
            let due_ns = self.members.get(number).and_then(Rotating::due_ns);
            if due_ns.is_some_and(|due_ns| due_ns <= backend.now_ns()) {
                self.leave(backend, number, &Why::Expired);
            }
        }
    }

    /// Leaves the active set of context `number`. One that can't be switched keeps the reason for its counts.
    pub(crate) fn leave<B: Backend<Loaded = L>>(
        &mut self,
        backend: &mut B,
        number: usize,
        why: &Why,
    ) {
        let Self { members, random, log } = self;
        let Some(rotating) = members.get_mut(number) else { return };
        if rotating.broken.is_some() || !rotating.member.context.is_counting() {
            return;
        }
        let mut note = |residence: &Residence<'_>| {
            if let Some(log) = log {
                log.note(number, residence);
            }
        };
        if let Err(refusal) = rotating.leave(backend, why, random, &mut note) {
            rotating.broken = Some(refusal);
        }
    }

    /// Starts all contexts.
    pub(crate) fn start<B: Backend<Loaded = L>>(&mut self, backend: &mut B) -> Result<(), Refusal> {
        let Self { members, random, .. } = self;
        members.iter_mut().try_for_each(|rotating| rotating.start(backend, random))
    }

    /// Stops all contexts.
    pub(crate) fn stop<B: Backend<Loaded = L>>(&mut self, backend: &mut B) -> Result<(), Refusal> {
        let Self { members, log, .. } = self;
        for (number, rotating) in members.iter_mut().enumerate() {
            let residence = rotating.stop(backend)?;
            if let (Some(log), Some(residence)) = (log.as_mut(), residence) {
                log.note(number, &residence);
            }
        }
        Ok(())
    }

    pub(crate) fn read<B: Backend<Loaded = L>>(&mut self, backend: &mut B) {
        self.members.iter_mut().for_each(|rotating| rotating.read(backend));
    }

    /// How the turns of all contexts went, at the last read.
    pub(crate) fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for Stats { residences, uncovered_ns, uncovered_max_ns, time_ns } in
            self.members.iter().map(|rotating| rotating.stats)
        {
            sum.residences += residences;
            sum.uncovered_ns += uncovered_ns;
            sum.uncovered_max_ns = sum.uncovered_max_ns.max(uncovered_max_ns);
            sum.time_ns += time_ns;
        }
        sum
    }
}

impl<L: fmt::Debug> fmt::Debug for Rotation<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rotation").field("members", &self.members).finish_non_exhaustive()
    }
}
