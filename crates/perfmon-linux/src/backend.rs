use std::os::fd::BorrowedFd;

use perfmon_core::{
    Backend, Description, Inherit, LoadPlan, Outcome, PlannedEvent, Reading, Refusal, SetId,
    StartOn, Target,
};
use perfmon_sys::{Errno, set_period};
use rustix::time::{ClockId, clock_gettime};

use crate::accounted::{Accounted, Audit, TaskReadings};
use crate::alarm::{Alarms, Fired};
use crate::by_thread::{ByThread, NotToldApart, ThreadReadings};
use crate::counter::Place;
use crate::cpus;
use crate::explain::{self};
use crate::group::CounterGroup;
use crate::keep::keep_open;
use crate::mapped::{Fast, ReadPath};
use crate::opening::{
    ONE_HIT_A_BLOCK, is_hardware, is_self_monitoring, number, open_alarms, open_groups,
    refuse_hidden_breakpoints, refuse_pinned, resolve,
};
use crate::published::ToPublish;

/// The kernel, by `perf_event_open`.
#[derive(Debug, Default)]
pub struct Linux {
    fast_reads: bool,
}

/// A loaded context's events in the kernel. Dropping it closes them.
#[derive(Debug)]
pub struct Loaded {
    groups: Vec<CounterGroup>,
    events: Vec<PlannedEvent>,
    by_thread: Option<ByThread>,
    accounted: Option<Accounted>,
    target: Target,
    is_inherited: bool,
    fast: Fast,
    alarms: Alarms,
    /// The exec that starts the events starts the timer, too.
    waits_for_exec: bool,
}

impl Linux {
    /// The kernel that we run on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether what is loaded from now on is read from mapped memory, where that is as good.
    pub fn set_fast_reads(&mut self, wanted: bool) {
        self.fast_reads = wanted;
    }

    fn fast(&self, plan: &LoadPlan) -> Fast {
        if self.fast_reads {
            Fast::load(&plan.events, is_self_monitoring(plan))
        } else {
            Fast::not_wanted()
        }
    }
}

impl Loaded {
    /// Without perf events.
    fn mapped(plan: &LoadPlan, fast: Fast) -> Self {
        Self {
            groups: Vec::new(),
            events: plan.events.clone(),
            by_thread: None,
            accounted: None,
            target: plan.target.clone(),
            is_inherited: false,
            fast,
            alarms: Alarms::default(),
            waits_for_exec: false,
        }
    }

