use std::fs::File;

use perfmon_core::{
    Backend, Description, Encoding, Inherit, LoadPlan, Outcome, PlannedEvent, Reading, Refusal,
    SetId, StartOn, Target,
};
use perfmon_data::pmu_type;
use perfmon_sys::Errno;

use crate::accounted::{Accounted, Audit, TaskReadings};
use crate::by_thread::{ByThread, NotToldApart, ThreadReadings};
use crate::counter::Place;
use crate::cpus;
use crate::explain::{self, Ask};
use crate::group::{CounterGroup, GroupPlan, is_software, plan_groups};
use crate::keep::keep_open;
use crate::mapped::{Fast, ReadPath};
use crate::permissions::{Permissions, has_core_pmu};
use crate::published::ToPublish;
use crate::user_read::UserRead;

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
        }
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
        let plan = LoadPlan { target, inherit: Inherit::None, start_on: StartOn::Call, events };
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
            let accounted = Some(accounted);
            let fast = self.fast(plan);
            let (target, is_inherited) = (plan.target.clone(), plan.inherit.follows());
            return Ok((
                Loaded { groups, events, by_thread: None, accounted, target, is_inherited, fast },
                outcomes,
            ));
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
        let accounted = None;
        Ok((Loaded { groups, events, by_thread, accounted, target, is_inherited, fast }, outcomes))
    }

    fn start(&mut self, loaded: &mut Loaded, set: SetId) -> Result<(), Refusal> {
        if let Some(accounted) = &mut loaded.accounted {
            return accounted.start();
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
            return accounted.stop();
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

/// Opens all events of `plan` at `place`; notes in `outcomes` which could not be had.
fn open_groups(
    plan: &LoadPlan,
    place: &Place,
    outcomes: &mut [Outcome],
) -> Result<Vec<CounterGroup>, Refusal> {
    let mut groups = Vec::new();
    let has_hardware = plan.events.iter().any(|event| !is_software(&event.encoding));
    let user_read = if has_hardware && is_self_monitoring(plan) {
        UserRead::here()
    } else {
        UserRead::default()
    };
    for group_plan in plan_groups(&plan.events) {
        let (group, refused) = CounterGroup::open(&group_plan, &plan.events, place, &user_read);
        note_refusals(plan, &group_plan, &refused, outcomes)?;
        groups.extend(group);
    }
    Ok(groups)
}

/// Whether one store may hit several data breakpoints and be reported for only one of them: seen on arm64, where a
/// store to a block of 16 bytes counts for one address in it, and leaves 0 for others.
const ONE_HIT_A_BLOCK: bool = cfg!(target_arch = "aarch64");

/// Refuses data breakpoints that a hit of another one may hide.
fn refuse_hidden_breakpoints(events: &[PlannedEvent], outcomes: &mut [Outcome]) {
    const BLOCK_BYTES: u64 = 16;
    const EXECUTE: u32 = 4;
    let watched = |event: &PlannedEvent| {
        let Encoding { pmu_type, bp_type, config1, config2, .. } = *event.encoding;
        let last = config1.saturating_add(config2.saturating_sub(1));
        let data = pmu_type == pmu_type::BREAKPOINT && bp_type != EXECUTE;
        data.then_some((config1, config1 / BLOCK_BYTES, last / BLOCK_BYTES))
    };
    for (event, outcome) in events.iter().zip(outcomes) {
        let Some((address, first, last)) = watched(event) else { continue };
        let hidden = events
            .iter()
            .filter_map(watched)
            .any(|(other, begin, end)| other != address && first <= end && begin <= last);
        if hidden {
            let why = "a store may hit this and another breakpoint nearby, and this machine then counts only one";
            *outcome = Err(Refusal::new(why).hint("count them one by one, in runs of their own"));
        }
    }
}

/// Threads are told apart by what their events counted, and an event in error does not say that it is.
fn refuse_pinned(plan: &LoadPlan, outcomes: &mut [Outcome]) {
    for (event, outcome) in plan.events.iter().zip(outcomes) {
        if event.encoding.pinned {
            let why = "a pinned event may stop counting, which can't be seen thread by thread";
            *outcome = Err(Refusal::new(why).hint("try without the modifier D"));
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

/// Whether a thread counts itself alone, and so may read counters without a system call.
fn is_self_monitoring(plan: &LoadPlan) -> bool {
    plan.target == Target::CurrentThread && plan.inherit == Inherit::None
}

fn is_hardware(group: &CounterGroup, events: &[PlannedEvent]) -> bool {
    let mut members = group.places().iter().filter_map(|&place| events.get(place));
    members.all(|event| !is_software(&event.encoding))
}

fn number(number: u32, what: &str) -> Result<i32, Refusal> {
    i32::try_from(number).map_err(|_| Refusal::new(format!("there is no {what} {number}")))
}

/// The target as the kernel takes it.
fn resolve(plan: &LoadPlan) -> Result<Place, Refusal> {
    let &LoadPlan { ref target, inherit, start_on, .. } = plan;
    let place = |tid, cpu, cgroup| Place { tid, cpu, cgroup, inherit, start_on };
    Ok(match target {
        Target::CurrentThread => place(0, -1, None),
        Target::Thread(tid) => place(number(*tid, "thread")?, -1, None),
        Target::Cpu(cpu) => place(-1, number(*cpu, "CPU")?, None),
        Target::Cgroup { path, cpu } => {
            let directory = File::open(path.as_ref()).map_err(|error| {
                Refusal::new(format!("can't open the cgroup {}: {error}", path.display()))
            })?;
            place(-1, number(*cpu, "CPU")?, Some(directory.into()))
        }
        Target::Followed(_) => return Err(Refusal::new("tasks that are followed are no place")),
    })
}

/// Puts into `outcomes` why events were refused. A target that is gone fails the whole plan.
fn note_refusals(
    plan: &LoadPlan,
    group: &GroupPlan,
    refused: &[(usize, Errno)],
    outcomes: &mut [Outcome],
) -> Result<(), Refusal> {
    let per_thread = matches!(plan.target, Target::CurrentThread | Target::Thread(_));
    for &(place, errno) in refused {
        let Some(event) = plan.events.get(place) else { continue };
        let ask = Ask {
            encoding: &event.encoding,
            target: &plan.target,
            in_group: group.places[0] != place,
            core_pmu: errno == Errno::NOENT && has_core_pmu(),
        };
        let refusal = explain::open(errno, &ask, &Permissions::current());
        if errno == Errno::SRCH && per_thread || errno == Errno::MFILE || errno == Errno::NFILE {
            return Err(refusal);
        }
        if group.together {
            let others = group.places.iter().filter(|&&other| other != place);
            for &other in others {
                let why = format!(
                    "a group is all or nothing, and another event of its group was refused: {refusal}"
                );
                outcomes[other] = Err(Refusal::new(why));
            }
        }
        outcomes[place] = Err(refusal);
    }
    Ok(())
}

fn call_refusal(call: &'static str, errno: Errno) -> Refusal {
    explain::use_of_open_event(call, errno)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use perfmon_core::{Group, PmdIndex};

    use super::*;

    /// Check which breakpoints of a list may hide each other: different addresses in one block of 16 bytes.
    #[test]
    fn breakpoints_nearby_are_refused() {
        let watch = |address, length, kind| PlannedEvent {
            set: SetId(0),
            pmd: PmdIndex(0),
            encoding: Arc::new(Encoding {
                pmu_type: pmu_type::BREAKPOINT,
                config1: address,
                config2: length,
                bp_type: kind,
                ..Encoding::default()
            }),
            group: Group::Free,
        };
        let refused = |events: &[PlannedEvent]| {
            let mut outcomes = vec![Ok(()); events.len()];
            refuse_hidden_breakpoints(events, &mut outcomes);
            outcomes.iter().map(Result::is_err).collect::<Vec<_>>()
        };
        assert_eq!(refused(&[watch(0xfe8, 8, 2), watch(0xfec, 4, 2)]), [true, true]);
        assert_eq!(refused(&[watch(0xfe8, 8, 2), watch(0xff0, 8, 2)]), [false, false]);
        assert_eq!(refused(&[watch(0xfe8, 8, 2), watch(0xfe8, 8, 2)]), [false, false]);
        assert_eq!(refused(&[watch(0xfe8, 8, 2), watch(0xfe0, 8, 4)]), [false, false]);
    }
}
