use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use perfmon_core::{
    Backend, Description, Group, LoadPlan, MAX_PMDS, Outcome, PlannedEvent, Reading, Refusal,
    SetId, StartOn, Target, Width,
};

use crate::Script;
use crate::machine::{ContextId, Counter, CounterInterrupt, Hosted, Machine};

/// The hardware of a simulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// How many events run at once.
    pub counters: usize,
    /// How many bits each counter has.
    pub width: Width,
    /// How long a group keeps its counters, in nanoseconds, while others wait for them.
    pub slice_ns: u64,
}

impl Default for Pmu {
    /// Six 64-bit counters, a millisecond a turn.
    fn default() -> Self {
        Self { counters: 6, width: Width::FULL, slice_ns: 1_000_000 }
    }
}

/// A handle to a simulated machine. A clone is another handle to the same machine: give one away as a
/// backend, and keep one to let time pass.
#[derive(Clone, Debug)]
pub struct Sim(Rc<RefCell<Machine>>);

impl Sim {
    /// A machine at time 0, without events.
    ///
    /// # Panics
    /// If a time slice has no time.
    pub fn new(pmu: Pmu) -> Self {
        assert!(pmu.slice_ns > 0, "a time slice must last some time");
        Self(Rc::new(RefCell::new(Machine::new(pmu))))
    }

    /// Makes the event `config` known.
    pub fn event(&self, config: u64, script: Script) {
        self.0.borrow_mut().scripts.insert(config, script);
    }

    /// Refuses the event `config` from now on, for the reason `refusal`.
    pub fn refuse_event(&self, config: u64, refusal: Refusal) {
        self.0.borrow_mut().refused_events.insert(config, refusal);
    }

    /// Refuses to monitor `target` from now on, for the reason `refusal`.
    pub fn refuse_target(&self, target: Target, refusal: Refusal) {
        self.0.borrow_mut().refused_targets.push((target, refusal));
    }

    /// Keeps the event `config`, and its group, off the counters from now on.
    pub fn starve(&self, config: u64) {
        self.0.borrow_mut().starving.insert(config);
    }

    /// Lets `target` end at `time_ns`: its counts freeze and stay readable, and it can't be loaded any
    /// more.
    pub fn exit_at(&self, target: Target, time_ns: u64) {
        self.0.borrow_mut().exits.push((target, time_ns));
    }

    /// When `target` ends, if it does.
    pub fn exit_ns(&self, target: &Target) -> Option<u64> {
        self.0.borrow().exit_ns(target)
    }

    /// Fails all reads for the reason `refusal`, until `None` is given. As the contract allows, the readings are
    /// spoilt then.
    pub fn refuse_reads(&self, refusal: Option<Refusal>) {
        self.0.borrow_mut().refused_reads = refusal;
    }

    /// Lets `target` exec, which starts what [`StartOn::Exec`] asks to be started.
    pub fn exec(&self, target: &Target) {
        for hosted in self.0.borrow_mut().contexts.values_mut() {
            if hosted.target == *target {
                hosted.started.extend(std::mem::take(&mut hosted.started_by_exec));
            }
        }
    }

    /// The virtual time in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.0.borrow().now_ns
    }

    /// Lets time pass until `end_ns`, or until the first interrupt, which may be at `end_ns` itself. Once
    /// it is dealt with, call this again.
    ///
    /// If nobody reads a counter narrower than 64 bits at its interrupts, counts are lost, as on
    /// hardware.
    pub fn run_until(&self, end_ns: u64) -> Option<CounterInterrupt> {
        self.0.borrow_mut().run_until(end_ns)
    }

    /// Lets `duration_ns` pass, or less, as [`run_until`](Self::run_until) does.
    pub fn run_for(&self, duration_ns: u64) -> Option<CounterInterrupt> {
        let end_ns = self.now_ns().saturating_add(duration_ns);
        self.run_until(end_ns)
    }

    /// How often the event `config` occurs between two instants, whether it is counted or not; `None` if
    /// there is no such event.
    pub fn occurrences(&self, config: u64, start_ns: u64, end_ns: u64) -> Option<u64> {
        let machine = self.0.borrow();
        let script = machine.scripts.get(&config)?;
        Some(script.occurrences_until(end_ns).saturating_sub(script.occurrences_until(start_ns)))
    }

    /// Lets the counter of the plan's event number `place` interrupt once it has counted `after` more
    /// occurrences; `None` or 0 disarms it.
    pub fn set_alarm(&self, loaded: &mut Loaded, place: usize, after: Option<u64>) {
        loaded.with(|hosted| {
            if let Some(counter) = hosted.counters.get_mut(place) {
                let after = after.filter(|&after| after > 0);
                counter.armed_at = after.and_then(|after| counter.counted.checked_add(after));
            }
        });
    }
}

/// A context that is loaded on a simulated machine, which forgets it when this is dropped.
#[derive(Debug)]
pub struct Loaded {
    id: ContextId,
    machine: Rc<RefCell<Machine>>,
}

impl Loaded {
    /// Its number, by which interrupts name it.
    pub fn id(&self) -> ContextId {
        self.id
    }

