//! Counts of tasks from events of CPUs: programs in the kernel account what each event counted to the task that ran.

mod kernel_side;
mod refused;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use perfmon_bpf::Errno;
use perfmon_core::{Followed, Inherit, LoadPlan, Outcome, Reading, Refusal, SetId, StartOn};
use perfmon_data::pmu_type;

use crate::counter::{Counter, Place};
use crate::cpus;
use crate::group::CounterGroup;
use kernel_side::{KernelSide, Purpose};

pub(crate) use kernel_side::{is_initial_namespace, refusal, task_offset};
pub(crate) use refused::{refuse, refuse_at_switches};
pub use rows::TaskReadings;

/// How many events can be accounted.
pub(crate) const EVENTS_MAX: usize = kernel_side::layout::EVENTS_MAX;
/// Room for the rows of some 20,000 tasks between two reads of them.
const ENDED_BYTES: u32 = 1 << 24;
/// `PERF_COUNT_SW_CONTEXT_SWITCHES`, which the kernel counts right after the tracepoint of the switch.
const CONTEXT_SWITCHES: u64 = 3;

/// Tasks that are followed, with the programs that do it.
pub(crate) struct Accounted {
    kernel: KernelSide,
    /// For each event of the kernel side its place in the plan.
    places: Vec<usize>,
    /// The command's own events, which count from its exec until it leaves the CPU for the first time.
    starters: Vec<CounterGroup>,
    /// The sets that take turns, unless there is one only: that one counts all the time.
    turns: Vec<SetId>,
    /// The sets that count now.
    counting: BTreeSet<SetId>,
    /// What is known of ended tasks, if rows are wanted.
    rows: Option<rows::Rows>,
    is_system: bool,
}

/// What says that accounted counts are not exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Tasks that could not be followed: there was no memory, or the kernel skipped programs.
    pub unfollowed: u64,
    /// Times on a CPU that were not accounted.
    pub gaps: u64,
    /// Events that could not be read.
    pub read_errors: u64,
    /// Ended tasks without a row of their own.
    pub lost: u64,
    /// Times that a task came to a CPU after one of a process that the kernel hides from events: that one's time is in the
    /// task's clocks.
    pub unseen: u64,
}

impl Audit {
    /// Whether all that was counted is in the totals.
    pub fn is_complete(&self) -> bool {
        self.unfollowed == 0 && self.gaps == 0 && self.read_errors == 0
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unfollowed, gaps, read_errors, .. } = self;
        write!(
            f,
            "not all was accounted: {unfollowed} tasks could not be followed, {gaps} times on a CPU were missed, \
             {read_errors} reads of events failed"
        )
    }
}

