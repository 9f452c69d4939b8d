//! Counts that would look right and are not: pairs of event and modifier that the kernel takes, and
//! then counts nothing, or counts as if the modifier were not there.

use perfmon_core::{Privilege, Refusal};

/// Events that the kernel treats alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// task-clock, cpu-clock.
    Clock,
    /// page-faults, minor-faults, major-faults.
    PageFault,
    /// context-switches, cpu-migrations, cgroup-switches.
    Scheduler,
    /// alignment-faults, emulation-faults.
    Trap,
    /// dummy, bpf-output.
    CountsNothing,
    /// A tracepoint that is built into the kernel or a module.
    Tracepoint,
    /// A tracepoint of the group `syscalls`.
    SystemCall,
    /// A tracepoint that was made at run time from a probe, of the kernel or of a program.
    ProbeEvent,
    /// uprobe, uretprobe.
    Uprobe,
    /// kprobe, kretprobe.
    Kprobe,
    /// Execution of an address in the user half of the address space.
    UserCodeBreakpoint,
    /// Any other breakpoint.
    Breakpoint,
}

impl Subject {
    /// What the event `config` of the kernel's PMU of this type is, as far as its number tells.
    /// Source: `enum perf_sw_ids`, `include/uapi/linux/perf_event.h` (Linux 6.18).
    pub(crate) fn of(pmu_type: u32, config: u64) -> Option<Self> {
        match (pmu_type, config) {
            (1, 0 | 1) => Some(Self::Clock),
            (1, 2 | 5 | 6) => Some(Self::PageFault),
            (1, 3 | 4 | 11) => Some(Self::Scheduler),
            (1, 7 | 8) => Some(Self::Trap),
            (1, 9 | 10) => Some(Self::CountsNothing),
            (2, _) => Some(Self::Tracepoint),
            _ => None,
        }
    }
}

/// A row of the table.
struct Row {
    subjects: &'static [Subject],
    /// With which modifiers.
    with: fn(&Privilege) -> bool,
    why: &'static str,
    hint: &'static str,
}

const WITHOUT: &str = "count it without the modifier";
const IN_KERNEL: &str = "count it without the modifier, which needs CAP_PERFMON or \
                         kernel.perf_event_paranoid at 1 or less";
const OTHER_EVENT: &str = "choose another event";

/// Everything the kernel counts without a PMU.
const SOFTWARE: &[Subject] = &[
    Subject::Clock,
    Subject::PageFault,
    Subject::Scheduler,
    Subject::Tracepoint,
    Subject::SystemCall,
    Subject::ProbeEvent,
    Subject::Uprobe,
    Subject::Kprobe,
    Subject::UserCodeBreakpoint,
    Subject::Breakpoint,
];

