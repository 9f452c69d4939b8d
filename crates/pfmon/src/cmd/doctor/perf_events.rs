//! What perf events allow here.

use std::path::Path;

use perfmon::{Encoding, Names, Permissions, Privilege, Refusal, Trial, cpus, has_core_pmu};
use perfmon_data::pmu_type;
use rustix::process::{Resource, getrlimit};

use super::results::AbilityRow;
use crate::cmd::refusal::RefusalRow;

const PAGE_FAULTS: u64 = 2;
const CONTEXT_SWITCHES: u64 = 3;
const DEVICES: &str = "/sys/bus/event_source/devices";
/// A session with a few events on each of many threads.
const DESCRIPTORS_MIN: u64 = 4096;

/// Whether it is there, with more of what was found; or why not, and what to change.
type Found = Result<Option<String>, (String, Option<String>)>;

/// All of them.
pub(super) fn abilities(capabilities: &[&str]) -> Vec<AbilityRow> {
    let permissions = Permissions::current();
    let is_admin = capabilities.contains(&"CAP_SYS_ADMIN");
    let trial = Trial::new();
    let paranoid = || Some(paranoid(&permissions));
    let event = |config, privilege| Encoding {
        pmu_type: pmu_type::SOFTWARE,
        config,
        privilege,
        ..Encoding::default()
    };
    let opened = |encoding: &Encoding, cpus: Option<&[u32]>| {
        trial.open_as_asked(encoding, cpus).map(|()| None).map_err(refused)
    };
    let user = event(PAGE_FAULTS, Privilege::USER);
    let kernel = event(CONTEXT_SWITCHES, Privilege::default());
    let cpu = cpus::online().ok().and_then(|online| online.first().copied()).unwrap_or(0);
    [
        (
            "own programs",
            "counts of own programs in user mode",
            opened(&user, None).map(|_| paranoid()),
        ),
        (
            "the kernel's part",
            "counts of what the kernel does for own programs",
            opened(&kernel, None),
        ),
        (
            "whole CPUs",
            "counts of all that runs on CPUs, and of cgroups",
            opened(&user, Some(&[cpu])),
        ),
        ("others' programs", "counts of processes of other users", others(&permissions)),
        ("core PMU", "hardware events: cycles, instructions, caches, branches", core_pmu()),
        ("user reads", "a thread reads its counters without system calls", user_reads()),
        ("tracepoints", "events of the kernel by name", tracepoints()),
        (
            "uprobes",
            "calls of functions of programs",
            probes("uprobe", "CONFIG_UPROBE_EVENTS", is_admin, "CAP_PERFMON and CAP_SYS_ADMIN"),
        ),
        (
            "kprobes",
            "calls of functions of the kernel",
            probes("kprobe", "CONFIG_KPROBE_EVENTS", permissions.capable, "CAP_PERFMON"),
        ),
        ("descriptors", "many events at once: one for each event, thread and CPU", descriptors()),
        ("ring memory", "records of threads and samples", ring_memory(&permissions)),
    ]
    .map(|(name, serves, found)| row(name, serves, found))
    .into()
}

fn row(name: &'static str, serves: &'static str, found: Found) -> AbilityRow {
    let (detail, why, hint) = match found {
        Ok(detail) => (detail, None, None),
        Err((why, hint)) => (None, Some(why), hint),
    };
    AbilityRow { area: "perf events", name, available: why.is_none(), detail, serves, why, hint }
}

fn refused(refusal: Refusal) -> (String, Option<String>) {
    let RefusalRow { why, errno_name, hint, .. } = RefusalRow::new(&refusal);
    (errno_name.map_or_else(|| why.clone(), |name| format!("{why} ({name})")), hint)
}

