mod overflow;
mod registers;
mod sets;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{
    Description, EventSet, Inherit, LoadPlan, ModelError, Outcome, PlannedEvent, Reading,
    RegisterSet, SetId, StartOn, SwitchPolicy, Target,
};

pub use overflow::{
    Interrupt, MESSAGE_QUEUE_DEPTH, Message, Origin, OverflowMessage, RandomSource,
};
pub use registers::{PmdAttributes, PmdValue};
pub use sets::SetInfo;

/// What a context is made for.
#[doc(alias = "ctx_flags")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextFlags {
    /// Monitors a CPU, not a thread.
    #[doc(alias = "PFM_FL_SYSTEM_WIDE")]
    pub system_wide: bool,
    /// A notification blocks the monitored thread until restart.
    #[doc(alias = "PFM_FL_NOTIFY_BLOCK")]
    pub notify_block: bool,
    /// A notification queues no message.
    #[doc(alias = "PFM_FL_OVFL_NO_MSG")]
    pub no_overflow_message: bool,
}

/// perfmon2's context states. (Its fourth, zombie, is a context that was dropped.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not attached to anything.
    Unloaded,
    /// Attached, started or stopped.
    Loaded,
    /// Attached and frozen by an overflow until restart.
    Masked,
}

/// What a backend has to do after a step: first stop, then start.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The set to stop.
    pub stop: Option<SetId>,
    /// The set to start.
    pub start: Option<SetId>,
}

/// perfmon2's context: the registers and event sets of one thread or one CPU behind one handle.
///
/// Pure: a step checks perfmon2's rules, changes the model and says what a [`Backend`](crate::Backend)
/// has to do.
///
/// [`fold`](Self::fold) is how the model learns what the counters say. Every other step acts as of the
/// last fold, so whoever sets values of a loaded context (by a write, a restart, another set) or tells of
/// an interrupt reads the counters and folds the readings first.
///
/// ```
/// use std::sync::Arc;
/// use perfmon_core::*;
///
/// let set = SetId(0);
/// let mut context =
///     Context::new(Arc::new(Description::perf_events()), ContextFlags::default()).unwrap();
/// context.write_pmc(set, PmcIndex(0), Arc::new(Encoding::default()), Group::Free).unwrap();
/// context.write_pmd(set, PmdIndex(0), 100).unwrap();
/// let plan = context.load(Target::CurrentThread, Inherit::None, StartOn::Call).unwrap();
/// assert_eq!((plan.events.len(), context.start()), (1, Ok(set)));
///
/// // The backend's counter says 7.
/// let mut readings = [Reading { value: 7, ..Reading::default() }];
/// context.fold(&mut readings);
/// assert_eq!((readings[0].value, context.read_pmd(set, PmdIndex(0)).unwrap().value), (107, 107));
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    description: Arc<Description>,
    flags: ContextFlags,
    state: State,
    started: bool,
    active: SetId,
    sets: Vec<EventSet>,
    monitors_another_thread: bool,
    switch_deferred: bool,
    restarts_granted: u8,
    messages: VecDeque<Message>,
}