impl Accounted {
    /// Opens the events of `plan` on every CPU, and accounts them to the tasks of `followed`. Says in `outcomes` which
    /// events could not be had.
    pub(crate) fn load(
        plan: &LoadPlan,
        followed: &Followed,
        outcomes: &mut [Outcome],
        open: impl Fn(&Place, &mut [Outcome]) -> Result<Vec<CounterGroup>, Refusal>,
    ) -> Result<(Self, Vec<CounterGroup>), Refusal> {
        refuse(&plan.events, outcomes);
        let turns = turns(plan);
        refuse_at_switches(&plan.events, &turns, outcomes);
        let place =
            |tid, cpu, start_on| Place { tid, cpu, cgroup: None, inherit: Inherit::None, start_on };
        let online = cpus::online()?;
        let mut of_cpus = Vec::with_capacity(online.len());
        for &cpu in &online {
            let groups = open(&place(-1, signed(cpu)?, StartOn::Call), outcomes)?;
            // Only now: what joins a leader that counts already is not scheduled with it.
            groups
                .iter()
                .filter(|group| !turns.contains(&group.set))
                .try_for_each(CounterGroup::enable)
                .map_err(use_refusal)?;
            of_cpus.push((cpu, groups));
        }
        let starters = match *followed {
            Followed::Command(pid) if plan.start_on == StartOn::Exec => {
                open(&place(signed(pid)?, -1, StartOn::Exec), outcomes)?
            }
            _ => Vec::new(),
        };
        refuse_without_task(plan, outcomes);
        let accepted: Vec<usize> = (0..plan.events.len())
            .filter(|&event| outcomes.get(event).is_some_and(Result::is_ok))
            .collect();
        let places: Vec<usize> = accepted.iter().copied().take(EVENTS_MAX).collect();
        for &event in accepted.iter().skip(EVENTS_MAX) {
            let why = format!("no more than {EVENTS_MAX} events can be accounted at once");
            outcomes[event] = Err(Refusal::new(why).hint("count the others in a run of their own"));
        }
        let bits = |pmu_type, config: Option<u64>| {
            let is_it = |&event: &usize| {
                let encoding = &plan.events[event].encoding;
                encoding.pmu_type == pmu_type && Some(encoding.config) == config
            };
            let events = places.iter().enumerate().filter(|(_, event)| is_it(event));
            events.fold(0, |bits, (number, _)| bits | 1 << number)
        };
        let kernel = KernelSide::load(&kernel_side::Options {
            events: places.len(),
            late: bits(pmu_type::SOFTWARE, Some(CONTEXT_SWITCHES)),
            at_switch: bits(pmu_type::TRACEPOINT, refused::tracepoint_id("sched_switch")),
            follow: plan.inherit.follows(),
            system: *followed == Followed::System,
            rows: plan.inherit != Inherit::Tree,
            ended_bytes: if plan.inherit == Inherit::Tree { 0 } else { ENDED_BYTES },
        })?;
        for (cpu, groups) in &of_cpus {
            for (event, counter) in members(groups, &places) {
                kernel.plug_cpu(event, *cpu, counter)?;
            }
        }
        for (event, counter) in members(&starters, &places) {
            kernel.plug_starter(event, counter)?;
        }
        let rows = (plan.inherit != Inherit::Tree).then(rows::Rows::default);
        let is_system = *followed == Followed::System;
        let mut accounted =
            Self { kernel, places, starters, turns, counting: BTreeSet::new(), rows, is_system };
        accounted.kernel.attach(plan.inherit.follows() || *followed == Followed::System)?;
        accounted.kernel.note_hidden()?;
        accounted.seed(followed, plan.start_on)?;
        let groups: Vec<CounterGroup> =
            of_cpus.into_iter().flat_map(|(_, groups)| groups).collect();
        if plan.start_on == StartOn::Exec {
            // Of the command's own events the exec starts these.
            let in_turn = groups.iter().filter(|group| accounted.turns.contains(&group.set));
            let mut active = in_turn.filter(|group| group.set == plan.active);
            active.try_for_each(CounterGroup::enable).map_err(use_refusal)?;
            accounted.counting = plan.always.iter().copied().chain([plan.active]).collect();
        }
        Ok((accounted, groups))
    }

    fn seed(&mut self, followed: &Followed, start_on: StartOn) -> Result<(), Refusal> {
        let waits = start_on == StartOn::Exec;
        match followed {
            Followed::Command(pid) => self.kernel.seed_process(*pid, waits)?,
            Followed::Processes(pids) => {
                pids.iter().try_for_each(|&pid| self.kernel.seed_process(pid, false))?;
            }
            Followed::Threads(tids) => {
                tids.iter().try_for_each(|&tid| self.kernel.seed_thread(tid))?;
            }
            Followed::System => self.kernel.seed_all()?,
        }
        if waits { self.begin() } else { Ok(()) }
    }

    fn begin(&self) -> Result<(), Refusal> {
        self.kernel.set_active(true);
        self.kernel.flush(Purpose::Start)
    }

    /// Lets `set` count, whose events are among `groups`; with the first set the accounting begins.
    pub(crate) fn start(&mut self, groups: &[CounterGroup], set: SetId) -> Result<(), Refusal> {
        if self.counting.is_empty() {
            self.begin()?;
        }
        self.counting.insert(set);
        self.each_in_turn(groups, set, CounterGroup::enable)
    }

