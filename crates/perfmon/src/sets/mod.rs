//! Event sets that take turns.

mod file;
mod log;
mod plan;
mod rotating;
mod rotation;
mod thread;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use perfmon_core::{
    Backend, Context, Encoding, Group, Method, ModelError, PmcIndex, PmdAttributes, PmdIndex,
    Privilege, Refusal, SetId, SwitchPolicy, Target,
};
use perfmon_events::Event;
use perfmon_linux::is_software;

use crate::member::Part;
use crate::session::Session;
use crate::{Error, Tally};

pub use file::{SetsFile, SetsFileError};
pub(crate) use plan::ALWAYS;
pub use plan::{DWELL_MAX, DWELL_MIN, Leave, PlannedSet};
pub use rotating::Stats as SetStats;
pub(crate) use rotating::{Clock, REFERENCES_MAX, Rotating, Seen};
pub(crate) use rotation::Rotation;
use thread::{RotationThread, lock};

/// What a session knows of its sets.
#[derive(Debug)]
pub(crate) struct Sets<L> {
    planned: Vec<PlannedTurn>,
    /// For each event of the session its set; `None` if it counts all the time.
    set_of: Vec<Option<SetId>>,
    rotation: Arc<Mutex<Rotation<L>>>,
    // Before the rotation goes.
    thread: Option<RotationThread>,
    pub(crate) method: Option<Method>,
}

/// A set without its events, which are the session's.
#[derive(Clone, Debug)]
struct PlannedTurn {
    id: SetId,
    text: String,
    leave: Leave,
    /// The number of its first event in the session.
    first: usize,
}

impl<L> Sets<L> {
    /// Puts the events of `sets` behind those of `always`.
    pub(crate) fn new(
        mut always: Vec<Event>,
        sets: Vec<PlannedSet>,
    ) -> Result<(Self, Vec<Event>), Error> {
        plan::check(&sets, always.len())?;
        let mut set_of = vec![None; always.len()];
        let mut planned = Vec::with_capacity(sets.len());
        for PlannedSet { id, text, mut events, leave } in sets {
            run_together(&mut events);
            planned.push(PlannedTurn { id, text, leave, first: always.len() });
            set_of.resize(always.len() + events.len(), Some(id));
            always.append(&mut events);
        }
        planned.sort_by_key(|set| set.id);
        // Any seed will do.
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let rotation = Arc::new(Mutex::new(Rotation::new(seed)));
        let sets = Self { planned, set_of, rotation, thread: None, method: None };
        Ok((sets, always))
    }

    pub(crate) fn set_of(&self, event: usize) -> Option<SetId> {
        *self.set_of.get(event)?
    }

    pub(crate) fn with<T>(&self, step: impl FnOnce(&mut Rotation<L>) -> T) -> T {
        step(&mut lock(&self.rotation))
    }

