use std::path::Path;

use perfmon_core::Refusal;

use super::error::MetricsError;
use super::formula::Formula;
use super::{builtin, find, likwid, toml_file};

/// Longest file with metrics, in bytes.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

/// Variables that every formula may hold without an event: seconds of wall time counted, the number of
/// CPUs of a system-wide scope (else 1), seconds of CPU time in user mode and in the kernel.
pub const BUILT_IN_VARIABLES: [&str; 4] = ["wall_s", "cpus", "user_s", "system_s"];

/// Most events of a group.
pub(super) const EVENTS_MAX: usize = 512;
/// Most metrics of a group.
pub(super) const METRICS_MAX: usize = 512;

/// Longest name of a group of metrics, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// What a name may be, in words.
pub(super) const NAME: &str = "a name of at most 64 letters, digits, '_', '-' and '.'";

/// Metrics, and the events that they need.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// What it is asked for by.
    pub name: String,
    /// One line on what it shows.
    pub about: String,
    /// How to read its numbers, and when not to trust them; may be empty, may have many lines.
    pub description: String,
    /// Where the formulas are from; may be empty.
    pub source: Vec<String>,
    /// Its events in the order of the [`event_list`](Self::event_list).
    pub events: Vec<GroupEvent>,
    /// Its metrics in the order of the file.
    pub metrics: Vec<Metric>,
}

/// An event of a group, and how formulas call it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupEvent {
    /// Its name in formulas.
    pub variable: String,
    /// The event, in the grammar of the crate.
    pub event: String,
    /// Those with the same number run together; `None` for an event on its own.
    pub together: Option<usize>,
}

/// A number that is derived from counts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// What it is called.
    pub name: String,
    /// Its unit; empty if the file gives none.
    pub unit: String,
    /// One line on what it means; empty if the file gives none.
    pub about: String,
    /// Its formula, or why it is not offered.
    formula: Result<Formula, Refusal>,
    /// The events of the formula, with what they run together with.
    events: Vec<(String, Option<usize>)>,
}

impl Group {
    /// Reads a group in our own format, from a file that messages call `file`.
    ///
    /// # Errors
    /// [`MetricsError`] with file, line and field for all that the format does not allow.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, MetricsError> {
        require_size(text.len(), file)?;
        toml_file::read(text, file)
    }

    /// Reads a group in the syntax of LIKWID's group files; its name is that of `file` without `.txt`.
    ///
    /// Formulas that need what is not offered are refused in [`Metric::formula`].
    ///
    /// # Errors
    /// [`MetricsError`] with file and line for text that is no such file, or has no event to offer.
    ///
    /// # References
    /// - LIKWID's wiki, likwid-perfctr, and the folder `groups` of its source
    pub fn from_likwid(text: &str, file: &str) -> Result<Self, MetricsError> {
        require_size(text.len(), file)?;
        likwid::read(text, file)
    }

    /// Reads a file: our own format if its name ends in `.toml`, LIKWID's if it ends in `.txt`.
    ///
    /// # Errors
    /// [`MetricsError`] if the file can't be read, is longer than [`FILE_BYTES_MAX`], ends in neither,
    /// or is wrong.
    pub fn load(path: &Path) -> Result<Self, MetricsError> {
        let file = path.display().to_string();
        let missing = || MetricsError::new(&file, "there is no such file");
        find::load_if_any(path)?.ok_or_else(missing)
    }

    /// The group that comes with perfmon under this name.
    pub fn builtin(name: &str) -> Option<Self> {
        builtin::find(name)
    }

    /// All groups that come with perfmon, by name.
    pub fn builtins() -> Vec<Self> {
        builtin::names().filter_map(builtin::find).collect()
    }

    /// The events as one list, such as `{instructions,cycles},task-clock`: in the order of the file, and
    /// those that run together where the first of them stands.
    pub fn event_list(&self) -> String {
        let together =
            |a: &GroupEvent, b: &GroupEvent| a.together.is_some() && a.together == b.together;
        let parts = self.events.chunk_by(together).map(|events| {
            let texts: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
            match events {
                [GroupEvent { together: None, .. }] => texts.concat(),
                _ => format!("{{{}}}", texts.join(",")),
            }
        });
        parts.collect::<Vec<_>>().join(",")
    }

    /// The place of a variable's event in the [`event_list`](Self::event_list), from 0; `None` for other
    /// names. Where one name stands for events of several PMUs, [`Names::parse`](crate::Names::parse)
    /// gives more events than the list has.
    pub fn index(&self, variable: &str) -> Option<usize> {
        self.events.iter().position(|event| event.variable == variable)
    }
}

