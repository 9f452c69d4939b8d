use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use perfmon_core::{
    Backend, Context, ContextFlags, Count, Description, Inherit, PmcIndex, PmdIndex, Reading,
    Reason, Refusal, SetId, StartOn, Tally, Target,
};
use perfmon_events::{Event, Names};
use perfmon_linux::attach::{self, OpenError};
use perfmon_linux::{Errno, Linux, budget, cpus};

use crate::by_task::Accounting;
use crate::member::{Member, Part, Switch};
use crate::scope::{Scope, check_online};
use crate::sets::{Rotating, Seen, Sets, clock_of};
use crate::{Counts, Error};

/// Counts named events in a [`Scope`].
///
/// The order of calls is [`load`](Self::load), [`start`](Self::start), any number of
/// [`read`](Self::read), [`stop`](Self::stop); what was counted stays readable after the end of the target.
#[derive(Debug)]
pub struct Session<B: Backend = Linux> {
    pub(crate) backend: B,
    events: Arc<[Event]>,
    description: Arc<Description>,
    pub(crate) members: Vec<Member<B::Loaded>>,
    before: Snapshot,
    pub(crate) notes: Vec<String>,
    pub(crate) comms: HashMap<u32, String>,
    pub(crate) accounting: Accounting,
    /// If there are sets, they have the members.
    pub(crate) sets: Option<Sets<B::Loaded>>,
}

/// The readings of all members at one moment, to tell what was counted since.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    readings: Vec<Vec<Reading>>,
    /// With sets: what was known of each member.
    seen: Vec<Seen>,
}

impl PartialEq for Snapshot {
    /// The same counts, and so the same estimates.
    fn eq(&self, other: &Self) -> bool {
        self.readings == other.readings
    }
}

impl Snapshot {
    /// What it has of a member whose sets take turns.
    pub(crate) fn of(&self, member: usize) -> Option<(&Seen, &[Reading])> {
        Some((self.seen.get(member)?, self.readings.get(member)?))
    }
}

impl Session {
    /// A session for the events of `list`, looked up on this machine (see [`Names::parse`]).
    ///
    /// # Errors
    /// [`Error::Parse`], [`Error::TooManyEvents`]. An event that this machine does not have is no error:
    /// its count says so.
    pub fn new(list: &str) -> Result<Self, Error> {
        Self::with_events(Linux::new(), Names::system().parse(list)?)
    }

    /// Opens all events in `scope`, stopped (or started by the command's exec). Loading again replaces
    /// what was loaded.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such target, it may not be monitored, or there are not enough
    /// descriptors: then nothing is left open.
    pub fn load(&mut self, scope: &Scope) -> Result<(), Error> {
        self.unload();
        let mut result = self.load_scope(scope);
        if let (Ok(()), Some(sets)) = (&result, &mut self.sets) {
            self.notes.extend(sets.notes());
            result = sets.spawn_thread().map_err(unnamed);
        }
        if result.is_err() {
            self.unload();
        }
        result.map_err(|error| match error {
            Error::Refused { what, refusal } if what.is_empty() => {
                Error::refused(format!("can't monitor {scope}"), refusal)
            }
            error => error,
        })
    }

    fn load_scope(&mut self, scope: &Scope) -> Result<(), Error> {
        let follows = match scope {
            Scope::Command { inherit, .. } | Scope::Processes { inherit, .. } => inherit.follows(),
            _ => false,
        };
        // No call switches events that are inherited.
        if self.accounting == Accounting::Switch || follows && self.sets.is_some() {
            self.check_sets(true).map_err(unnamed)?;
            return self.load_followed(scope);
        }
        match scope {
            Scope::CurrentThread => {
                self.reserve(1, 0)?;
                self.load_target(Part::Whole, Target::CurrentThread, Inherit::None, StartOn::Call)
            }
            Scope::Command { pid, inherit, start_on } => {
                let by_thread = *inherit == Inherit::TreeByThread;
                let cpus = if by_thread { cpus::online().map_err(unnamed)?.len() } else { 1 };
                // A ring for each CPU, too.
                self.reserve(cpus, usize::from(by_thread))?;
                let part = if by_thread { Part::Thread(*pid) } else { Part::Whole };
                self.load_target(part, Target::Thread(*pid), *inherit, *start_on)
            }
            Scope::Processes { pids, inherit } => self.load_processes(pids, *inherit),
            Scope::Threads(tids) => {
                self.reserve(tids.len(), 0)?;
                tids.iter().try_for_each(|&tid| {
                    self.note_comm(tid);
                    let part = Part::Thread(tid);
                    self.load_target(part, Target::Thread(tid), Inherit::None, StartOn::Call)
                })
            }
            Scope::Cpus(cpus) => self.load_cpus(cpus),
            Scope::System => self.load_cpus(&cpus::online().map_err(unnamed)?),
            Scope::Cgroups { directories, cpus } => self.load_cgroups(directories, cpus.as_deref()),
        }
    }

