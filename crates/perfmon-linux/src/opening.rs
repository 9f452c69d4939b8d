//! From a plan to open events.

use std::fs::File;

use perfmon_core::{Encoding, Inherit, LoadPlan, Outcome, PlannedEvent, Refusal, StartOn, Target};
use perfmon_data::pmu_type;
use perfmon_sys::Errno;

use crate::alarm::Alarms;
use crate::counter::Place;
use crate::explain::{self, Ask};
use crate::group::{CounterGroup, GroupPlan, is_software, plan_groups};
use crate::permissions::{Permissions, has_core_pmu};
use crate::user_read::UserRead;

/// Opens all events of `plan` at `place`; notes in `outcomes` which could not be had.
pub(crate) fn open_groups(
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
    // Sets that wait for their turn are not started by an exec.
    let later = Place { cgroup: None, start_on: StartOn::Call, ..*place };
    let is_first = |set| set == plan.active || plan.always.contains(&set);
    for group_plan in plan_groups(&plan.events) {
        let waits = place.start_on == StartOn::Exec && !is_first(group_plan.set);
        let place = if waits { &later } else { place };
        let (group, refused) = CounterGroup::open(&group_plan, &plan.events, place, &user_read);
        note_refusals(plan, &group_plan, &refused, outcomes)?;
        groups.extend(group);
    }
    Ok(groups)
}

/// What tells that a set of `plan` is to be left.
pub(crate) fn open_alarms(
    plan: &LoadPlan,
    place: &Place,
    groups: &[CounterGroup],
) -> Result<Alarms, Refusal> {
    let refusal = |errno| {
        explain::use_of_open_event("mmap", errno)
            .hint("raise kernel.perf_event_mlock_kb, or leave sets of CPUs by time")
    };
    let is_timed = plan.timed && place.is_thread() && !plan.inherit.follows();
    let mut alarms =
        if is_timed { Alarms::with_timer(place).map_err(refusal)? } else { Alarms::default() };
    for (event, _) in plan.events.iter().enumerate().filter(|(_, event)| event.period > 0) {
        alarms.watch(groups, event).map_err(refusal)?;
    }
    Ok(alarms)
}

/// Whether one store may hit several data breakpoints and be reported for only one of them: seen on arm64, where a
/// store to a block of 16 bytes counts for one address in it, and leaves 0 for others.
pub(crate) const ONE_HIT_A_BLOCK: bool = cfg!(target_arch = "aarch64");

/// Refuses data breakpoints that a hit of another one may hide.
pub(crate) fn refuse_hidden_breakpoints(events: &[PlannedEvent], outcomes: &mut [Outcome]) {
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
pub(crate) fn refuse_pinned(plan: &LoadPlan, outcomes: &mut [Outcome]) {
    for (event, outcome) in plan.events.iter().zip(outcomes) {
        if event.encoding.pinned {
            let why = "a pinned event may stop counting, which can't be seen thread by thread";
            *outcome = Err(Refusal::new(why).hint("try without the modifier D"));
        }
    }
}

/// Whether a thread counts itself alone, and so may read counters without a system call.
pub(crate) fn is_self_monitoring(plan: &LoadPlan) -> bool {
    plan.target == Target::CurrentThread && plan.inherit == Inherit::None
}

pub(crate) fn is_hardware(group: &CounterGroup, events: &[PlannedEvent]) -> bool {
    let mut members = group.places().iter().filter_map(|&place| events.get(place));
    members.all(|event| !is_software(&event.encoding))
}

pub(crate) fn number(number: u32, what: &str) -> Result<i32, Refusal> {
    i32::try_from(number).map_err(|_| Refusal::new(format!("there is no {what} {number}")))
}

/// The target as the kernel takes it.
pub(crate) fn resolve(plan: &LoadPlan) -> Result<Place, Refusal> {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use perfmon_core::{Group, PmdIndex, SetId};

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
            period: 0,
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