    /// Stops `set`; with the last set the accounting ends.
    pub(crate) fn stop(&mut self, groups: &[CounterGroup], set: SetId) -> Result<(), Refusal> {
        self.each_in_turn(groups, set, CounterGroup::disable)?;
        if self.counting.remove(&set) && self.counting.is_empty() {
            self.kernel.set_active(false);
            self.kernel.flush(Purpose::Stop)?;
        }
        Ok(())
    }

    /// Switches the events of a set that takes turns; those of the others count all the time.
    fn each_in_turn(
        &self,
        groups: &[CounterGroup],
        set: SetId,
        step: fn(&CounterGroup) -> Result<(), Errno>,
    ) -> Result<(), Refusal> {
        if !self.turns.contains(&set) {
            return Ok(());
        }
        let mut of_set = self.starters.iter().chain(groups).filter(|group| group.set == set);
        of_set.try_for_each(step).map_err(use_refusal)
    }

    /// Reads the totals of all tasks that are and were followed.
    pub(crate) fn read(&mut self, readings: &mut [Reading]) -> Result<(), Refusal> {
        self.kernel.flush(Purpose::Read)?;
        self.kernel.totals(|event, reading| {
            let place = self.places.get(event).and_then(|&place| readings.get_mut(place));
            if let Some(place) = place {
                *place = reading;
            }
        });
        let audit = self.audit();
        if audit.is_complete() { Ok(()) } else { Err(Refusal::new(audit.to_string())) }
    }

    /// Takes note of the tasks that have ended.
    pub(crate) fn drain(&mut self) {
        if let Some(rows) = &mut self.rows {
            self.kernel.drain(|row| rows.note(row));
        }
    }

    /// What each task has counted that is or was followed, if rows are wanted: of the whole system, each that has run.
    pub(crate) fn tasks(&mut self, events: usize) -> Result<Option<Vec<TaskReadings>>, Refusal> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        self.kernel.flush(Purpose::Read)?;
        let live = self.kernel.live_rows()?;
        self.kernel.drain(|row| rows.note(row));
        let mut tasks = rows.readings(&live, &self.places, events);
        if self.is_system {
            let ran = |task: &TaskReadings| task.readings.iter().any(|it| it.enabled_ns > 0);
            tasks.retain(ran);
        }
        Ok(Some(tasks))
    }

    pub(crate) fn audit(&self) -> Audit {
        self.kernel.audit()
    }
}

impl fmt::Debug for Accounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounted").field("places", &self.places).finish_non_exhaustive()
    }
}

/// The counters of `groups` with the number that their event has among `places`.
fn members<'a>(
    groups: &'a [CounterGroup],
    places: &'a [usize],
) -> impl Iterator<Item = (usize, &'a Counter)> {
    let members = groups.iter().flat_map(CounterGroup::members);
    members.filter_map(|(place, counter)| {
        Some((places.iter().position(|&other| other == place)?, counter))
    })
}

/// Refuses events that count what no task does: those of uncore PMUs, which can be opened on CPUs only.
fn refuse_without_task(plan: &LoadPlan, outcomes: &mut [Outcome]) {
    let here =
        Place { tid: 0, cpu: -1, cgroup: None, inherit: Inherit::None, start_on: StartOn::Call };
    for (event, outcome) in plan.events.iter().zip(outcomes) {
        if outcome.is_ok()
            && let Err(Errno::INVAL) = Counter::open(&event.encoding, &here, None)
        {
            let why = "the event counts for whole CPUs and not for tasks";
            *outcome = Err(Refusal::new(why).hint("count it on all CPUs (-a), without accounting"));
        }
    }
}

/// The sets that take turns; none if there is one only, which counts all the time.
fn turns(plan: &LoadPlan) -> Vec<SetId> {
    let mut sets: Vec<SetId> = plan.events.iter().map(|event| event.set).collect();
    sets.push(plan.active);
    sets.retain(|set| !plan.always.contains(set));
    sets.sort_unstable();
    sets.dedup();
    if sets.len() > 1 { sets } else { Vec::new() }
}

fn use_refusal(errno: Errno) -> Refusal {
    crate::explain::use_of_open_event("ioctl", errno)
}

fn signed(number: u32) -> Result<i32, Refusal> {
    i32::try_from(number).map_err(|_| Refusal::new(format!("there is no number {number}")))
}