fn lacks<T>(
    why: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, (String, Option<String>)> {
    Err((why.into(), Some(hint.into())))
}

fn number(path: &str) -> Option<i64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `perf_event_paranoid`, and what it means for this user.
fn paranoid(permissions: &Permissions) -> String {
    let Some(paranoid) = permissions.paranoid else {
        return "perf_event_paranoid is unknown".into();
    };
    let means = match paranoid {
        _ if permissions.capable => "this user is not bound by it",
        ..=-1 => "all is allowed",
        0 => "all but raw tracepoint data is allowed",
        1 => "the kernel's part is allowed, whole CPUs are not",
        2 => "user mode of own programs is allowed",
        _ => "nothing is allowed",
    };
    format!("perf_event_paranoid is {paranoid}: {means}")
}

fn others(permissions: &Permissions) -> Found {
    if permissions.capable {
        return Ok(None);
    }
    lacks("processes of other users need privilege", "run as root, or with CAP_PERFMON")
}

fn core_pmu() -> Found {
    if !has_core_pmu() {
        return lacks(
            "this machine has no PMU that counts cycles",
            "in a virtual machine, ask for a virtual PMU; software events and tracepoints work without",
        );
    }
    let names = Names::system();
    let described = names.descriptions().filter(|it| names.cpus().iter().any(|cpu| it.fits(cpu)));
    let counters = described
        .map(|it| (it.tables().pmds.len(), it.identity().name.as_str()))
        .filter(|(pmds, _)| *pmds > 0)
        .map(|(pmds, name)| format!("{pmds} data registers by the description {name}"));
    Ok(Some(counters.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()))
}

fn user_reads() -> Found {
    if !has_core_pmu() {
        return lacks("there are no hardware counters to read", "as for the core PMU");
    }
    let (path, least) = match std::env::consts::ARCH {
        "aarch64" => ("/proc/sys/kernel/perf_user_access".to_owned(), 1),
        _ => (format!("{DEVICES}/cpu/rdpmc"), 1),
    };
    match number(&path) {
        Some(value) if value >= least => Ok(Some(format!("{path} is {value}"))),
        Some(value) => lacks(format!("{path} is {value}"), format!("as root: echo 1 > {path}")),
        None => lacks(format!("{path} is not there"), "use a kernel that allows them"),
    }
}

fn tracepoints() -> Found {
    let readable = |place: &&str| std::fs::read_dir(Path::new(place).join("events")).is_ok();
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    if let Some(place) = places.into_iter().find(readable) {
        return Ok(Some(format!("tracefs at {place}")));
    }
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let is_mounted = mounts.lines().any(|line| line.split(' ').nth(2) == Some("tracefs"));
    if is_mounted {
        return lacks(
            "tracefs is mounted, and this user can't read it",
            "run as root, or let root mount it with a group: mount -o remount,gid=GID /sys/kernel/tracing",
        );
    }
    lacks("tracefs is not mounted", "as root: mount -t tracefs tracefs /sys/kernel/tracing")
}

fn probes(pmu: &str, option: &str, is_allowed: bool, needs: &str) -> Found {
    if !Path::new(DEVICES).join(pmu).join("type").exists() {
        return lacks(
            format!("this kernel has no PMU {pmu} in sysfs"),
            format!("build it with {option}"),
        );
    }
    if is_allowed {
        return Ok(None);
    }
    lacks(format!("{pmu}s need privilege"), format!("run as root, or with {needs}"))
}

fn descriptors() -> Found {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    if hard < DESCRIPTORS_MIN {
        return lacks(
            format!("this process may have no more than {hard}"),
            "raise the limit as root: ulimit -Hn 65536",
        );
    }
    let text = |limit: Option<u64>| limit.map_or_else(|| "any number".into(), |it| it.to_string());
    let (soft, hard) = (text(limit.current), text(limit.maximum));
    Ok(Some(format!("{soft} now, raised to at most {hard} as needed")))
}

fn ring_memory(permissions: &Permissions) -> Found {
    let path = "/proc/sys/kernel/perf_event_mlock_kb";
    let Some(kib) = number(path) else {
        return Err((format!("{path} can't be read"), None));
    };
    let page_kib = i64::try_from(rustix::param::page_size() / 1024).unwrap_or(4);
    let bound = if permissions.capable { "; this user is not bound by it" } else { "" };
    if kib < 2 * page_kib && !permissions.capable {
        return lacks(format!("{path} is {kib}"), format!("as root: echo 516 > {path}"));
    }
    Ok(Some(format!("{kib} KiB for each CPU{bound}")))
}