    /// Descriptors that are readable once [`fired`](Self::fired) has something to say, and hung up once the thread has
    /// ended.
    pub fn alarm_descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.alarms.descriptors()
    }

    /// What of the timer and of the events with a period has fired since the last call.
    pub fn fired(&mut self) -> Fired {
        self.alarms.fired()
    }

    /// The number of the hardware counter that holds the event at `place` of the plan now, as the
    /// instruction that reads it names it, where user mode may read it (perfmon2's ring-3 reads). It may
    /// change whenever the thread is scheduled.
    pub fn hardware_index(&self, place: usize) -> Option<u32> {
        self.groups.iter().find_map(|group| group.hardware_index(place))
    }

    /// How the events are read.
    pub fn read_path(&self) -> ReadPath {
        if self.groups.iter().any(CounterGroup::has_pages) {
            return ReadPath::Counters;
        }
        self.fast.path()
    }

    /// What each event has counted since it was loaded, in the plan's order, without a system call, or the clock if none
    /// of the events is one. False, and nothing is written, where that is not possible.
    #[inline]
    pub fn read_values(&self, values: &mut [u64]) -> bool {
        matches!(&self.fast, Fast::Mapped(mapped) if mapped.values(values))
    }

    /// Opens the perf events of what is in the page no more.
    #[cold]
    fn fall(&mut self) -> Result<(), Refusal> {
        let Fast::Mapped(mapped) = &self.fast else { return Ok(()) };
        let events = self.events.clone();
        let target = Target::CurrentThread;
        let plan = LoadPlan {
            target,
            inherit: Inherit::None,
            start_on: StartOn::Call,
            active: SetId::default(),
            always: Vec::new(),
            timed: false,
            events,
        };
        let mut outcomes = vec![Ok(()); plan.events.len()];
        let groups = open_groups(&plan, &resolve(&plan)?, &mut outcomes)?;
        outcomes.into_iter().collect::<Result<(), _>>()?;
        if mapped.is_counting() {
            enable(&groups)?;
        }
        self.fast = Fast::Fallen(mapped.fall());
        self.groups = groups;
        Ok(())
    }

    /// Takes note of the threads that have ended since the last time, if they are told apart
    /// ([`Inherit::TreeByThread`]): to be called several times a second, since the kernel keeps no more than
    /// some thousand.
    pub fn drain(&mut self) {
        if let Some(by_thread) = &mut self.by_thread {
            by_thread.drain();
        }
        if let Some(accounted) = &mut self.accounted {
            accounted.drain();
        }
    }

    /// What each task has counted, ended or not, if the target is [followed](Target::Followed) thread by thread; to
    /// be asked before the totals are read, so that no row has what these lack.
    ///
    /// # Errors
    /// The kernel's.
    pub fn tasks(&mut self) -> Result<Option<Vec<TaskReadings>>, Refusal> {
        let events = self.events.len();
        self.accounted.as_mut().map_or(Ok(None), |accounted| accounted.tasks(events))
    }

    /// What programs in the kernel need to read this context: the events at `places` of the plan become its registers, in
    /// that order.
    ///
    /// # Errors
    /// The target is counted with what it creates, or is neither a thread nor a CPU; an event was refused.
    pub fn to_publish(&self, places: &[usize]) -> Result<ToPublish<'_>, Refusal> {
        if self.is_inherited {
            let why = "events that what a thread creates inherits can't be read in the kernel";
            return Err(Refusal::new(why).hint("load threads, or without what they create"));
        }
        if let Fast::Mapped(_) = self.fast {
            let why = "its counts are in mapped memory, and it has no perf events";
            return Err(Refusal::new(why).hint("load it without fast reads"));
        }
        let pmd = |place: &usize| {
            let event = self.events.get(*place)?;
            let mut members = self.groups.iter().flat_map(CounterGroup::members);
            members.find(|(other, _)| other == place).map(|(_, counter)| (event.set, counter))
        };
        let pmds = places.iter().map(pmd).collect::<Option<Vec<_>>>();
        let refused = || Refusal::new("an event was refused").hint("leave it out");
        Ok(ToPublish { target: self.target.clone(), pmds: pmds.ok_or_else(refused)? })
    }

    /// What the programs that account noticed, if the target is [followed](Target::Followed).
    pub fn audit(&self) -> Option<Audit> {
        self.accounted.as_ref().map(Accounted::audit)
    }

    /// What each ended thread counted that is told apart from the others, up to the last
    /// [`drain`](Self::drain).
    pub fn ended_threads(&self) -> Vec<ThreadReadings> {
        self.by_thread
            .as_ref()
            .map_or_else(Vec::new, |by_thread| by_thread.threads(self.events.len()))
    }

    /// How many threads have no row of their own; `None` if threads are not told apart.
    pub fn not_told_apart(&self) -> Option<NotToldApart> {
        self.by_thread.as_ref().map(ByThread::not_told_apart)
    }

    /// The name of a thread of the tree, as far as records told it.
    pub fn comm(&self, tid: u32) -> Option<&str> {
        self.by_thread.as_ref()?.comm(tid)
    }
}

impl Backend for Linux {
    type Loaded = Loaded;