    /// Lets the thread that switches sets see that something has changed.
    pub(crate) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.wake();
        }
    }

    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        {
            let mut notes: Vec<String> =
                self.planned.iter().filter_map(|set| set.leave.note()).collect();
            notes.dedup();
            notes.into_iter()
        }
    }

    /// How many descriptors a context needs beside those of the events.
    pub(crate) fn more_descriptors(&self) -> usize {
        let overflowing = |set: &&PlannedTurn| matches!(set.leave, Leave::Overflow { .. });
        // The clock, and a timer.
        2 + self.planned.iter().filter(overflowing).count()
    }

    /// A context with all sets for `events`, of which those in `here` are planned; and the PMD of its clock.
    pub(crate) fn context(
        &self,
        mut context: Context,
        events: &[Event],
        here: &dyn Fn(&Event) -> bool,
    ) -> Result<(Context, PmdIndex), ModelError> {
        context.create_set(ALWAYS, SwitchPolicy::Always)?;
        for set in &self.planned {
            context.create_set(set.id, set.leave.policy())?;
        }
        if self.planned.iter().all(|set| set.id != SetId(0)) {
            context.delete_set(SetId(0))?;
        }
        for (event, index) in events.iter().zip(0..) {
            let (Ok(encoding), true) = (&event.encoding, here(event)) else { continue };
            let set = self.set_of(usize::from(index)).unwrap_or(ALWAYS);
            context.write_pmc(set, PmcIndex(index), Arc::clone(encoding), event.group)?;
            let attributes = self.attributes(usize::from(index));
            context.write_pmd_attributes(set, PmdIndex(index), &attributes)?;
        }
        let clock = u16::try_from(events.len()).unwrap_or(u16::MAX);
        // References that take no counter are in every set once more, to be switched with its events to the instant.
        let is_free = |event: &&Event| event.encoding.as_ref().is_ok_and(|it| is_software(it));
        let always = events.iter().enumerate().filter(|(number, _)| self.set_of(*number).is_none());
        let copied = always.map(|(_, event)| event).filter(|event| here(event)).take_while(is_free);
        for (event, index) in copied.take(REFERENCES_MAX).zip(clock.saturating_add(1)..) {
            let Ok(encoding) = &event.encoding else { continue };
            for set in &self.planned {
                context.write_pmc(set.id, PmcIndex(index), Arc::clone(encoding), event.group)?;
                context.write_pmd(set.id, PmdIndex(index), 0)?;
            }
        }
        context.write_pmc(ALWAYS, PmcIndex(clock), Arc::new(clock_event()), Group::Free)?;
        context.write_pmd(ALWAYS, PmdIndex(clock), 0)?;
        Ok((context, PmdIndex(clock)))
    }

    pub(crate) fn first_set(&self) -> SetId {
        self.planned.first().map_or(SetId(0), |set| set.id)
    }

    fn attributes(&self, event: usize) -> PmdAttributes {
        let ends_turn = |set: &&PlannedTurn| match set.leave {
            Leave::Overflow { event: number, .. } => set.first + number == event,
            Leave::After { .. } => false,
        };
        match self.planned.iter().find(ends_turn).map(|set| set.leave) {
            Some(Leave::Overflow { period, .. }) => {
                let value = period.wrapping_neg();
                PmdAttributes {
                    value,
                    long_reset: value,
                    short_reset: value,
                    switch_count: 1,
                    ..PmdAttributes::default()
                }
            }
            _ => PmdAttributes::default(),
        }
    }

    /// Whether a set is left after overflows.
    pub(crate) fn leaves_by_overflow(&self) -> bool {
        self.planned.iter().any(|set| matches!(set.leave, Leave::Overflow { .. }))
    }

    /// What an estimate was made by, for people.
    pub(crate) fn name(rotating: &Rotating<L>, method: Method, events: &[Event]) -> String {
        let Method::Reference(number) = method else {
            let by = match method {
                Method::Time => "by the mean rate",
                Method::Trapezoid => "by the rates before and after",
                _ => "by the mean rate before and after",
            };
            return by.to_owned();
        };
        let place = rotating.reference(number);
        let event = rotating.member.places.iter().position(|it| it.is_some() && *it == place);
        let name = event.and_then(|event| events.get(event)).map_or("a reference", |it| &it.text);
        format!("by reference to {name}")
    }

    /// What event number `event` counted in each context; since `earlier`, if given.
    pub(crate) fn tallies(
        &self,
        event: usize,
        earlier: Option<&crate::session::Snapshot>,
        events: &[Event],
    ) -> Vec<(Part, Tally)> {
        let rotation = lock(&self.rotation);
        let members = rotation.members.iter().enumerate();
        members
            .filter_map(|(number, rotating)| {
                let name = |method| Self::name(rotating, method, events);
                let earlier = earlier.and_then(|snapshot| snapshot.of(number));
                let tally = rotating.tally(event, earlier, self.method, &name)?;
                Some((rotating.member.part.clone(), tally))
            })
            .collect()
    }
}

impl<L> Sets<L> {
    /// Ends the thread that switches sets.
    pub(crate) fn end_thread(&mut self) {
        self.thread = None;
    }
}

impl Sets<perfmon_linux::Loaded> {
    /// Starts the thread that switches sets.
    pub(crate) fn spawn_thread(&mut self) -> Result<(), Refusal> {
        self.thread = Some(RotationThread::spawn(Arc::clone(&self.rotation))?);
        Ok(())
    }
}

/// What counts nothing, and says for how long the target ran.
fn clock_event() -> Encoding {
    const SOFTWARE: u32 = 1;
    const DUMMY: u64 = 9;
    Encoding {
        pmu_type: SOFTWARE,
        config: DUMMY,
        privilege: Privilege::USER,
        ..Encoding::default()
    }
}

