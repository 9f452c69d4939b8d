use std::collections::{BTreeMap, BTreeSet, VecDeque};

use perfmon_core::{Group, PmdIndex, Refusal, RegisterSet, SetId, Target, Width};

use crate::schedule::schedule;
use crate::{Pmu, Script};

/// The number of a context on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub(crate) u64);

/// Counters of one set that came to half their range, wrapped, or counted what they were armed for, at
/// the same instant.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterInterrupt {
    /// Whose counters: that of [`Loaded::id`](crate::Loaded::id).
    pub context: ContextId,
    /// The set.
    pub set: SetId,
    /// The PMDs, as [`Context::interrupt`](perfmon_core::Context::interrupt) takes them.
    pub pmds: RegisterSet,
    /// When, in nanoseconds of virtual time.
    pub time_ns: u64,
}

/// One counter of a context.
#[derive(Debug)]
pub(crate) struct Counter {
    pub(crate) set: SetId,
    pub(crate) pmd: PmdIndex,
    pub(crate) config: u64,
    pub(crate) group: Group,
    pub(crate) pinned: bool,
    pub(crate) refused: bool,
    pub(crate) in_error: bool,
    /// Occurrences counted so far: the raw counter without its wraps.
    pub(crate) counted: u64,
    /// `counted` at which an armed counter interrupts.
    pub(crate) armed_at: Option<u64>,
    pub(crate) enabled_ns: u64,
    pub(crate) running_ns: u64,
}

impl Counter {
    pub(crate) fn is_grouped_with(&self, other: &Self) -> bool {
        self.set == other.set && self.group == other.group && self.group != Group::Free
    }

    /// `counted` at which the counter interrupts next; `None` if that is out of reach.
    fn interrupts_at(&self, width: Width) -> Option<u64> {
        // A counter that never fills needs no look.
        let half_at = if width == Width::FULL {
            None
        } else {
            (self.counted | (width.mask() >> 1)).checked_add(1)
        };
        half_at.into_iter().chain(self.armed_at).min()
    }
}

/// A context on the machine.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) target: Target,
    /// Sets that the target's next exec starts.
    pub(crate) started_by_exec: Vec<SetId>,
    pub(crate) started: BTreeSet<SetId>,
    pub(crate) counters: Vec<Counter>,
}

impl Hosted {
    pub(crate) fn is_enabled(&self, counter: &Counter) -> bool {
        self.started.contains(&counter.set) && !counter.refused && !counter.in_error
    }
}

/// All that the handles of one simulation share.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) pmu: Pmu,
    pub(crate) now_ns: u64,
    pub(crate) scripts: BTreeMap<u64, Script>,
    pub(crate) refused_events: BTreeMap<u64, Refusal>,
    pub(crate) refused_targets: Vec<(Target, Refusal)>,
    pub(crate) refused_reads: Option<Refusal>,
    pub(crate) starving: BTreeSet<u64>,
    pub(crate) exits: Vec<(Target, u64)>,
    pub(crate) contexts: BTreeMap<ContextId, Hosted>,
    pub(crate) next_id: u64,
    due: VecDeque<CounterInterrupt>,
}

impl Machine {
    pub(crate) fn new(pmu: Pmu) -> Self {
        Self {
            pmu,
            now_ns: 0,
            scripts: BTreeMap::new(),
            refused_events: BTreeMap::new(),
            refused_targets: Vec::new(),
            refused_reads: None,
            starving: BTreeSet::new(),
            exits: Vec::new(),
            contexts: BTreeMap::new(),
            next_id: 0,
            due: VecDeque::new(),
        }
    }

    pub(crate) fn exit_ns(&self, target: &Target) -> Option<u64> {
        self.exits.iter().filter(|(dying, _)| dying == target).map(|&(_, time_ns)| time_ns).min()
    }