    /// `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
    }

    fn description(&self) -> Description {
        Description::perf_events()
    }

    fn load(&mut self, plan: &LoadPlan) -> Result<(Loaded, Vec<Outcome>), Refusal> {
        let mut outcomes = vec![Ok(()); plan.events.len()];
        if let Target::Followed(followed) = &plan.target {
            let open = |place: &Place, outcomes: &mut [Outcome]| open_groups(plan, place, outcomes);
            let (accounted, groups) = Accounted::load(plan, followed, &mut outcomes, open)?;
            refuse_pinned(plan, &mut outcomes);
            let events = plan.events.clone();
            let loaded = Loaded {
                groups,
                events,
                by_thread: None,
                accounted: Some(accounted),
                target: plan.target.clone(),
                is_inherited: plan.inherit.follows(),
                fast: self.fast(plan),
                alarms: Alarms::default(),
                waits_for_exec: false,
            };
            return Ok((loaded, outcomes));
        }
        let fast = self.fast(plan);
        if let Fast::Mapped(_) = fast {
            return Ok((Loaded::mapped(plan, fast), outcomes));
        }
        let mut place = resolve(plan)?;
        let mut groups = Vec::new();
        let mut by_thread = None;
        if plan.inherit == Inherit::TreeByThread {
            let opened =
                ByThread::new(&place).map_err(|errno| call_refusal("perf_event_open", errno))?;
            let by_thread = by_thread.insert(opened);
            for cpu in cpus::online()? {
                place.cpu = number(cpu, "CPU")?;
                by_thread
                    .open_ring(&place)
                    .map_err(|errno| call_refusal("perf_event_open", errno))?;
                let opened = open_groups(plan, &place, &mut outcomes)?;
                opened
                    .iter()
                    .try_for_each(|group| by_thread.adopt(group))
                    .map_err(|errno| call_refusal("ioctl", errno))?;
                groups.extend(opened);
            }
            refuse_pinned(plan, &mut outcomes);
        } else {
            groups = open_groups(plan, &place, &mut outcomes)?;
        }
        if ONE_HIT_A_BLOCK {
            refuse_hidden_breakpoints(&plan.events, &mut outcomes);
        }
        if is_self_monitoring(plan) {
            let hardware = groups.iter_mut().filter(|group| is_hardware(group, &plan.events));
            hardware.for_each(CounterGroup::map_pages);
        }
        let events = plan.events.clone();
        let (target, is_inherited) = (plan.target.clone(), plan.inherit.follows());
        let alarms = open_alarms(plan, &place, &groups)?;
        let waits_for_exec = plan.start_on == StartOn::Exec;
        Ok((
            Loaded {
                groups,
                events,
                by_thread,
                accounted: None,
                target,
                is_inherited,
                fast,
                alarms,
                waits_for_exec,
            },
            outcomes,
        ))
    }

    fn start(&mut self, loaded: &mut Loaded, set: SetId) -> Result<(), Refusal> {
        if let Some(accounted) = &mut loaded.accounted {
            return accounted.start(&loaded.groups, set);
        }
        if let Fast::Mapped(mapped) = &mut loaded.fast {
            match mapped.start() {
                Ok(()) => return Ok(()),
                Err(failure) => mapped.judge(failure)?,
            }
            loaded.fall()?;
        }
        in_set(loaded, set)
            .try_for_each(CounterGroup::enable)
            .map_err(|errno| call_refusal("ioctl", errno))
    }

    fn stop(&mut self, loaded: &mut Loaded, set: SetId) -> Result<(), Refusal> {
        if let Some(accounted) = &mut loaded.accounted {
            return accounted.stop(&loaded.groups, set);
        }
        if let Fast::Mapped(mapped) = &mut loaded.fast {
            match mapped.stop() {
                Ok(()) => return Ok(()),
                Err(failure) => mapped.judge(failure)?,
            }
            loaded.fall()?;
        }
        in_set(loaded, set)
            .try_for_each(CounterGroup::disable)
            .map_err(|errno| call_refusal("ioctl", errno))
    }

    fn read_sets(
        &mut self,
        loaded: &mut Loaded,
        sets: &[SetId],
        readings: &mut [Reading],
    ) -> Result<(), Refusal> {
        let is_plain = loaded.accounted.is_none() && loaded.by_thread.is_none();
        if !is_plain || !matches!(loaded.fast, Fast::No(_)) {
            return self.read(loaded, readings);
        }
        for group in loaded.groups.iter_mut().filter(|group| sets.contains(&group.set)) {
            group.read(readings).map_err(|errno| call_refusal("read", errno))?;
        }
        Ok(())
    }

    fn arm(&mut self, loaded: &mut Loaded, place: usize, after: u64) -> Result<(), Refusal> {
        let mut members = loaded.groups.iter().flat_map(CounterGroup::members);
        let Some((_, counter)) = members.find(|(other, _)| *other == place) else { return Ok(()) };
        set_period(counter, after).map_err(|errno| call_refusal("ioctl", errno))
    }

    fn set_timer(&mut self, loaded: &mut Loaded, after_ns: u64) -> Result<(), Refusal> {
        let set = if std::mem::take(&mut loaded.waits_for_exec) {
            loaded.alarms.set_timer_on_exec(after_ns)
        } else {
            loaded.alarms.set_timer(after_ns)
        };
        set.map_err(|errno| call_refusal("ioctl", errno))
    }

    #[inline]
    fn read(&mut self, loaded: &mut Loaded, readings: &mut [Reading]) -> Result<(), Refusal> {
        if let Fast::Mapped(mapped) = &mut loaded.fast {
            match mapped.read(readings) {
                Ok(()) => return Ok(()),
                Err(failure) => mapped.judge(failure)?,
            }
            loaded.fall()?;
        }
        if let Some(accounted) = &mut loaded.accounted {
            return accounted.read(readings);
        }
        if loaded.by_thread.is_some() {
            return ByThread::read(&loaded.groups, readings)
                .map_err(|errno| call_refusal("read", errno));
        }
        for group in &mut loaded.groups {
            group.read(readings).map_err(|errno| call_refusal("read", errno))?;
        }
        if let Fast::Fallen(fallen) = &loaded.fast {
            fallen.complete(readings);
        }
        Ok(())
    }

    fn unload(&mut self, loaded: Loaded) {
        // What is kept open makes the thread's context switches dearer.
        if let Fast::Mapped(_) = loaded.fast {
            return;
        }
        for event in &loaded.events {
            keep_open(&event.encoding);
        }
    }
}

fn enable(groups: &[CounterGroup]) -> Result<(), Refusal> {
    let enabled = groups.iter().try_for_each(CounterGroup::enable);
    enabled.map_err(|errno| call_refusal("ioctl", errno))
}

fn in_set(loaded: &Loaded, set: SetId) -> impl Iterator<Item = &CounterGroup> {
    loaded.groups.iter().filter(move |group| group.set == set)
}

fn call_refusal(call: &'static str, errno: Errno) -> Refusal {
    explain::use_of_open_event(call, errno)
}