    fn with<T: Default>(&mut self, step: impl FnOnce(&mut Hosted) -> T) -> T {
        self.machine.borrow_mut().contexts.get_mut(&self.id).map(step).unwrap_or_default()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.machine.borrow_mut().contexts.remove(&self.id);
    }
}

impl Backend for Sim {
    type Loaded = Loaded;

    fn now_ns(&self) -> u64 {
        Sim::now_ns(self)
    }

    /// 320 PMDs of the counters' width.
    fn description(&self) -> Description {
        Description::uniform("simulated", MAX_PMDS, self.0.borrow().pmu.width)
    }

    fn load(&mut self, plan: &LoadPlan) -> Result<(Loaded, Vec<Outcome>), Refusal> {
        let mut machine = self.0.borrow_mut();
        if machine.has_ended(&plan.target) {
            let refusal = Refusal::new("no such thread");
            return Err(refusal.errno("perf_event_open", "ESRCH", 3));
        }
        if let Some((_, why)) = machine.refused_targets.iter().find(|(no, _)| *no == plan.target) {
            return Err(why.clone());
        }
        let outcomes = outcomes(&machine, &plan.events);
        let counters = plan.events.iter().zip(&outcomes).map(new_counter).collect();
        let id = ContextId(machine.next_id);
        machine.next_id += 1;
        let hosted = Hosted {
            target: plan.target.clone(),
            started_by_exec: match plan.start_on {
                StartOn::Exec => plan.always.iter().copied().chain([plan.active]).collect(),
                StartOn::Call | StartOn::Load => Vec::new(),
            },
            started: match plan.start_on {
                StartOn::Load => plan.events.iter().map(|event| event.set).collect(),
                StartOn::Call | StartOn::Exec => BTreeSet::new(),
            },
            counters,
        };
        machine.contexts.insert(id, hosted);
        Ok((Loaded { id, machine: Rc::clone(&self.0) }, outcomes))
    }

    fn arm(&mut self, loaded: &mut Loaded, place: usize, after: u64) -> Result<(), Refusal> {
        self.set_alarm(loaded, place, Some(after));
        Ok(())
    }

    fn start(&mut self, loaded: &mut Loaded, set: SetId) -> Result<(), Refusal> {
        loaded.with(|hosted| {
            hosted.started.insert(set);
        });
        Ok(())
    }

    fn stop(&mut self, loaded: &mut Loaded, set: SetId) -> Result<(), Refusal> {
        loaded.with(|hosted| {
            hosted.started_by_exec.clear();
            hosted.started.remove(&set);
        });
        Ok(())
    }

    fn read(&mut self, loaded: &mut Loaded, readings: &mut [Reading]) -> Result<(), Refusal> {
        if let Some(refusal) = &self.0.borrow().refused_reads {
            readings.fill(Reading { value: 0xbad, ..Reading::default() });
            return Err(refusal.clone());
        }
        let mask = self.0.borrow().pmu.width.mask();
        loaded.with(|hosted| {
            for (counter, reading) in hosted.counters.iter().zip(readings) {
                if !counter.refused {
                    *reading = Reading {
                        value: counter.counted & mask,
                        enabled_ns: counter.enabled_ns,
                        running_ns: counter.running_ns,
                        in_error: counter.in_error,
                    };
                }
            }
        });
        Ok(())
    }

    fn unload(&mut self, loaded: Loaded) {
        drop(loaded);
    }
}

fn new_counter((event, outcome): (&PlannedEvent, &Outcome)) -> Counter {
    Counter {
        set: event.set,
        pmd: event.pmd,
        config: event.encoding.config,
        group: event.group,
        pinned: event.encoding.pinned,
        refused: outcome.is_err(),
        in_error: false,
        counted: 0,
        armed_at: None,
        enabled_ns: 0,
        running_ns: 0,
    }
}

/// Whether each event can be had: groups all or none.
fn outcomes(machine: &Machine, events: &[PlannedEvent]) -> Vec<Outcome> {
    let alone: Vec<Outcome> = events.iter().map(|event| outcome_alone(machine, event)).collect();
    let together = |event: &PlannedEvent| {
        let mates = events.iter().zip(&alone).filter(|(mate, _)| {
            mate.set == event.set && mate.group == event.group && event.group != Group::Free
        });
        if mates.clone().count() > machine.pmu.counters {
            let refusal = Refusal::new("its group needs more counters than the PMU has");
            return Err(refusal.errno("perf_event_open", "EINVAL", 22));
        }
        let refused = mates.map(|(_, outcome)| outcome).find_map(|outcome| outcome.as_ref().err());
        refused.map_or(Ok(()), |why| {
            Err(Refusal::new(format!("another event of its group was refused: {}", why.why())))
        })
    };
    let all = events.iter().zip(&alone);
    all.map(|(event, outcome)| outcome.clone().and_then(|()| together(event))).collect()
}

fn outcome_alone(machine: &Machine, event: &PlannedEvent) -> Outcome {
    let config = event.encoding.config;
    if let Some(refusal) = machine.refused_events.get(&config) {
        return Err(refusal.clone());
    }
    if !machine.scripts.contains_key(&config) {
        let refusal = Refusal::new(format!("the simulated PMU has no event {config:#x}"));
        return Err(refusal.errno("perf_event_open", "ENOENT", 2));
    }
    Ok(())
}