    fn load_cpus(&mut self, cpus: &[u32]) -> Result<(), Error> {
        check_online(cpus).map_err(unnamed)?;
        self.reserve(cpus.len(), 0)?;
        cpus.iter().try_for_each(|&cpu| {
            self.load_target(Part::Cpu(cpu), Target::Cpu(cpu), Inherit::None, StartOn::Call)
        })
    }

    fn load_cgroups(&mut self, directories: &[PathBuf], cpus: Option<&[u32]>) -> Result<(), Error> {
        let cpus = match cpus {
            Some(cpus) => cpus.to_vec(),
            None => cpus::online().map_err(unnamed)?,
        };
        check_online(&cpus).map_err(unnamed)?;
        self.reserve(directories.len() * cpus.len(), 0)?;
        for path in directories.iter().map(|directory| Arc::new(directory.clone())) {
            for &cpu in &cpus {
                let target = Target::Cgroup { path: Arc::clone(&path), cpu };
                let part = Part::Cgroup(Arc::clone(&path), cpu);
                self.load_target(part, target, Inherit::None, StartOn::Call)?;
            }
        }
        Ok(())
    }

    fn load_processes(&mut self, pids: &[u32], inherit: Inherit) -> Result<(), Error> {
        let threads: usize = pids.iter().map(|&pid| attach::thread_count(pid)).sum();
        self.reserve(threads, 0)?;
        let mut model_error = None;
        let attached = attach::processes(pids, |tid| {
            let target = Target::Thread(tid);
            match self.open_target(Part::Thread(tid), target, inherit, StartOn::Call) {
                Ok(member) => Ok(member),
                Err(Error::Refused { refusal, .. }) if is_gone(&refusal) => Err(OpenError::Gone),
                Err(Error::Refused { refusal, .. }) => Err(OpenError::Refused(refusal)),
                Err(error) => {
                    let refusal = Refusal::new(error.to_string());
                    model_error = Some(error);
                    Err(OpenError::Refused(refusal))
                }
            }
        });
        if let Some(error) = model_error {
            return Err(error);
        }
        let attached = attached.map_err(unnamed)?;
        for (tid, member) in attached.threads {
            self.note_comm(tid);
            self.keep(member);
        }
        for tid in attached.unheld {
            self.notes.push(format!(
                "thread {tid} could not be held still (ptrace was refused) while its events were opened: \
                 threads that it created in those microseconds may be missing or counted twice"
            ));
        }
        Ok(())
    }

    /// The number of the hardware counter that holds event number `event` now, as the instruction that reads
    /// it names it: for a self-monitoring session on a PMU that user mode may read. The thread may read the
    /// counter itself with it (perfmon2's ring-3 reads); it may change whenever the thread is scheduled.
    pub fn hardware_index(&self, event: usize) -> Option<u32> {
        let [member] = self.members.as_slice() else { return None };
        member.loaded.hardware_index((*member.places.get(event)?)?)
    }

    /// Makes sure that there are descriptors for `contexts`, each with all events and `more`.
    pub(crate) fn reserve(&self, contexts: usize, more: usize) -> Result<(), Error> {
        let encodings = self.events.iter().filter_map(|event| event.encoding.as_ref().ok());
        // A pinned event has a witness beside it.
        let events: usize = encodings.map(|encoding| 1 + usize::from(encoding.pinned)).sum();
        let more = more + self.sets.as_ref().map_or(0, Sets::more_descriptors);
        let needed = contexts.saturating_mul(events + more);
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        budget::reserve(needed).map_err(unnamed)
    }
}

