use perfmon_core::{Outcome, PlannedEvent, Refusal, SetId};
use perfmon_data::pmu_type;

use crate::proc_file;

/// `PERF_COUNT_SW_CGROUP_SWITCHES`: counted between the tracepoint of a switch and the end of the switch, or not.
const CGROUP_SWITCHES: u64 = 11;

/// Tracepoints that the kernel also counts for another task than the current one (`__perf_task` in
/// include/trace/events/sched.h), where the event is open for tasks.
const OF_OTHER_TASKS: [&str; 7] = [
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_waking",
    "sched_stat_wait",
    "sched_stat_sleep",
    "sched_stat_iowait",
    "sched_stat_blocked",
];

/// Refuses events for which accounting at context switches would give another count than the kernel's own.
pub(crate) fn refuse(events: &[PlannedEvent], outcomes: &mut [Outcome]) {
    let mut others: Option<Vec<(u64, &str)>> = None;
    for (event, outcome) in events.iter().zip(outcomes) {
        let encoding = &event.encoding;
        let why = match encoding.pmu_type {
            pmu_type::SOFTWARE if encoding.config == CGROUP_SWITCHES => {
                "the kernel counts it in the middle of a context switch, where no task can be told"
            }
            pmu_type::TRACEPOINT => {
                let others = others.get_or_insert_with(|| {
                    OF_OTHER_TASKS
                        .iter()
                        .filter_map(|name| Some((tracepoint_id(name)?, *name)))
                        .collect()
                });
                if !others.iter().any(|&(id, _)| id == encoding.config) {
                    continue;
                }
                "the kernel also counts it for tasks that do not run at that moment"
            }
            _ => continue,
        };
        let hint = "count it without accounting, or on CPUs";
        *outcome = Err(Refusal::new(why).hint(hint));
    }
}

/// Refuses events in sets that take `turns` which the kernel counts in a context switch, around the programs that account:
/// these would have to know which set is on.
pub(crate) fn refuse_at_switches(
    events: &[PlannedEvent],
    turns: &[SetId],
    outcomes: &mut [Outcome],
) {
    for (event, outcome) in events.iter().zip(outcomes) {
        let config = event.encoding.config;
        let is_at_switch = match event.encoding.pmu_type {
            pmu_type::SOFTWARE => config == super::CONTEXT_SWITCHES,
            pmu_type::TRACEPOINT => Some(config) == tracepoint_id("sched_switch"),
            _ => false,
        };
        if is_at_switch && turns.contains(&event.set) {
            let why =
                "the kernel counts it in the middle of a context switch, where no set can be told";
            *outcome = Err(Refusal::new(why).hint("count it all the time: name it with -e"));
        }
    }
}

/// The number of one of the scheduler's tracepoints.
pub(super) fn tracepoint_id(name: &str) -> Option<u64> {
    let id = |root| proc_file::read(format!("{root}/events/sched/{name}/id"));
    id("/sys/kernel/tracing").or_else(|| id("/sys/kernel/debug/tracing"))?.trim().parse().ok()
}
