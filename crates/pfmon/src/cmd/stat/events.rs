//! Which events are counted.

use perfmon::{Permissions, default_events, has_core_pmu};

use super::metrics::Metrics;
use crate::args::Stat;
use crate::exit::Failure;

/// Most bytes of a file of events.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// The events chosen.
pub(crate) struct Chosen {
    /// As one list.
    pub(crate) list: String,
    /// What the user must know of the choice.
    pub(crate) note: Option<String>,
}

/// The events of the options, those of `metrics` first, or the default ones.
pub(crate) fn choose(args: &Stat, metrics: &Metrics) -> Result<Chosen, Failure> {
    let mut lists: Vec<String> = metrics.event_lists().chain(args.events.iter().cloned()).collect();
    for path in &args.events_file {
        let complain =
            |why: String| Failure::new(format!("can't read events from {}: {why}", path.display()));
        let text = read_limited(path).map_err(|error| complain(error.to_string()))?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        let found: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if found.is_empty() {
            return Err(complain("there is no event in it".into()));
        }
        lists.extend(found);
    }
    let sets_are_named = args.sets.are_used() && !args.sets.auto_sets;
    if !lists.is_empty() || sets_are_named {
        return Ok(Chosen { list: lists.join(","), note: None });
    }
    let kernel_allowed = Permissions::current().kernel_allowed();
    let core_pmu = has_core_pmu();
    let list = default_events(kernel_allowed, core_pmu).join(",");
    let mut notes = Vec::new();
    if !core_pmu {
        notes.push("default events without hardware events: this machine has no core PMU");
    }
    if !kernel_allowed {
        notes.push("default events of user mode only: no privilege to count in the kernel");
    }
    Ok(Chosen { list, note: (!notes.is_empty()).then(|| notes.join("; ")) })
}

fn read_limited(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(FILE_MAX_BYTES + 1);
    file.read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(std::io::Error::other("longer than 1 MiB"));
    }
    Ok(text)
}
