//! What an errno means, given what was asked and what is allowed: the one place that says so.
//!
//! The kernel answers `EINVAL` or `EACCES` for many different reasons; here the attributes, the target and the
//! permissions are put together with it into a reason and a hint.
//!
//! # References
//! - perf_event_open(2), "Errors"
//! - `kernel/events/core.c`

use perfmon_core::{Encoding, Refusal, Target};
use perfmon_data::pmu_type;
use perfmon_sys::Errno;

use crate::permissions::Permissions;

/// What was asked of `perf_event_open`.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The event.
    pub encoding: &'a Encoding,
    /// Where it was to count.
    pub target: &'a Target,
    /// It was to join a group that had a leader already.
    pub in_group: bool,
    /// The machine has a core PMU.
    pub core_pmu: bool,
}

/// Why `perf_event_open` said `errno`, and what to do next.
pub fn open(errno: Errno, ask: &Ask<'_>, permissions: &Permissions) -> Refusal {
    let (why, hint) = match errno {
        Errno::ACCESS | Errno::PERM => permission(errno, ask, permissions),
        Errno::NOENT => missing(ask),
        Errno::INVAL => invalid(ask),
        // x86 looks at the instructions (`can_probe`), arm64 at the address.
        Errno::ILSEQ if is_kprobe(ask.encoding) => invalid(ask),
        Errno::NODEV => no_device(ask),
        Errno::OPNOTSUPP => not_supported(ask),
        Errno::SRCH => ("the target has ended", "name a thread or process that is running"),
        Errno::BUSY => (
            "another user has the PMU to itself",
            "wait for it, or try without the modifiers D and e",
        ),
        Errno::NOSPC if ask.encoding.pmu_type == pmu_type::BREAKPOINT => (
            "all breakpoint registers are in use (most machines have 4)",
            "watch fewer addresses at once, or end the debugger that uses them",
        ),
        Errno::NOSPC => ("the PMU has no room left", "count fewer events at once"),
        Errno::ADDRNOTAVAIL if is_kprobe(ask.encoding) => (
            "several functions of the kernel have this name",
            "probe a function that has its name for itself",
        ),
        // `perf_event_validate_size` of kernel/events/core.c: at most 16 KiB.
        Errno::TOOBIG if ask.in_group => (
            "its group has too many events: it could not be read as a whole",
            "split it into smaller groups",
        ),
        errno => return use_of_open_event("perf_event_open", errno),
    };
    named(Refusal::new(why), "perf_event_open", errno).hint(hint)
}

/// Why a call on an event that is open already, or one that any event may meet, said `errno`.
pub fn use_of_open_event(call: &'static str, errno: Errno) -> Refusal {
    let (why, hint) = match errno {
        Errno::MFILE => (
            "this process has no file descriptor left",
            "raise the limit (ulimit -n), or count fewer events, threads or CPUs at once",
        ),
        Errno::NFILE => (
            "the machine has no file descriptor left",
            "raise /proc/sys/fs/file-max, or count fewer events, threads or CPUs at once",
        ),
        Errno::NOMEM => ("the kernel has no memory for it", "count fewer events at once"),
        Errno::CHILD => (
            "a descendant's copy of the group kept changing while it was read",
            "count the events one by one, without { }",
        ),
        Errno::TOOBIG => ("this kernel is older than the event's attributes", "use a newer kernel"),
        Errno::NOSYS => ("this kernel has no perf events", "use a kernel with CONFIG_PERF_EVENTS"),
        Errno::FAULT => ("the event's file name is not readable", "name another file"),
        Errno::INTR => ("a signal came in between", "try again"),
        _ => return named(Refusal::new("the kernel refused"), call, errno),
    };
    named(Refusal::new(why), call, errno).hint(hint)
}