impl Metric {
    pub(super) fn new(name: String, unit: String, formula: Result<Formula, Refusal>) -> Self {
        Self { name, unit, about: String::new(), formula, events: Vec::new() }
    }

    /// The formula.
    ///
    /// # Errors
    /// Why a formula of a foreign format is not offered.
    pub fn formula(&self) -> Result<&Formula, &Refusal> {
        self.formula.as_ref()
    }

    /// Notes which of the group's events the formula is over.
    pub(super) fn bind(&mut self, events: &[GroupEvent]) {
        let Ok(formula) = &self.formula else { return };
        let event = |variable| events.iter().find(|event| event.variable == variable);
        let bound = formula.variables().filter_map(event);
        self.events = bound.map(|event| (event.variable.clone(), event.together)).collect();
    }

    /// What an event of the formula runs together with; `None` for what is no event.
    pub(super) fn together(&self, variable: &str) -> Option<Option<usize>> {
        let (_, together) = self.events.iter().find(|(event, _)| event == variable)?;
        Some(*together)
    }
}

/// Brings events into the order of the event list.
pub(super) fn arrange(events: Vec<GroupEvent>) -> Vec<GroupEvent> {
    let mut firsts: Vec<(usize, usize)> = Vec::new();
    let mut placed: Vec<(usize, GroupEvent)> = Vec::new();
    for (place, event) in events.into_iter().enumerate() {
        let first = firsts.iter().find(|(together, _)| Some(*together) == event.together);
        let first = first.map_or(place, |(_, first)| *first);
        firsts.extend(event.together.filter(|_| first == place).map(|it| (it, place)));
        placed.push((first, event));
    }
    placed.sort_by_key(|(first, _)| *first);
    placed.into_iter().map(|(_, event)| event).collect()
}

/// That `text` is one event: it adds no other one to a list, and swallows none.
pub(super) fn require_single(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("expected an event, found nothing");
    }
    if text.contains(['{', '}']) {
        return Err("expected one event: what runs together is listed in 'together'");
    }
    let has_own_slashes = ["mem:", "uprobe:", "uretprobe:"].iter().any(|it| text.starts_with(it));
    let outside = match text.split_once('/') {
        Some((pmu, behind)) if !has_own_slashes && !pmu.contains(',') => {
            let closing = unquoted(behind).find(|(_, char)| *char == '/').map(|(at, _)| at + 1);
            match closing.and_then(|behind_slash| behind.get(behind_slash..)) {
                Some(letters) => letters,
                None => return Err("expected the closing '/' of a PMU's terms"),
            }
        }
        _ => text,
    };
    if outside.contains(',') { Err("expected one event, found a list") } else { Ok(()) }
}

/// The characters that stand in no quotes, with their places.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_quoted = false;
    text.char_indices().filter(move |(_, char)| {
        is_quoted ^= *char == '\'';
        !is_quoted
    })
}

/// Whether `name` may be the name of a group: it must be no path.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
    !name.starts_with('.')
        && (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_plain)
}

fn require_size(length: usize, file: &str) -> Result<(), MetricsError> {
    if length <= FILE_BYTES_MAX {
        return Ok(());
    }
    Err(MetricsError::new(file, format!("expected at most {FILE_BYTES_MAX} bytes")))
}