impl<B: Backend> Session<B> {
    /// A session for `events` on `backend`.
    ///
    /// # Errors
    /// [`Error::TooManyEvents`].
    pub fn with_events(backend: B, events: Vec<Event>) -> Result<Self, Error> {
        let description = Arc::new(backend.description());
        if events.len() > usize::from(perfmon_core::MAX_PMDS) {
            return Err(Error::TooManyEvents(events.len()));
        }
        Ok(Self {
            backend,
            events: events.into(),
            description,
            members: Vec::new(),
            before: Snapshot::default(),
            notes: Vec::new(),
            comms: HashMap::new(),
            accounting: Accounting::Kernel,
            sets: None,
        })
    }

    /// The events, in the order asked for.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What a reader of the results must know: why they may be less than they look.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Loads one more context, for `part` of the scope.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Model`].
    pub fn load_target(
        &mut self,
        part: Part,
        target: Target,
        inherit: Inherit,
        start_on: StartOn,
    ) -> Result<(), Error> {
        let member = self.open_target(part, target, inherit, start_on)?;
        self.keep(member);
        Ok(())
    }

    /// Keeps a member, which with sets is there already.
    pub(crate) fn keep(&mut self, member: Option<Member<B::Loaded>>) {
        self.members.extend(member);
    }

    /// Opens the events of a context. With sets it is kept among those that take turns, and nothing is given back.
    pub(crate) fn open_target(
        &mut self,
        part: Part,
        target: Target,
        inherit: Inherit,
        start_on: StartOn,
    ) -> Result<Option<Member<B::Loaded>>, Error> {
        // No call reaches a thread that is just being created.
        // Whoever is followed in the kernel needs no call.
        let followed = matches!(target, Target::Followed(_));
        let grows = inherit.follows() && start_on == StartOn::Call && !followed;
        let start_on = if grows { StartOn::Load } else { start_on };
        let cpu = match &target {
            Target::Cpu(cpu) | Target::Cgroup { cpu, .. } => Some(*cpu),
            Target::CurrentThread | Target::Thread(_) | Target::Followed(_) => None,
        };
        let flags = ContextFlags { system_wide: cpu.is_some(), ..ContextFlags::default() };
        let context = Context::new(Arc::clone(&self.description), flags)?;
        let here = |event: &Event| {
            let elsewhere = |cpus: &Vec<u32>| cpu.is_some_and(|cpu| !cpus.contains(&cpu));
            !event.cpus.as_ref().is_some_and(elsewhere)
        };
        let clock = clock_of(&target);
        let (mut context, clock_pmd, first) = match &self.sets {
            Some(sets) => {
                let (context, clock) = sets.context(context, &self.events, &here)?;
                (context, Some(clock), sets.first_set())
            }
            None => (one_set(context, &self.events, &here)?, None, SetId(0)),
        };
        let plan = context.load_set(target, inherit, start_on, first)?;
        let (loaded, outcomes) =
            self.backend.load(&plan).map_err(|refusal| Error::refused("", refusal))?;
        context.accept(&outcomes);
        let place = |index| plan.events.iter().position(|event| event.pmd == PmdIndex(index));
        let readings = vec![Reading::default(); plan.events.len()];
        let ever_started = start_on == StartOn::Exec;
        let member = Member {
            part,
            context,
            loaded,
            outcomes,
            places: (0..).take(self.events.len()).map(place).collect(),
            next_readings: readings.clone(),
            readings,
            read_failed: None,
            switch: Switch::new(start_on),
            ever_started,
            rows: Vec::new(),
        };
        let (Some(sets), Some(clock_pmd)) = (&self.sets, clock_pmd) else {
            return Ok(Some(member));
        };
        let mut rotating = Rotating::new(member, &plan.events, clock_pmd, clock);
        if start_on == StartOn::Exec {
            let timed = rotating.starts_by_exec(&mut self.backend);
            timed.map_err(|refusal| Error::refused("", refusal))?;
        }
        sets.with(|rotation| rotation.members.push(rotating));
        Ok(None)
    }