fn permission(
    errno: Errno,
    ask: &Ask<'_>,
    permissions: &Permissions,
) -> (&'static str, &'static str) {
    let Permissions { paranoid, capable } = *permissions;
    let paranoid = paranoid.unwrap_or(2);
    let whole_cpu =
        matches!(ask.target, Target::Cpu(_) | Target::Cgroup { .. } | Target::Followed(_));
    if capable {
        return if errno == Errno::PERM {
            (
                "not permitted in spite of CAP_PERFMON: a container or security module forbids it",
                "allow perf_event_open there (seccomp profile, lockdown, LSM policy)",
            )
        } else {
            (
                "permission denied in spite of CAP_PERFMON: the target belongs to somebody else, or a \
                 security module forbids it",
                "run as root of the initial user namespace, or add CAP_SYS_PTRACE",
            )
        };
    }
    if ask.encoding.pmu_type == pmu_type::TRACEPOINT && paranoid > -1 {
        return (
            "tracepoints need privilege",
            "run as root or with CAP_PERFMON, or set /proc/sys/kernel/perf_event_paranoid to -1",
        );
    }
    if is_kprobe(ask.encoding) {
        return ("kprobes need privilege", "run as root or with CAP_PERFMON");
    }
    if ask.encoding.path.is_some() {
        return ("uprobes need privilege", "run as root or with CAP_PERFMON and CAP_SYS_ADMIN");
    }
    if whole_cpu && paranoid > 0 {
        return (
            "counting all that runs on a CPU needs privilege",
            "run as root or with CAP_PERFMON, or set /proc/sys/kernel/perf_event_paranoid to 0",
        );
    }
    if paranoid > 2 {
        return (
            "this machine allows no perf events to ordinary users",
            "run as root or with CAP_PERFMON, or set /proc/sys/kernel/perf_event_paranoid to 2",
        );
    }
    // The scheduler's events are raised in the kernel alone: in user mode they would read 0.
    // Source: `enum perf_sw_ids`, `include/uapi/linux/perf_event.h`.
    let is_schedulers =
        ask.encoding.pmu_type == pmu_type::SOFTWARE && matches!(ask.encoding.config, 3 | 4 | 11);
    if is_schedulers && paranoid > 1 {
        return (
            "counting in the kernel needs privilege",
            "run as root or with CAP_PERFMON, or set /proc/sys/kernel/perf_event_paranoid to 1",
        );
    }
    if !ask.encoding.privilege.exclude_kernel && paranoid > 1 {
        return (
            "counting in the kernel needs privilege",
            "append :u to count in user mode only, run as root or with CAP_PERFMON, or set \
             /proc/sys/kernel/perf_event_paranoid to 1",
        );
    }
    (
        "the target belongs to somebody else",
        "monitor processes of your own, or run as root or with CAP_PERFMON",
    )
}

fn missing(ask: &Ask<'_>) -> (&'static str, &'static str) {
    match ask.encoding.pmu_type {
        pmu_type::HARDWARE | pmu_type::HW_CACHE | pmu_type::RAW if ask.core_pmu => (
            "this machine's PMU does not count it",
            "pick another event, or one of the PMU's own codes",
        ),
        pmu_type::HARDWARE | pmu_type::HW_CACHE | pmu_type::RAW => (
            "this machine has no PMU that counts it",
            "in a virtual machine, ask for a virtual PMU; software events and tracepoints work without",
        ),
        pmu_type::TRACEPOINT => ("the tracepoint is gone", "its module may have been unloaded"),
        pmu_type::SOFTWARE if matches!(ask.target, Target::Cgroup { .. }) => (
            "the perf_event controller does not know the cgroup: no controller was ever enabled for the children \
             of its parent",
            "enable one, such as pids, in cgroup.subtree_control of the hierarchy's root",
        ),
        _ if is_kprobe(ask.encoding) => (
            "the kernel has no such function",
            "look for it in /proc/kallsyms; the compiler may have put it into its callers",
        ),
        _ => ("this machine has no such event", "pick another event"),
    }
}