    pub(crate) fn has_ended(&self, target: &Target) -> bool {
        self.exit_ns(target).is_some_and(|exit_ns| exit_ns <= self.now_ns)
    }

    fn ended_targets(&self) -> Vec<Target> {
        let ended = self.exits.iter().filter(|(_, exit_ns)| *exit_ns <= self.now_ns);
        ended.map(|(target, _)| target.clone()).collect()
    }

    /// Lets time pass until `end_ns`, or until the first interrupt before or at it.
    pub(crate) fn run_until(&mut self, end_ns: u64) -> Option<CounterInterrupt> {
        loop {
            while let Some(interrupt) = self.due.pop_front() {
                if self.contexts.contains_key(&interrupt.context) {
                    return Some(interrupt);
                }
            }
            if self.now_ns >= end_ns {
                return None;
            }
            let running = self.schedule();
            let border_ns = self.next_border(end_ns);
            let interrupts = running.iter().filter_map(|&(id, place)| {
                self.interrupt_ns(&self.contexts.get(&id)?.counters[place], border_ns)
            });
            let until_ns = interrupts.min().unwrap_or(border_ns);
            self.advance(&running, until_ns);
        }
    }

    /// The counters that run now.
    fn schedule(&mut self) -> Vec<(ContextId, usize)> {
        let slice = self.now_ns / self.pmu.slice_ns;
        let ended = self.ended_targets();
        let mut running = Vec::new();
        for (&id, hosted) in &mut self.contexts {
            if !ended.contains(&hosted.target) {
                let places = schedule(hosted, slice, self.pmu.counters, &self.starving);
                running.extend(places.into_iter().map(|place| (id, place)));
            }
        }
        running
    }

    /// When the next slice begins or a target ends, at most `end_ns`.
    fn next_border(&self, end_ns: u64) -> u64 {
        let slice_end_ns = (self.now_ns / self.pmu.slice_ns + 1).saturating_mul(self.pmu.slice_ns);
        let exits = self.exits.iter().map(|&(_, exit_ns)| exit_ns);
        exits.filter(|&exit_ns| exit_ns > self.now_ns).fold(end_ns.min(slice_end_ns), u64::min)
    }

    /// When a running counter interrupts, if that is not after `border_ns`.
    fn interrupt_ns(&self, counter: &Counter, border_ns: u64) -> Option<u64> {
        let left = counter.interrupts_at(self.pmu.width)? - counter.counted;
        self.scripts.get(&counter.config)?.instant(self.now_ns, border_ns, left)
    }

    fn advance(&mut self, running: &[(ContextId, usize)], until_ns: u64) {
        let passed_ns = until_ns - self.now_ns;
        let ended = self.ended_targets();
        for (id, hosted) in &mut self.contexts {
            if ended.contains(&hosted.target) {
                continue;
            }
            let mut interrupted: BTreeMap<SetId, RegisterSet> = BTreeMap::new();
            for place in 0..hosted.counters.len() {
                if !hosted.is_enabled(&hosted.counters[place]) {
                    continue;
                }
                let counter = &mut hosted.counters[place];
                counter.enabled_ns += passed_ns;
                if !running.contains(&(*id, place)) {
                    continue;
                }
                counter.running_ns += passed_ns;
                let interrupts_at = counter.interrupts_at(self.pmu.width);
                if let Some(script) = self.scripts.get(&counter.config) {
                    counter.counted +=
                        script.occurrences_until(until_ns) - script.occurrences_until(self.now_ns);
                }
                if Some(counter.counted) == interrupts_at {
                    counter.armed_at = counter.armed_at.filter(|&at| at != counter.counted);
                    interrupted.entry(counter.set).or_default().insert(counter.pmd.0);
                }
            }
            let due = interrupted.into_iter().map(|(set, pmds)| CounterInterrupt {
                context: *id,
                set,
                pmds,
                time_ns: until_ns,
            });
            self.due.extend(due);
        }
        self.now_ns = until_ns;
    }
}