    /// Starts counting, member by member.
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::Model`].
    pub fn start(&mut self) -> Result<(), Error> {
        let Self { sets, backend, members, .. } = self;
        if let Some(sets) = sets {
            let started = sets.with(|rotation| rotation.start(backend));
            sets.wake();
            return started.map_err(|refusal| Error::refused("can't start counting", refusal));
        }
        members.iter_mut().try_for_each(|member| member.start(backend))
    }

    /// Stops counting; [`start`](Self::start) goes on where it stopped.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn stop(&mut self) -> Result<(), Error> {
        let Self { sets, backend, members, .. } = self;
        if let Some(sets) = sets {
            let stopped = sets.with(|rotation| rotation.stop(backend));
            return stopped.map_err(|refusal| Error::refused("can't stop counting", refusal));
        }
        members.iter_mut().try_for_each(|member| member.stop(backend))
    }

    /// Reads all counters, started or stopped; [`tally`](Self::tally) and the like then say what they said.
    /// Allocates nothing. For the calling thread this is one system call per group, or none where the
    /// kernel lets a thread read its own counters.
    ///
    /// A read that fails is no error of the whole: it is the reason of that part's counts.
    pub fn read(&mut self) {
        let Self { sets, backend, members, .. } = self;
        if let Some(sets) = sets {
            return sets.with(|rotation| rotation.read(backend));
        }
        members.iter_mut().for_each(|member| member.read(backend));
    }

    /// Says that what was read last is not to be used, for the reason `refusal`: the counts then say so.
    pub fn disown(&mut self, refusal: &Refusal) {
        let disown = |member: &mut Member<B::Loaded>| member.read_failed = Some(refusal.clone());
        self.members.iter_mut().for_each(disown);
        if let Some(sets) = &self.sets {
            sets.with(|rotation| rotation.members.iter_mut().for_each(|it| disown(&mut it.member)));
        }
    }

    /// What the counter of event number `event` said at the last [`read`](Self::read), not judged: compare its times
    /// before you use its value, or ask for the [`tally`](Self::tally). `None` if the event has no counter, or the
    /// scope has several.
    pub fn reading(&self, event: usize) -> Option<&Reading> {
        let [member] = self.members.as_slice() else { return None };
        let place = member.places.get(event).copied().flatten()?;
        member.outcomes.get(place)?.as_ref().ok()?;
        member.readings.get(place)
    }

    /// What event number `event` counted, added up over the scope, at the last [`read`](Self::read).
    pub fn tally(&self, event: usize) -> Tally {
        self.sum(event, None)
    }

    /// As [`tally`](Self::tally), since `snapshot`.
    pub fn tally_since(&self, event: usize, snapshot: &Snapshot) -> Tally {
        self.sum(event, Some(snapshot))
    }

    /// What event number `event` counted in each part of the scope, in the order in which they were loaded;
    /// since `snapshot`, if one is given.
    pub fn parts(&self, event: usize, snapshot: Option<&Snapshot>) -> Vec<(Part, Tally)> {
        if let Some(tally) = self.refused_name(event) {
            let row = |member: &Member<B::Loaded>| (member.part.clone(), tally.clone());
            let Some(sets) = &self.sets else { return self.members.iter().map(row).collect() };
            return sets
                .with(|rotation| rotation.members.iter().map(|it| row(&it.member)).collect());
        }
        if let Some(sets) = &self.sets {
            return sets.tallies(event, snapshot, &self.events);
        }
        let members = self.members.iter().enumerate();
        members
            .flat_map(|(place, member)| member.split(event, readings_of(snapshot, place)))
            .collect()
    }

    /// All events with their tallies at the last [`read`](Self::read).
    pub fn counts(&self) -> Counts {
        self.rows(|event| self.tally(event))
    }

    /// The readings now in hand (those of the last [`read`](Self::read)).
    pub fn snapshot(&self) -> Snapshot {
        let Some(sets) = &self.sets else {
            let readings = self.members.iter().map(|member| member.readings.clone()).collect();
            return Snapshot { readings, seen: Vec::new() };
        };
        sets.with(|rotation| Snapshot {
            readings: rotation.members.iter().map(|it| it.member.readings.clone()).collect(),
            seen: rotation.members.iter().map(|it| it.seen().clone()).collect(),
        })
    }

    /// Runs `body` and says what it counted, from two reads around it; the session must be started.
    pub fn region<R>(&mut self, body: impl FnOnce() -> R) -> (R, Counts) {
        self.read();
        if self.sets.is_some() {
            let before = self.snapshot();
            let value = body();
            self.read();
            return (value, self.rows(|event| self.tally_since(event, &before)));
        }
        // Into vectors that keep their room: the two reads enclose the body and nothing else.
        let mut before = std::mem::take(&mut self.before);
        before.readings.resize_with(self.members.len(), Vec::new);
        for (before, member) in before.readings.iter_mut().zip(&self.members) {
            before.clone_from(&member.readings);
        }
        let value = body();
        self.read();
        let counts = self.rows(|event| self.tally_since(event, &before));
        self.before = before;
        (value, counts)
    }

    /// Closes all events. What was counted is gone with them.
    pub fn unload(&mut self) {
        let mut members = std::mem::take(&mut self.members);
        if let Some(sets) = &mut self.sets {
            sets.end_thread();
            let rotating = sets.with(|rotation| std::mem::take(&mut rotation.members));
            members.extend(rotating.into_iter().map(|rotating| rotating.member));
        }
        for mut member in members {
            member.context.unload();
            self.backend.unload(member.loaded);
        }
        self.notes.clear();
        self.comms.clear();
    }

    fn rows(&self, tally: impl Fn(usize) -> Tally) -> Counts {
        Counts::new(Arc::clone(&self.events), (0..self.events.len()).map(tally).collect())
    }

    /// The tally of an event whose name this machine does not have.
    fn refused_name(&self, event: usize) -> Option<Tally> {
        let refusal = self.events.get(event)?.encoding.as_ref().err()?;
        Some(Tally::without_value(Count::Unsupported(Reason::Refused(refusal.clone()))))
    }

    /// What event number `event` counted in each member.
    fn tallies(&self, event: usize, snapshot: Option<&Snapshot>) -> Vec<(Part, Tally)> {
        if let Some(sets) = &self.sets {
            return sets.tallies(event, snapshot, &self.events);
        }
        let members = self.members.iter().enumerate();
        let tally = |(place, member): (usize, &Member<B::Loaded>)| {
            Some((member.part.clone(), member.tally(event, readings_of(snapshot, place))?))
        };
        members.filter_map(tally).collect()
    }

    fn sum(&self, event: usize, snapshot: Option<&Snapshot>) -> Tally {
        if let Some(tally) = self.refused_name(event) {
            return tally;
        }
        // Most sessions have one member, and read it often.
        if let [member] = self.members.as_slice()
            && let Some(tally) = member.tally(event, readings_of(snapshot, 0))
        {
            return tally;
        }
        let mut tallies = self.tallies(event, snapshot).into_iter();
        let Some((first_part, first)) = tallies.next() else {
            let nowhere = Refusal::new("the PMU counts on CPUs that are not in the scope")
                .hint("count on all CPUs: -a");
            return Tally::without_value(Count::Unsupported(Reason::Refused(nowhere)));
        };
        // A reason that holds everywhere is not that of a part.
        let mut only = true;
        let mut sum = Tally::zero();
        sum.add(&first, &first_part);
        for (part, tally) in tallies {
            only &= tally.count.value().is_none() && first.count.value().is_none();
            sum.add(&tally, &part);
        }
        if only && first.count.value().is_none() { first } else { sum }
    }
}

/// A context of one set, with those `events` that count `here`.
fn one_set(
    mut context: Context,
    events: &[Event],
    here: &dyn Fn(&Event) -> bool,
) -> Result<Context, Error> {
    for (event, index) in events.iter().zip(0..) {
        let (Ok(encoding), true) = (&event.encoding, here(event)) else { continue };
        context.write_pmc(SetId(0), PmcIndex(index), Arc::clone(encoding), event.group)?;
        context.write_pmd(SetId(0), PmdIndex(index), 0)?;
    }
    Ok(context)
}

fn readings_of(snapshot: Option<&Snapshot>, member: usize) -> Option<&[Reading]> {
    Some(snapshot?.readings.get(member)?.as_slice())
}

impl<B: Backend> Drop for Session<B> {
    fn drop(&mut self) {
        self.unload();
    }
}

/// The target of a refusal has ended.
fn is_gone(refusal: &Refusal) -> bool {
    refusal.errno_number() == Some(Errno::SRCH.raw_os_error())
}

/// A refusal that [`Session::load`] gives the scope's name.
fn unnamed(refusal: Refusal) -> Error {
    Error::refused("", refusal)
}