fn invalid(ask: &Ask<'_>) -> (&'static str, &'static str) {
    let Encoding { pmu_type, config2, config1, bp_type, precise_ip, ref privilege, .. } =
        *ask.encoding;
    let per_thread = matches!(ask.target, Target::CurrentThread | Target::Thread(_));
    let length_bad = !matches!(config2, 1 | 2 | 4 | 8);
    if pmu_type == self::pmu_type::BREAKPOINT {
        return if bp_type == 1 && cfg!(target_arch = "x86_64") {
            ("this machine can't watch for reads alone", "watch for reads and writes: rw")
        } else if length_bad || config1 % config2 != 0 {
            (
                "the breakpoint's length is not 1, 2, 4 or 8, or its address is no multiple of it",
                "align the address, or shorten the length",
            )
        } else {
            (
                "the breakpoint's address or kind can't be watched here",
                "watch an address in user space",
            )
        };
    }
    if is_kprobe(ask.encoding) {
        return (
            "the kernel can't be probed there: the function is closed to probes, or no instruction begins there",
            "look into /sys/kernel/debug/kprobes/blacklist, or probe another function",
        );
    }
    if precise_ip > 0 {
        return ("the PMU can't be as precise as asked", "drop a p from the modifiers");
    }
    if ask.in_group {
        return (
            "the event does not fit into its group: too many events, or events of two hardware PMUs",
            "make the group smaller",
        );
    }
    if per_thread && pmu_type > self::pmu_type::BREAKPOINT {
        return (
            "the PMU counts for CPUs, not for threads (uncore, power and the like), or its code is wrong",
            "count on CPUs: -a or -C",
        );
    }
    if privilege.exclude_host || privilege.exclude_guest || privilege.exclude_idle {
        return ("the PMU can't leave that out", "drop the modifiers G, H and I");
    }
    ("the event's code is not valid on this machine", "check the code and the modifiers")
}

fn no_device(ask: &Ask<'_>) -> (&'static str, &'static str) {
    match ask.target {
        Target::Cpu(_) | Target::Cgroup { .. } | Target::Followed(_) => {
            ("the CPU is offline, or its PMU does not count this event", "name an online CPU")
        }
        _ => ("the PMU lacks what the event needs", "pick another event"),
    }
}

fn not_supported(ask: &Ask<'_>) -> (&'static str, &'static str) {
    if ask.encoding.precise_ip > 0 {
        ("the PMU has no precise events", "drop the modifier p")
    } else {
        ("the PMU does not support the event in this form", "drop modifiers, or pick another event")
    }
}

/// Whether the event is a probe of the kernel: a uprobe's file has an absolute path.
fn is_kprobe(encoding: &Encoding) -> bool {
    encoding.path.as_ref().is_some_and(|path| !path.to_bytes().starts_with(b"/"))
}

fn named(refusal: Refusal, call: &'static str, errno: Errno) -> Refusal {
    refusal.errno(call, errno_name(errno), errno.raw_os_error())
}

fn errno_name(errno: Errno) -> &'static str {
    const NAMES: [(Errno, &str); 21] = [
        (Errno::ACCESS, "EACCES"),
        (Errno::PERM, "EPERM"),
        (Errno::NOENT, "ENOENT"),
        (Errno::INVAL, "EINVAL"),
        (Errno::NODEV, "ENODEV"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::SRCH, "ESRCH"),
        (Errno::BUSY, "EBUSY"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::MFILE, "EMFILE"),
        (Errno::NFILE, "ENFILE"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::CHILD, "ECHILD"),
        (Errno::TOOBIG, "E2BIG"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::FAULT, "EFAULT"),
        (Errno::INTR, "EINTR"),
        (Errno::IO, "EIO"),
        (Errno::BADF, "EBADF"),
        (Errno::ILSEQ, "EILSEQ"),
        (Errno::ADDRNOTAVAIL, "EADDRNOTAVAIL"),
    ];
    NAMES.iter().find(|(known, _)| *known == errno).map_or("an unknown errno", |(_, name)| name)
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
