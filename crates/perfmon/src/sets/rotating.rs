//! One context and its turns.

use perfmon_core::{
    Backend, Count, Estimator, Method, Orders, Origin, PmdIndex, Reading, Reason, Refusal,
    RegisterSet, SetId, SplitMix64, Tally,
};

use super::plan::ALWAYS;
use crate::member::{Member, since};

/// A loaded context whose sets take turns.
#[derive(Debug)]
pub(crate) struct Rotating<L> {
    pub(crate) member: Member<L>,
    /// For each event of the plan its set.
    sets: Vec<SetId>,
    /// For each event of the plan its PMD, and whether its overflows end a turn.
    pmds: Vec<(PmdIndex, bool)>,
    /// Places of the events that count all the time: the clock first, then the references.
    measured: Vec<usize>,
    /// The clock's PMD; those above it are references in the sets.
    clock_pmd: PmdIndex,
    /// What the backend read last.
    raw: Vec<Reading>,
    /// The same with 64-bit values.
    now: Vec<Reading>,
    /// The readings at the active set's entry.
    entry: Vec<Reading>,
    /// The measures when observation began, at the active set's entry, and now: the target's time in nanoseconds, then
    /// the counts of the references.
    begin: Vec<u64>,
    at_entry: Vec<u64>,
    measures: Vec<u64>,
    entered_ns: u64,
    estimators: Vec<Estimator>,
    seen: Seen,
    clock: Clock,
    pub(crate) stats: Stats,
    /// An exec starts it.
    by_exec: bool,
    /// The target has ended.
    pub(crate) ended: bool,
    /// Why its sets can't be switched any more.
    pub(crate) broken: Option<Refusal>,
}

/// By what time sets are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The target's own, which the backend's timer tells.
    Own,
    /// Wall time; when the active set is due, by the backend's clock.
    Wall(Option<u64>),
}

/// Why a set is left.
pub(crate) enum Why {
    Expired,
    Overflowed(RegisterSet),
}

/// What was counted up to a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) measures: Vec<u64>,
    estimators: Vec<Estimator>,
}

/// How the turns went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Stays of sets that have ended.
    pub residences: u64,
    /// Time of the target in which no set counted, since one was being left for the next, in nanoseconds.
    pub uncovered_ns: u64,
    /// The longest such time.
    pub uncovered_max_ns: u64,
    /// All of the target's time, in nanoseconds.
    pub time_ns: u64,
}

/// One stay of a set in a context.
#[derive(Debug)]
pub(crate) struct Residence<'a> {
    pub(crate) set: SetId,
    pub(crate) entered_ns: u64,
    pub(crate) at_entry: &'a [u64],
    pub(crate) at_exit: &'a [u64],
    pub(crate) uncovered_ns: u64,
    /// For each event of the set its readings at entry and exit.
    pub(crate) events: Vec<(usize, Reading, Reading)>,
}

impl<L> Rotating<L> {
    /// A context whose plan has `sets` and PMDs, the clock at place `clock`.
    pub(crate) fn new(
        member: Member<L>,
        plan: &[perfmon_core::PlannedEvent],
        clock_pmd: PmdIndex,
        clock: Clock,
    ) -> Self {
        let sets: Vec<SetId> = plan.iter().map(|event| event.set).collect();
        let pmds = plan.iter().map(|event| (event.pmd, event.period > 0)).collect();
        let place_of_clock = plan.iter().position(|event| event.pmd == clock_pmd);
        let had = |place: &usize| member.outcomes.get(*place).is_some_and(Result::is_ok);
        let references = (0..plan.len())
            .filter(|&place| sets[place] == ALWAYS && Some(place) != place_of_clock)
            .filter(had);
        let measured: Vec<usize> =
            place_of_clock.into_iter().chain(references).take(1 + REFERENCES_MAX).collect();
        let begin = vec![0; measured.len()];
        let readings = vec![Reading::default(); plan.len()];
        let estimators = vec![Estimator::new(&begin); plan.len()];
        Self {
            member,
            sets,
            pmds,
            clock_pmd,
            raw: readings.clone(),
            now: readings.clone(),
            entry: readings,
            at_entry: begin.clone(),
            measures: begin.clone(),
            seen: Seen { measures: begin.clone(), estimators: estimators.clone() },
            begin,
            measured,
            entered_ns: 0,
            estimators,
            clock,
            stats: Stats::default(),
            by_exec: false,
            ended: false,
            broken: None,
        }
    }

