//! The syntax of LIKWID's group files: `SHORT`, `EVENTSET`, `METRICS`, `LONG`.

use std::path::Path;

use perfmon_core::Refusal;

use super::error::MetricsError;
use super::formula::{Dialect, Formula};
use super::group::{self, EVENTS_MAX, Group, GroupEvent, METRICS_MAX, Metric, NAME};
use crate::near;

const SECTIONS: &str = "SHORT, EVENTSET, METRICS or LONG";

/// Counters of the core PMU, which the kernel can count together.
const CORE_COUNTERS: [&str; 2] = ["FIXC", "PMC"];
/// Counters that LIKWID converts to joules, degrees and volts, so that its formulas expect those.
const CONVERTED_COUNTERS: [&str; 3] = ["PWR", "TMP", "VLT"];

/// LIKWID's name for `wall_s`.
const TIME: &str = "time";
const INVERSE_CLOCK: &str = "inverseClock";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    None,
    Events,
    Metrics,
    Long,
}

/// What has been read of a file.
struct Draft<'a> {
    file: &'a str,
    about: String,
    description: String,
    /// Counter and event as written, with their line.
    events: Vec<(usize, Event)>,
    /// Lines of the section METRICS, with their numbers.
    metrics: Vec<(usize, &'a str)>,
}

struct Event {
    /// The counter with its options, which is how formulas call it.
    variable: String,
    /// What the kernel can count together has the same unit.
    unit: String,
    /// The event as our grammar has it.
    event: Result<String, Refusal>,
}

pub(super) fn read(text: &str, file: &str) -> Result<Group, MetricsError> {
    let draft = Draft::read(text, file)?;
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    let name = stem.filter(|stem| group::is_name(stem));
    let name =
        name.ok_or_else(|| MetricsError::new(file, format!("expected {NAME} of the file")))?;
    let events = draft.offered()?;
    Ok(Group {
        name: name.to_owned(),
        metrics: draft.metrics(&events)?,
        about: draft.about,
        description: draft.description.trim().to_owned(),
        source: Vec::new(),
        events,
    })
}

impl<'a> Draft<'a> {
    fn read(text: &'a str, file: &'a str) -> Result<Self, MetricsError> {
        let (events, metrics) = (Vec::new(), Vec::new());
        let (about, description) = (String::new(), String::new());
        let mut draft = Self { file, about, description, events, metrics };
        let mut section = Section::None;
        for (line, number) in text.lines().zip(1..) {
            if line.chars().any(|char| char.is_control() && char != '\t') {
                return Err(draft.error(number, "expected no control characters"));
            }
            if !line.starts_with('#') {
                section = draft.line(section, line, number)?;
            }
        }
        let missing = |section: &str| MetricsError::new(file, "it is missing").field(section);
        match (draft.about.is_empty(), draft.events.is_empty(), draft.metrics.is_empty()) {
            (true, ..) => Err(missing("SHORT")),
            (_, true, _) => Err(missing("EVENTSET")),
            (.., true) => Err(missing("METRICS")),
            _ => Ok(draft),
        }
    }

    fn error(&self, line: usize, why: &str) -> MetricsError {
        MetricsError::new(self.file, why).line(line)
    }

    /// Takes one line; answers the section in which the next one is.
    fn line(
        &mut self,
        section: Section,
        line: &'a str,
        number: usize,
    ) -> Result<Section, MetricsError> {
        let text = line.trim();
        match text.split_whitespace().next() {
            Some("SHORT") if section != Section::Long => {
                text.trim_start_matches("SHORT").trim().clone_into(&mut self.about);
                return Ok(Section::None);
            }
            Some("REQUIRE_NOHT") if section != Section::Long => {
                self.description +=
                    "Only true where a core has one hardware thread (REQUIRE_NOHT).\n\n";
                return Ok(section);
            }
            Some("EVENTSET") if text == "EVENTSET" => return Ok(Section::Events),
            Some("METRICS") if text == "METRICS" => return Ok(Section::Metrics),
            Some("LONG") if text == "LONG" => return Ok(Section::Long),
            Some("LUA") if text == "LUA" => {
                return Err(self.error(number, "metrics in Lua are not offered").field("LUA"));
            }
            None if section != Section::Long => return Ok(section),
            _ => {}
        }
        match section {
            Section::None => return Err(self.error(number, &format!("expected {SECTIONS}"))),
            Section::Events => {
                let event = Event::read(text).ok_or_else(|| {
                    self.error(number, "expected 'COUNTER EVENT'").field("EVENTSET")
                })?;
                if self.events.iter().any(|(_, other)| other.variable == event.variable) {
                    let why = format!("'{}' is listed twice", event.variable);
                    return Err(self.error(number, &why).field("EVENTSET"));
                }
                self.events.push((number, event));
            }
            Section::Metrics => self.metrics.push((number, text)),
            Section::Long => {
                self.description += line.trim_end();
                self.description.push('\n');
            }
        }
        if self.events.len() > EVENTS_MAX || self.metrics.len() > METRICS_MAX {
            let why = format!("expected at most {EVENTS_MAX} events and {METRICS_MAX} metrics");
            return Err(self.error(number, &why));
        }
        Ok(section)
    }

