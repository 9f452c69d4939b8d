/// What is counted when nobody says what to count.
///
/// `kernel_allowed`: whether the user may count in the kernel (CAP_PERFMON, or
/// `kernel.perf_event_paranoid` at 1 or less). Without it the list holds only what user mode can tell:
/// context switches and migrations happen in the kernel and would read 0. `core_pmu`: whether the
/// machine has a PMU for hardware events.
pub fn default_events(kernel_allowed: bool, core_pmu: bool) -> &'static [&'static str] {
    const KERNEL: &[&str] = &[
        "task-clock",
        "context-switches",
        "cpu-migrations",
        "page-faults",
        "cycles",
        "instructions",
        "branches",
        "branch-misses",
    ];
    const USER: &[&str] = &[
        "task-clock",
        "page-faults:u",
        "minor-faults:u",
        "major-faults:u",
        "cycles:u",
        "instructions:u",
        "branches:u",
        "branch-misses:u",
    ];
    /// How many of them need no core PMU.
    const SOFTWARE: usize = 4;

    let events = if kernel_allowed { KERNEL } else { USER };
    if core_pmu { events } else { &events[..SOFTWARE] }
}
