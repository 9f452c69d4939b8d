//! The PMUs that the kernel shows in sysfs.

use std::path::Path;

use perfmon::Event;

/// A PMU in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SysfsPmu {
    pub(crate) name: String,
    /// `perf_event_attr.type`.
    pub(crate) pmu_type: u32,
    /// The CPUs that it names, as the kernel writes them.
    pub(crate) cpus: Option<String>,
}

/// The PMUs of the tree `sysfs`, by name.
pub(crate) fn pmus(sysfs: &Path) -> Vec<SysfsPmu> {
    let directory = sysfs.join("bus/event_source/devices");
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let text = |name: &str, file: &str| std::fs::read_to_string(directory.join(name).join(file));
    let mut pmus: Vec<SysfsPmu> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let pmu_type = text(&name, "type").ok()?.trim().parse().ok()?;
            let cpus = text(&name, "cpumask").or_else(|_| text(&name, "cpus")).ok();
            let cpus = cpus.map(|cpus| cpus.trim().to_owned()).filter(|cpus| !cpus.is_empty());
            Some(SysfsPmu { name, pmu_type, cpus })
        })
        .collect();
    pmus.sort_by(|left, right| left.name.cmp(&right.name));
    pmus
}

/// The CPUs on which alone `event` can count; `None` if it can count in a thread.
pub(crate) fn only_on(event: &Event) -> Option<&[u32]> {
    event.cpus.as_deref().filter(|_| !event.counts_in_threads)
}

/// The CPUs of the core type that `event` is of, if the machine has several.
pub(crate) fn core_type(event: &Event) -> Option<&[u32]> {
    event.cpus.as_deref().filter(|_| event.counts_in_threads)
}

/// The name of the PMU of type `pmu_type`.
pub(crate) fn name_of(pmus: &[SysfsPmu], pmu_type: u32) -> Option<&str> {
    // `include/uapi/linux/perf_event.h`: these are types, though sysfs names only some of them.
    const FIXED: [&str; 6] =
        ["hardware", "software", "tracepoint", "hw_cache", "raw", "breakpoint"];
    let named = pmus.iter().find(|pmu| pmu.pmu_type == pmu_type).map(|pmu| pmu.name.as_str());
    named.or_else(|| FIXED.get(usize::try_from(pmu_type).ok()?).copied())
}