/// The table. "Measured" means on Linux 6.18, x86_64, as root, against the same event without the
/// modifier; "source" is `kernel/events/core.c` of Linux 6.18 unless it says otherwise.
const TABLE: &[Row] = &[
    // Measured: 0 over a run of 41 context switches and 1575 page faults. Source: nothing raises either
    // (`bpf_perf_event_output` of kernel/trace/bpf_trace.c writes a sample and adds nothing).
    Row {
        subjects: &[Subject::CountsNothing],
        with: |_| true,
        why: "this event counts nothing: it only carries samples, and always reads 0",
        hint: OTHER_EVENT,
    },
    // Measured: 0 of 5 alignment checks (EFLAGS.AC) and 0 of 5 sgdt under UMIP. Source: nothing in
    // arch/x86 raises PERF_COUNT_SW_ALIGNMENT_FAULTS or PERF_COUNT_SW_EMULATION_FAULTS.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    Row {
        subjects: &[Subject::Trap],
        with: |_| true,
        why: "nothing raises this event on x86: it always reads 0",
        hint: OTHER_EVENT,
    },
    // Measured: task-clock:u, :k, :h and cpu-clock:u, :k read as without. Source: `task_clock_event_read`.
    Row {
        subjects: &[Subject::Clock],
        with: |privilege| privilege.exclude_user || privilege.exclude_kernel,
        why: "the clocks ignore 'u', 'k' and 'h': this would count all time",
        hint: "count it without the modifier: an ordinary user may",
    },
    // Measured: 0 of 41 context switches, 0 of 18 migrations, 0 of tens of cgroup switches with 'u'
    // and 'h'. Source: `perf_sw_event_sched` passes the kernel's registers.
    Row {
        subjects: &[Subject::Scheduler],
        with: |privilege| privilege.exclude_kernel,
        why: "this event happens in the kernel: without 'k' it always reads 0",
        hint: IN_KERNEL,
    },
    // Measured: 0 of 1575 page faults; 0 of 1108 accesses, 0 of 300 executions. Source: `perf_exclude_event`.
    Row {
        subjects: &[Subject::PageFault, Subject::Breakpoint, Subject::UserCodeBreakpoint],
        with: |privilege| privilege.exclude_user && privilege.exclude_kernel,
        why: "this event happens in user mode or in the kernel: without 'u' and 'k' it always reads 0",
        hint: WITHOUT,
    },
    // Measured: 0 of 300 executions.
    #[cfg(target_arch = "x86_64")]
    Row {
        subjects: &[Subject::UserCodeBreakpoint],
        with: |privilege| privilege.exclude_user,
        why: "the kernel does not execute user addresses: without 'u' this always reads 0",
        hint: WITHOUT,
    },
    // Measured: 0 of 230 raw_syscalls:sys_enter, 49 sched:sched_switch, 74 power:cpu_idle, 46
    // exceptions:page_fault_user. Source: `perf_tp_event_match`, and `perf_trace_*` of
    // include/trace/perf.h, which passes the kernel's registers.
    Row {
        subjects: &[Subject::Tracepoint],
        with: |privilege| privilege.exclude_kernel,
        why: "this tracepoint lies in the kernel: without 'k' it always reads 0",
        hint: IN_KERNEL,
    },
    // Measured on arm64 with Linux 6.1, 6.12 and 7.3: 0 of 100 calls. Source: `perf_tp_event_match`.
    Row {
        subjects: &[Subject::Kprobe],
        with: |privilege| privilege.exclude_kernel,
        why: "this probe lies in the kernel: without 'k' it always reads 0",
        hint: IN_KERNEL,
    },
    // Measured: syscalls:sys_enter_write, :sys_exit_write, a probe event and uprobes read the same with
    // 'k' and 'h' as without. Source: `perf_tp_event_match` tests exclude_kernel only, on registers of
    // user mode.
    Row {
        subjects: &[Subject::SystemCall, Subject::ProbeEvent, Subject::Uprobe],
        with: |privilege| privilege.exclude_user,
        why: "the kernel counts this event whether or not it excludes user mode",
        hint: "count it without the modifier or with ':u'",
    },
    // Measured for each subject: reads as without 'G'; nothing ran in a guest. Source: nothing outside
    // the PMU drivers looks at exclude_host.
    Row {
        subjects: SOFTWARE,
        with: |privilege| privilege.exclude_host,
        why: "this event ignores 'G': it would count on the host",
        hint: WITHOUT,
    },
    // Measured for each subject: reads as without 'I'; cpu-clock:I and power:cpu_idle:I of an idle CPU
    // too. Source: counting looks at exclude_idle in PMU drivers only.
    Row {
        subjects: SOFTWARE,
        with: |privilege| privilege.exclude_idle,
        why: "this event ignores 'I': it would count while the CPU is idle",
        hint: WITHOUT,
    },
];

/// Refuses a pair whose count would be zero or another event's.
pub(crate) fn check(subject: Subject, privilege: &Privilege) -> Result<(), Refusal> {
    let row = TABLE.iter().find(|row| row.subjects.contains(&subject) && (row.with)(privilege));
    row.map_or(Ok(()), |row| Err(Refusal::new(row.why).hint(row.hint)))
}