/// Makes one group of a set's events of each PMU: a set counts as a whole, or what does not fit is refused.
fn run_together(events: &mut [Event]) {
    let mut numbers: HashMap<Option<u32>, u16> = HashMap::new();
    let hardware = |event: &Event| event.encoding.as_ref().is_ok_and(|it| !is_software(it));
    let is_free = |event: &Event| event.group == Group::Free;
    let pmu = |event: &Event| {
        // The kernel's generic events, and raw ones, are the core PMU's.
        const CORE: [u32; 3] = [0, 3, 4];
        event.encoding.as_ref().ok().map(|it| it.pmu_type).filter(|it| !CORE.contains(it))
    };
    let of_pmu = |wanted: Option<u32>, events: &[Event]| {
        events.iter().filter(|event| hardware(event) && pmu(event) == wanted).count()
    };
    for place in 0..events.len() {
        let Some(event) = events.get(place) else { continue };
        if !hardware(event) || !is_free(event) || of_pmu(pmu(event), events) < 2 {
            continue;
        }
        let next = u16::MAX - u16::try_from(numbers.len()).unwrap_or(0);
        let number = *numbers.entry(pmu(event)).or_insert(next);
        if let Some(event) = events.get_mut(place) {
            event.group = Group::Together(number);
        }
    }
}

impl Session {
    /// The sets of a scope are switched by this process: how.
    pub(crate) fn check_sets(&self, follows: bool) -> Result<(), Refusal> {
        let Some(sets) = &self.sets else { return Ok(()) };
        if follows && sets.leaves_by_overflow() {
            let why = "a tree of processes is counted by events of CPUs, and overflows of these end no turn";
            return Err(Refusal::new(why)
                .hint("leave sets by time (--dwell), or count one thread (-i, -t)"));
        }
        Ok(())
    }
}

impl<B: Backend> Session<B> {
    /// A session for `always`, which count all the time, and `sets`, which take turns. Events are numbered in this order:
    /// first those of `always`, then those of each set.
    ///
    /// Those of `always` serve as references for the estimates of the others.
    ///
    /// # Errors
    /// [`Error::Set`], [`Error::TooManyEvents`].
    pub fn with_sets(backend: B, always: Vec<Event>, sets: Vec<PlannedSet>) -> Result<Self, Error> {
        let (sets, events) = Sets::new(always, sets)?;
        let mut session = Self::with_events(backend, events)?;
        session.sets = Some(sets);
        Ok(session)
    }

    /// The set of event number `event`; `None` if it counts all the time.
    pub fn set_of(&self, event: usize) -> Option<SetId> {
        self.sets.as_ref()?.set_of(event)
    }

    /// The sets with their events as they were written.
    pub fn sets(&self) -> impl Iterator<Item = (SetId, &str)> {
        let sets = self.sets.iter().flat_map(|sets| &sets.planned);
        sets.map(|set| (set.id, set.text.as_str()))
    }

    /// How the turns went, at the last [`read`](Self::read); `None` without sets.
    pub fn set_stats(&self) -> Option<SetStats> {
        Some(self.sets.as_ref()?.with(|rotation| rotation.stats()))
    }

    /// Lets estimates be made by `method`; `None`, as at first, chooses for each event the one that predicts its own
    /// residences best.
    pub fn set_method(&mut self, method: Option<Method>) {
        if let Some(sets) = &mut self.sets {
            sets.method = method;
        }
    }

    /// Leaves the sets that are due, by the backend's clock: for backends whose time passes in calls. On Linux a thread does
    /// so.
    pub fn leave_due_sets(&mut self) {
        let Self { sets, backend, .. } = self;
        if let Some(sets) = sets {
            sets.with(|rotation| rotation.leave_due(backend));
        }
    }

    /// When the next set is due, by the backend's clock; `None` if none is.
    pub fn next_set_due_ns(&self) -> Option<u64> {
        self.sets.as_ref()?.with(|rotation| rotation.due_ns())
    }
}

/// What is loaded for a context whose sets take turns.
pub(crate) fn clock_of(target: &Target) -> Clock {
    match target {
        Target::CurrentThread | Target::Thread(_) => Clock::Own,
        Target::Cpu(_) | Target::Cgroup { .. } | Target::Followed(_) => Clock::Wall(None),
    }
}