impl Context {
    /// A context with the empty event set 0.
    ///
    /// # Errors
    /// [`ModelError::Conflict`] if a system-wide context is to block on notification.
    #[doc(alias = "pfm_create_context")]
    pub fn new(description: Arc<Description>, flags: ContextFlags) -> Result<Self, ModelError> {
        if flags.system_wide && flags.notify_block {
            return Err(ModelError::Conflict("a system-wide context can't block on notification"));
        }
        Ok(Self {
            description,
            flags,
            state: State::Unloaded,
            started: false,
            active: SetId(0),
            sets: vec![EventSet::new(SetId(0), SwitchPolicy::Stay)],
            monitors_another_thread: false,
            switch_deferred: false,
            restarts_granted: 0,
            messages: VecDeque::new(),
        })
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether a loaded context is started. A masked one counts again only after a restart.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Whether the active set counts now: loaded, started and not masked.
    pub fn is_counting(&self) -> bool {
        self.state == State::Loaded && self.started
    }

    /// The active event set of a loaded context; what it was of an unloaded one.
    pub fn active_set(&self) -> SetId {
        self.active
    }

    /// The event sets in increasing order.
    pub fn sets(&self) -> &[EventSet] {
        &self.sets
    }

    /// [`load_set`](Self::load_set) with set 0 active.
    ///
    /// # Errors
    /// Those of [`load_set`](Self::load_set).
    pub fn load(
        &mut self,
        target: Target,
        inherit: Inherit,
        start_on: StartOn,
    ) -> Result<LoadPlan, ModelError> {
        self.load_set(target, inherit, start_on, SetId(0))
    }

    /// Attaches the context to `target` with `set` active, stopped, and says what the backend has to make
    /// ready. Its counters are taken to stand at 0 then.
    ///
    /// Values are kept, so that counts carry on from load to load. Messages and overflow information of
    /// the last load are forgotten; switch counters and timeouts are reloaded.
    ///
    /// Tell the model what the backend answers: [`accept`](Self::accept), or [`undo_load`](Self::undo_load)
    /// if it can't.
    ///
    /// # Errors
    /// [`ModelError::Busy`] if it is loaded already; [`ModelError::NoSuchSet`]; [`ModelError::Conflict`] if
    /// the target is not of the kind the context was made for, or would block itself, if the load is to start one of
    /// several sets that take turns, or if `set` takes none.
    #[doc(alias = "pfm_load_context")]
    pub fn load_set(
        &mut self,
        target: Target,
        inherit: Inherit,
        start_on: StartOn,
        set: SetId,
    ) -> Result<LoadPlan, ModelError> {
        self.require_unloaded("load")?;
        if self.set(set)?.policy == SwitchPolicy::Always {
            return Err(ModelError::Conflict("a set that always counts takes no turn"));
        }
        self.check_target(&target, start_on)?;
        self.state = State::Loaded;
        self.started = start_on == StartOn::Exec;
        self.active = set;
        self.monitors_another_thread = matches!(target, Target::Thread(_));
        self.messages.clear();
        for event_set in &mut self.sets {
            event_set.overflowed_pmds = RegisterSet::EMPTY;
            event_set.pending_reset = RegisterSet::EMPTY;
            event_set.begin_residence(&mut || 0);
        }
        self.set_mut(set)?.runs += 1;
        Ok(LoadPlan {
            target,
            inherit,
            start_on,
            active: set,
            always: self.always_sets().collect(),
            timed: self.sets.iter().any(|set| set.policy.timeout_ns() > 0),
            events: self.plan_events(),
        })
    }

    /// Tells the model which events of the plan the backend could have, in the plan's order. A PMD whose
    /// event was refused stands still, and [`fold`](Self::fold) leaves its reading alone.
    pub fn accept(&mut self, outcomes: &[Outcome]) {
        let pmds = self.sets.iter_mut().flat_map(|set| &mut set.pmds).filter(|pmd| pmd.planned);
        for (pmd, outcome) in pmds.zip(outcomes) {
            pmd.refused = outcome.is_err();
        }
    }

    /// Undoes a load that the backend could not carry out: the context is unloaded, and the set's run
    /// does not count.
    pub fn undo_load(&mut self) {
        if self.state == State::Unloaded {
            return;
        }
        self.unload();
        if let Ok(set) = self.set_mut(self.active) {
            set.runs = set.runs.saturating_sub(1);
        }
    }

    /// [`start_set`](Self::start_set) without another set: says which set the backend has to start,
    /// unless the context is masked (then nothing is started before the restart).
    ///
    /// # Errors
    /// [`ModelError::NotLoaded`].
    pub fn start(&mut self) -> Result<SetId, ModelError> {
        let _ = self.start_set(None, &mut || 0)?;
        Ok(self.active)
    }

    /// Starts counting in `set`, or in the active set, and says what the backend has to do, beside starting the
    /// [sets that always count](Self::always_sets).
    ///
    /// Another set becomes active first; those of its PMDs that wait for a reset get their long reset
    /// values. The timeout of the active set starts anew, also when it was started before. In a masked
    /// context nothing is started, only the set may change; counting resumes with the restart.
    ///
    /// # Errors
    /// [`ModelError::NotLoaded`], [`ModelError::NoSuchSet`].
    #[doc(alias = "pfm_start")]
    pub fn start_set(
        &mut self,
        set: Option<SetId>,
        random: RandomSource<'_>,
    ) -> Result<Orders, ModelError> {
        self.require_loaded("start")?;
        let old = self.active;
        let new = set.unwrap_or(old);
        if self.set(new)?.policy == SwitchPolicy::Always {
            return Err(ModelError::Conflict("a set that always counts takes no turn"));
        }
        let was_counting = self.is_counting();
        if new != old {
            self.activate(new, sets::Reset::Long, random)?;
        } else if !self.started {
            // An overflow that was in flight when the set was stopped is in its value, and that is all.
            self.set_mut(new)?.forget_overflows();
        }
        self.started = true;
        if self.state == State::Masked {
            return Ok(Orders::default());
        }
        self.set_mut(new)?.reload_timeout(random);
        Ok(Orders { stop: (was_counting && new != old).then_some(old), start: Some(new) })
    }

    /// Stops counting: says which set the backend has to stop, beside those that always count. A masked context stays masked.
    ///
    /// # Errors
    /// [`ModelError::NotLoaded`].
    #[doc(alias = "pfm_stop")]
    pub fn stop(&mut self) -> Result<SetId, ModelError> {
        self.require_loaded("stop")?;
        self.started = false;
        Ok(self.active)
    }

    /// Folds raw readings, one per planned event and in the plan's order, into the PMDs, and puts their
    /// 64-bit values in their place. Allocates nothing.
    ///
    /// While the context is masked (or unloaded) the values are frozen: what the counters counted
    /// meanwhile is passed over, so that counting resumes from the frozen values.
    #[inline]
    pub fn fold(&mut self, readings: &mut [Reading]) {
        let frozen = self.state != State::Loaded;
        let mut readings = readings.iter_mut();
        for set in &mut self.sets {
            for pmd in set.pmds.iter_mut().filter(|pmd| pmd.planned) {
                let Some(reading) = readings.next() else { return };
                if pmd.refused || reading.in_error {
                    continue;
                }
                if frozen {
                    pmd.counter.rebase(reading.value);
                } else {
                    pmd.overflow_pending |= pmd.counter.advance(reading.value);
                }
                reading.value = pmd.counter.value();
            }
        }
    }

    /// Detaches the context and forgets the right to restart. Values and queued messages stay; an
    /// unloaded context stays as it is. Stop, read and fold first to have the last counts.
    #[doc(alias = "pfm_unload_context")]
    pub fn unload(&mut self) {
        self.state = State::Unloaded;
        self.started = false;
        self.restarts_granted = 0;
    }

    fn check_target(&self, target: &Target, start_on: StartOn) -> Result<(), ModelError> {
        let is_cpu = matches!(target, Target::Cpu(_) | Target::Cgroup { .. });
        let conflict = if is_cpu != self.flags.system_wide {
            "a system-wide context takes a CPU, any other a thread"
        } else if self.flags.notify_block && *target == Target::CurrentThread {
            "a thread can't block itself on notification"
        } else if start_on == StartOn::Load && self.turn_takers().nth(1).is_some() {
            "what a load starts can't take turns"
        } else {
            return Ok(());
        };
        Err(ModelError::Conflict(conflict))
    }

    /// Plans all used PMDs whose PMC holds an event; the others stay still.
    fn plan_events(&mut self) -> Vec<PlannedEvent> {
        let mut events = Vec::new();
        for EventSet { id, pmcs, pmds, policy, .. } in &mut self.sets {
            let leaves = *policy == SwitchPolicy::Overflow;
            for pmd in pmds {
                let wanted = self.description.pmd(pmd.index).map(|pmd| pmd.pmc);
                let pmc = pmcs.iter().find(|pmc| Some(pmc.index) == wanted);
                pmd.planned = pmc.is_some();
                pmd.refused = false;
                pmd.counter.rebase(0);
                events.extend(pmc.map(|pmc| PlannedEvent {
                    set: *id,
                    pmd: pmd.index,
                    encoding: Arc::clone(&pmc.encoding),
                    group: pmc.group,
                    period: if leaves && pmd.switch_count > 0 {
                        pmd.counter.value().wrapping_neg()
                    } else {
                        0
                    },
                }));
            }
        }
        events
    }

    fn place(&self, id: SetId) -> Result<usize, ModelError> {
        self.sets.binary_search_by_key(&id, |set| set.id).map_err(|_| ModelError::NoSuchSet(id))
    }

    fn set(&self, id: SetId) -> Result<&EventSet, ModelError> {
        self.place(id).map(|place| &self.sets[place])
    }

    fn set_mut(&mut self, id: SetId) -> Result<&mut EventSet, ModelError> {
        self.place(id).map(|place| &mut self.sets[place])
    }

    fn require_unloaded(&self, step: &'static str) -> Result<(), ModelError> {
        match self.state {
            State::Unloaded => Ok(()),
            state => Err(ModelError::Busy { step, state }),
        }
    }

    fn require_loaded(&self, step: &'static str) -> Result<(), ModelError> {
        match self.state {
            State::Unloaded => Err(ModelError::NotLoaded { step }),
            State::Loaded | State::Masked => Ok(()),
        }
    }
}