    /// The events that are offered, in the order of the event list.
    fn offered(&self) -> Result<Vec<GroupEvent>, MetricsError> {
        let mut units: Vec<&str> = Vec::new();
        let mut offered = Vec::new();
        for (_, event) in &self.events {
            let Ok(text) = &event.event else { continue };
            if !units.contains(&event.unit.as_str()) {
                units.push(&event.unit);
            }
            let together = units.iter().position(|unit| *unit == event.unit);
            let (variable, event) = (event.variable.clone(), text.clone());
            offered.push(GroupEvent { variable, event, together });
        }
        let counts: Vec<usize> =
            (0..units.len()).map(|unit| members(&offered, unit).count()).collect();
        for event in &mut offered {
            event.together = event.together.filter(|unit| counts.get(*unit) != Some(&1));
        }
        match self.events.first() {
            Some((line, Event { event: Err(refusal), .. })) if offered.is_empty() => {
                let why = format!("none of the events is offered: {refusal}");
                Err(self.error(*line, &why).field("EVENTSET"))
            }
            _ => Ok(group::arrange(offered)),
        }
    }

    fn metrics(&self, events: &[GroupEvent]) -> Result<Vec<Metric>, MetricsError> {
        let metric = |&(line, text): &(usize, &str)| {
            // The formula is the last word: LIKWID's formulas hold no white space.
            let Some((name, formula)) = text.rsplit_once(char::is_whitespace) else {
                return Err(self.error(line, "expected 'NAME [UNIT] FORMULA'").field("METRICS"));
            };
            let (name, unit) = name_and_unit(name.trim_end());
            let mut metric = Metric::new(name, unit, self.formula(formula, events));
            metric.bind(events);
            Ok(metric)
        };
        self.metrics.iter().map(metric).collect()
    }

    fn formula(&self, text: &str, events: &[GroupEvent]) -> Result<Formula, Refusal> {
        let formula = Formula::parse(text, Dialect::Likwid);
        let mut formula = formula.map_err(|error| Refusal::new(format!("formula: {error}")))?;
        for name in formula.variables() {
            if name == TIME || events.iter().any(|event| event.variable == name) {
                continue;
            }
            return Err(self.not_offered(name));
        }
        formula.rename(TIME, "wall_s");
        Ok(formula)
    }

    /// Why the word `name` of a formula is not offered.
    fn not_offered(&self, name: &str) -> Refusal {
        if name == INVERSE_CLOCK {
            let why =
                "'inverseClock', the time of one cycle of the time-stamp counter, is not offered";
            return Refusal::new(why).hint("the clock rate is in the metrics 'clock'");
        }
        let event = self.events.iter().find(|(_, event)| event.variable == name);
        if let Some((_, Event { event: Err(refusal), .. })) = event {
            return refusal.clone();
        }
        let refusal = Refusal::new(format!("'{name}' is not offered, and no counter of EVENTSET"));
        let counters = self.events.iter().map(|(_, event)| &event.variable);
        match near::question(&near::matches(name, counters)) {
            Some(question) => refusal.hint(question),
            None => refusal,
        }
    }
}

impl Event {
    /// `COUNTER[:OPTION…] EVENT[:OPTION…]`; `None` if `line` is something else.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (variable, event) = (words.next()?, words.next()?);
        let mut counter_parts = variable.split(':');
        let mut event_parts = event.split(':');
        let (counter, name) = (counter_parts.next()?, event_parts.next()?);
        let is_plain = |text: &str| {
            let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            !text.is_empty() && text.bytes().all(is_inside)
        };
        let is_counter = counter.starts_with(|first: char| first.is_ascii_uppercase())
            && counter.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if words.next().is_some() || !is_counter || !is_plain(name) {
            return None;
        }
        let kind = counter.trim_end_matches(|last: char| last.is_ascii_digit());
        let event = if CONVERTED_COUNTERS.contains(&kind) {
            let why =
                format!("'{counter}' is not offered: LIKWID converts its count to another unit");
            Err(Refusal::new(why))
        } else {
            counter_parts.chain(event_parts).try_fold(name.to_owned(), |event, option| {
                let modifier = modifier(option).ok_or_else(|| {
                    Refusal::new(format!("the option '{option}' of '{variable}' is not offered"))
                })?;
                Ok(event + &modifier)
            })
        };
        let unit = unit(counter).to_owned();
        Some(Self { variable: variable.to_owned(), unit, event })
    }
}

/// The modifier of our descriptions for an option of LIKWID.
fn modifier(option: &str) -> Option<String> {
    let (name, value) =
        option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
    match (name, value) {
        ("EDGEDETECT", None) => Some(":e".to_owned()),
        ("INVERT", None) => Some(":i".to_owned()),
        // Ours count in the kernel, too, unless told otherwise.
        ("KERNEL", None) => Some(String::new()),
        ("THRESHOLD", Some(value)) => {
            let digits = value.strip_prefix("0x").unwrap_or(value);
            let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let value = u64::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal)?;
            Some(format!(":c={value}"))
        }
        _ => None,
    }
}

/// The PMU to which a counter belongs: that of the core, or a box such as the MBOX0 of MBOX0C1.
fn unit(counter: &str) -> &str {
    let kind = counter.trim_end_matches(|last: char| last.is_ascii_digit());
    if CORE_COUNTERS.contains(&kind) {
        return "PMC";
    }
    let box_number = counter.find(|char: char| char.is_ascii_digit()).unwrap_or(counter.len());
    let (name, behind) = counter.split_at(box_number);
    let digits = behind.len() - behind.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    if digits == behind.len() {
        name
    } else {
        counter.get(..box_number + digits).unwrap_or(counter)
    }
}

fn members(events: &[GroupEvent], unit: usize) -> impl Iterator<Item = &GroupEvent> {
    events.iter().filter(move |event| event.together == Some(unit))
}

/// `Clock [MHz]` is the name `Clock` and the unit `MHz`.
fn name_and_unit(text: &str) -> (String, String) {
    let unit = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    let (name, unit) = unit.filter(|(name, _)| !name.trim().is_empty()).unwrap_or((text, ""));
    let words: Vec<&str> = name.split_whitespace().collect();
    (words.join(" "), unit.trim().to_owned())
}