    /// The place in the plan of reference number `number`.
    pub(crate) fn reference(&self, number: usize) -> Option<usize> {
        self.measured.get(number + 1).copied()
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// When the active set is due, by the backend's clock.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        match self.clock {
            Clock::Wall(due_ns) if self.turns() => due_ns,
            _ => None,
        }
    }

    /// Whether its sets are being switched.
    fn turns(&self) -> bool {
        !self.ended && self.broken.is_none() && self.member.context.is_started()
    }

    /// The PMDs of events of the plan.
    pub(crate) fn overflowed(&self, places: &[usize]) -> RegisterSet {
        places.iter().filter_map(|&place| Some(self.pmds.get(place)?.0.0)).collect()
    }

    /// Lets it count.
    pub(crate) fn start<B: Backend<Loaded = L>>(
        &mut self,
        backend: &mut B,
        random: &mut SplitMix64,
    ) -> Result<(), Refusal> {
        let context = &mut self.member.context;
        if context.is_started() && self.member.ever_started {
            return Ok(());
        }
        let orders = context.start_set(None, &mut || random.next_u64());
        let orders = orders.map_err(|error| Refusal::new(error.to_string()))?;
        self.member.ever_started = true;
        backend.start(&mut self.member.loaded, ALWAYS)?;
        self.observe(backend, None)?;
        self.enter(backend, orders.start.unwrap_or(self.member.context.active_set()))
    }

    /// Takes note of a context that the target's exec starts.
    pub(crate) fn starts_by_exec<B: Backend<Loaded = L>>(
        &mut self,
        backend: &mut B,
    ) -> Result<(), Refusal> {
        self.by_exec = true;
        self.member.ever_started = true;
        self.remember_entry(backend.now_ns());
        self.set_timer(backend)
    }

    /// Stops it, in the middle of a stay.
    pub(crate) fn stop<B: Backend<Loaded = L>>(
        &mut self,
        backend: &mut B,
    ) -> Result<Option<Residence<'_>>, Refusal> {
        if !self.member.context.is_started() {
            return Ok(None);
        }
        let set = self.member.context.active_set();
        if self.clock == Clock::Own && !self.ended {
            backend.set_timer(&mut self.member.loaded, 0)?;
        }
        backend.stop(&mut self.member.loaded, set)?;
        self.observe(backend, None)?;
        backend.stop(&mut self.member.loaded, ALWAYS)?;
        self.elapse(set);
        let _ = self.member.context.stop();
        self.close(set);
        self.remember_seen();
        Ok(Some(self.residence(set)))
    }

    /// Leaves the active set for the next; `None` if it is not due yet.
    pub(crate) fn leave<B: Backend<Loaded = L>>(
        &mut self,
        backend: &mut B,
        why: &Why,
        random: &mut SplitMix64,
        note: &mut dyn FnMut(&Residence<'_>),
    ) -> Result<(), Refusal> {
        let old = self.member.context.active_set();
        if self.waits_for_exec(backend)? {
            return Ok(());
        }
        backend.stop(&mut self.member.loaded, old)?;
        self.observe(backend, Some(old))?;
        self.elapse(old);
        let mut draw = || random.next_u64();
        let context = &mut self.member.context;
        let orders = match why {
            Why::Expired => context.expire(&mut draw),
            Why::Overflowed(pmds) => {
                let interrupt = context.interrupt(pmds, Origin::default(), &mut draw);
                if interrupt.overflowed_pmds.is_empty() {
                    // It comes again.
                    return backend.start(&mut self.member.loaded, old);
                }
                interrupt.orders
            }
        };
        let new = match orders {
            Orders { start: Some(new), .. } => new,
            _ => old,
        };
        self.close(old);
        note(&self.residence(old));
        self.enter(backend, new)
    }

    /// Nothing has run yet of what an exec starts: a set that is stopped before would be started by it all the same.
    fn waits_for_exec<B: Backend<Loaded = L>>(&mut self, backend: &mut B) -> Result<bool, Refusal> {
        if !self.by_exec || self.measures != self.begin {
            return Ok(false);
        }
        self.observe(backend, Some(ALWAYS))?;
        let waits = self.measures == self.begin;
        if let (true, Clock::Wall(Some(due_ns))) = (waits, &mut self.clock) {
            *due_ns = backend.now_ns().saturating_add(WAIT_FOR_EXEC_NS);
        }
        Ok(waits)
    }

    fn enter<B: Backend<Loaded = L>>(
        &mut self,
        backend: &mut B,
        set: SetId,
    ) -> Result<(), Refusal> {
        for (place, &(pmd, leaves)) in self.pmds.iter().enumerate() {
            if self.sets[place] != set {
                continue;
            }
            // A reset may have come between.
            let Ok(value) = self.member.context.read_pmd(set, pmd) else { continue };
            self.now[place].value = value.value;
            let had = self.member.outcomes.get(place).is_some_and(Result::is_ok);
            if leaves && had {
                backend.arm(&mut self.member.loaded, place, value.value.wrapping_neg().max(1))?;
            }
        }
        self.remember_entry(backend.now_ns());
        self.set_timer(backend)?;
        backend.start(&mut self.member.loaded, set)
    }

    fn remember_entry(&mut self, now_ns: u64) {
        self.entry.clone_from(&self.now);
        self.at_entry.clone_from(&self.measures);
        self.entered_ns = now_ns;
    }

    fn set_timer<B: Backend<Loaded = L>>(&mut self, backend: &mut B) -> Result<(), Refusal> {
        let Ok(info) = self.member.context.set_info(self.member.context.active_set()) else {
            return Ok(());
        };
        if info.policy.timeout_ns() == 0 {
            return Ok(());
        }
        match &mut self.clock {
            Clock::Own if self.ended => Ok(()),
            Clock::Own => backend.set_timer(&mut self.member.loaded, info.timeout_left_ns),
            Clock::Wall(due_ns) => {
                *due_ns = Some(self.entered_ns.saturating_add(info.timeout_left_ns));
                Ok(())
            }
        }
    }

    /// Reads the events of `set` and those that count all the time, or all.
    fn observe<B: Backend<Loaded = L>>(
        &mut self,
        backend: &mut B,
        set: Option<SetId>,
    ) -> Result<(), Refusal> {
        let loaded = &mut self.member.loaded;
        match set {
            Some(set) => backend.read_sets(loaded, &[set, ALWAYS], &mut self.raw),
            None => backend.read(loaded, &mut self.raw),
        }?;
        self.now.copy_from_slice(&self.raw);
        self.member.context.fold(&mut self.now);
        for (number, (measure, &place)) in self.measures.iter_mut().zip(&self.measured).enumerate()
        {
            let reading = &self.now[place];
            *measure = if number == 0 { reading.enabled_ns } else { reading.value };
        }
        Ok(())
    }

    /// What the events of `set` counted since its entry, by place: the count and for how long it ran.
    fn counted(&self, set: SetId) -> impl Iterator<Item = (usize, Reading)> {
        let places = (0..self.sets.len()).filter(move |&place| self.sets[place] == set);
        places.map(|place| (place, since(&self.now[place], &self.entry[place])))
    }

    fn elapse(&mut self, set: SetId) {
        let enabled_ns = self.counted(set).map(|(_, reading)| reading.enabled_ns).max();
        let all_ns = self.measures[0].saturating_sub(self.at_entry[0]);
        self.member.context.elapse(enabled_ns.unwrap_or(all_ns));
    }

    /// How much of each reference fell to the time in which `set` counted, as far as that is known.
    fn references_within(&self, set: SetId) -> Vec<u64> {
        let copies = self.counted(set).filter(|&(place, _)| self.pmds[place].0 > self.clock_pmd);
        copies.map(|(_, reading)| reading.value).collect()
    }

    /// Tells `estimators` of a stay of `set`.
    fn tell(&self, set: SetId, estimators: &mut [Estimator]) {
        let references = self.references_within(set);
        for (place, Reading { value, running_ns, in_error, .. }) in self.counted(set) {
            if in_error || self.pmds[place].0 > self.clock_pmd {
                continue;
            }
            let within: Vec<u64> =
                std::iter::once(running_ns).chain(references.iter().copied()).collect();
            estimators[place].residence(&self.at_entry, &self.measures, &within, value);
        }
    }

    /// Ends a stay of `set`.
    fn close(&mut self, set: SetId) {
        let mut estimators = std::mem::take(&mut self.estimators);
        self.tell(set, &mut estimators);
        self.estimators = estimators;
        let uncovered_ns = self.uncovered_ns(set);
        self.stats.residences += 1;
        self.stats.uncovered_ns += uncovered_ns;
        self.stats.uncovered_max_ns = self.stats.uncovered_max_ns.max(uncovered_ns);
    }

    /// Time of the target since the entry of `set` in which it did not count.
    fn uncovered_ns(&self, set: SetId) -> u64 {
        let span_ns = self.measures[0].saturating_sub(self.at_entry[0]);
        let enabled_ns = self.counted(set).map(|(_, reading)| reading.enabled_ns).max();
        span_ns.saturating_sub(enabled_ns.unwrap_or(span_ns))
    }

    fn residence(&self, set: SetId) -> Residence<'_> {
        let places = (0..self.sets.len()).filter(|&place| self.sets[place] == set);
        Residence {
            set,
            entered_ns: self.entered_ns,
            at_entry: &self.at_entry,
            at_exit: &self.measures,
            uncovered_ns: self.uncovered_ns(set),
            events: places.map(|place| (place, self.entry[place], self.now[place])).collect(),
        }
    }

    /// Reads all, for the tallies.
    pub(crate) fn read<B: Backend<Loaded = L>>(&mut self, backend: &mut B) {
        self.member.read_failed = self.broken.clone().or(self.observe(backend, None).err());
        if self.member.read_failed.is_none() {
            self.remember_seen();
        }
    }

    fn remember_seen(&mut self) {
        self.member.readings.clone_from(&self.now);
        self.seen.measures.clone_from(&self.measures);
        self.seen.estimators.clone_from(&self.estimators);
        self.stats.time_ns = self.measures[0].saturating_sub(self.begin[0]);
        if !self.member.context.is_started() {
            return;
        }
        let set = self.member.context.active_set();
        let mut estimators = std::mem::take(&mut self.seen.estimators);
        self.tell(set, &mut estimators);
        self.seen.estimators = estimators;
    }

    /// What event number `event` of the session counted since `earlier` (or the start), by `method` or the best one;
    /// `None` if it was not planned here.
    pub(crate) fn tally(
        &self,
        event: usize,
        earlier: Option<(&Seen, &[Reading])>,
        method: Option<Method>,
        name: &dyn Fn(Method) -> String,
    ) -> Option<Tally> {
        let place = (*self.member.places.get(event)?)?;
        let as_usual = self.member.tally(event, earlier.map(|(_, readings)| readings))?;
        // What has no value has none with sets, and what counts all the time has no turns.
        let never_ran = self.seen.measures == self.begin;
        if as_usual.count.value().is_none() && !is_not_scheduled(&as_usual.count)
            || self.sets[place] == ALWAYS
        {
            return Some(as_usual);
        }
        if never_ran {
            return Some(Tally::zero());
        }
        let estimator = &self.seen.estimators[place];
        let now = &self.seen.measures;
        let (estimate, since_ns) = match earlier {
            None => (estimator.estimate(now, method), self.begin[0]),
            Some((then, _)) => (
                estimator.estimate_since(now, &then.estimators[place], &then.measures, method),
                then.measures[0],
            ),
        };
        let enabled_ns = now[0].saturating_sub(since_ns);
        let reading = self.member.readings[place];
        let count = match estimate {
            Some(estimate) => estimate.to_count(name(estimate.method)),
            None if reading.enabled_ns > 0 => Count::NotCounted(Reason::NeverScheduled),
            None => Count::NotCounted(Reason::SetNeverActive),
        };
        Some(Tally { count, enabled_ns, running_ns: as_usual.running_ns.min(enabled_ns) })
    }
}

/// References that estimates choose from, at most.
pub(crate) const REFERENCES_MAX: usize = 8;
/// How often a command's exec is looked for.
const WAIT_FOR_EXEC_NS: u64 = 100_000;

fn is_not_scheduled(count: &Count) -> bool {
    matches!(count, Count::NotCounted(Reason::NeverScheduled))
}
