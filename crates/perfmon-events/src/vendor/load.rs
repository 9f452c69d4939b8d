//! Reads the files and collects their events.

use std::collections::HashSet;
use std::path::Path;

use perfmon_core::Refusal;

use super::entry::{self, Setting, Standard};
use super::json::{self, Value};
use super::problems::Problems;
use super::{VendorEvent, VendorEvents, layout, order};
use crate::machine::CpuId;
use crate::read;

/// Most files that are read.
pub(super) const FILES_MAX: usize = 1024;
const FILE_BYTES_MAX: usize = 32 << 20;
/// Longest that all files together may be.
const BYTES_MAX: usize = 256 << 20;
const EVENTS_MAX: usize = 65_536;

/// Reads the files at `path` that are for `cpu`.
pub(super) fn load(path: &Path, cpu: &CpuId) -> Result<VendorEvents, Refusal> {
    let mut problems = Problems::default();
    let plan = layout::plan(path, cpu, &mut problems)?;
    let mut reader = Reader { problems, events: Vec::new(), metrics: HashSet::new(), bytes: 0 };
    for file in &plan.standard {
        reader.read(Setting { file, pmu: "cpu", standard: &Standard::default() });
    }
    let standard = reader.take_standard();
    for (file, pmu) in &plan.files {
        reader.read(Setting { file, pmu, standard: &standard });
    }
    if reader.events.is_empty() {
        let why = format!("there are no events in '{}'", path.display());
        return Err(Refusal::new(match reader.problems.first() {
            None => why,
            Some(problem) => format!("{why}: {problem}"),
        }));
    }
    Ok(reader.finish())
}

/// The bytes of a file that may be read.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read::bytes_and_one(path, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {} MiB", FILE_BYTES_MAX >> 20));
    }
    Ok(bytes)
}

struct Reader {
    problems: Problems,
    events: Vec<VendorEvent>,
    /// Names of formulas, in small letters.
    metrics: HashSet<String>,
    /// Bytes of all files so far.
    bytes: usize,
}

impl Reader {
    /// Adds the events of a file.
    fn read(&mut self, setting: Setting<'_>) {
        if self.bytes > BYTES_MAX || self.events.len() >= EVENTS_MAX {
            return self.problems.add(setting.file, "it is not read: there is too much before it");
        }
        let bytes = match bytes(setting.file) {
            Ok(bytes) => bytes,
            Err(why) => return self.problems.add(setting.file, why),
        };
        self.bytes += bytes.len();
        let mut count = 0;
        let read = json::read(json::without_mark(&bytes), &mut |form, found| {
            count += 1;
            if let Some(Value::Text(metric)) = &found.metric {
                self.metrics.insert(metric.to_ascii_lowercase());
            }
            match entry::event(&found, form, setting) {
                Ok(Some(_)) if self.events.len() == EVENTS_MAX => {
                    return Err(format!("more than {EVENTS_MAX} events, the rest is not read"));
                }
                Ok(event) => self.events.extend(event),
                Err(fault) => {
                    let name = fault.name.map(|name| format!(" '{name}'")).unwrap_or_default();
                    self.problems.add(setting.file, format!("entry {count}{name}: {}", fault.why));
                }
            }
            Ok(())
        });
        match read {
            Ok(Some(_)) => {}
            Ok(None) => self.problems.add(setting.file, "it holds no list of events"),
            Err(error) if count == 0 => self.problems.add(setting.file, error),
            Err(error) => {
                self.problems.add(setting.file, format!("it ends after entry {count}: {error}"));
            }
        }
    }

    /// What was read so far, for others to refer to.
    fn take_standard(&mut self) -> Standard {
        let events = std::mem::take(&mut self.events);
        let lower = |event: VendorEvent| (event.name.to_ascii_lowercase(), event);
        Standard {
            events: events.into_iter().map(lower).collect(),
            metrics: std::mem::take(&mut self.metrics),
        }
    }

    /// The events in order, each once.
    fn finish(mut self) -> VendorEvents {
        self.events.sort_by_cached_key(|event| {
            let is_core = matches!(event.pmu.as_str(), "cpu" | "cpu_core");
            (event.name.to_ascii_lowercase(), !is_core, event.pmu.clone())
        });
        let problems = &mut self.problems;
        self.events.dedup_by(|next, first| {
            let is_same = next.pmu == first.pmu && order(&next.name, &first.name).is_eq();
            if is_same && next.terms != first.terms {
                let first = first.file.display();
                problems.add(
                    &next.file,
                    format!("'{}' is another event in {first}, which counts", next.name),
                );
            }
            is_same
        });
        VendorEvents { events: self.events, problems: self.problems.finish() }
    }
}
