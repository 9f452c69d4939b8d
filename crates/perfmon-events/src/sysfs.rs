//! PMUs that the kernel describes in sysfs: fields of their registers, and names for events.
//!
//! References: Linux, `Documentation/ABI/testing/sysfs-bus-event_source-devices-format` and `-events`.

use std::path::{Path, PathBuf};

use perfmon_core::{Encoding, Refusal};

use crate::names::{EVENTS, Found};
use crate::syntax::{NOT_COUNTING, Term};
use crate::{near, read};

/// PMUs whose events hold more than terms can say, with the grammar's own form for them.
const OWN_FORM: [(&str, &str); 5] = [
    ("software", "write the event's name alone"),
    ("tracepoint", "write GROUP:NAME"),
    ("breakpoint", "write mem:ADDRESS/LENGTH:rwx"),
    ("uprobe", "write uprobe:PATH:SYMBOL"),
    ("kprobe", "probes of the kernel are not offered; count one of its tracepoints"),
];

/// The words that take a value whole: `config` and its followers.
const WORDS: [&str; 4] = ["config", "config1", "config2", "config3"];

/// Greatest CPU number that a mask may hold; the kernel's own limit (`NR_CPUS`) is lower.
const CPU_MAX: u32 = 65_535;

/// Looks up `pmu/terms/`.
pub(crate) fn find(devices: &Path, pmu: &str, terms: &[Term<'_>]) -> Result<Found, Refusal> {
    if let Some((_, hint)) = OWN_FORM.iter().find(|(name, _)| *name == pmu) {
        let why = format!("events of the PMU '{pmu}' can't be given by terms");
        return Err(Refusal::new(why).hint(hint));
    }
    if let Some(term) = terms.iter().find(|term| NOT_COUNTING.contains(&term.name)) {
        let why =
            format!("the term '{}' says nothing about what is counted: not offered", term.name);
        return Err(Refusal::new(why).hint("leave it out"));
    }
    let pmu = Pmu::open(devices, pmu)?;
    let mut registers = Registers::default();
    let mut unit = EVENTS.to_owned();
    for setting in pmu.expand(terms)? {
        match setting {
            Setting::Unit(of_alias) => unit = of_alias,
            Setting::Term(name, value) => registers.set(&name, &pmu.field(&name)?, value)?,
        }
    }
    let [config, config1, config2, config3] = registers.words;
    let encoding =
        Encoding { pmu_type: pmu.kind, config, config1, config2, config3, ..Encoding::default() };
    Ok(Found { unit, cpus: pmu.cpus()?, ..Found::new(encoding, None) })
}

/// A PMU's directory.
pub(crate) struct Pmu<'a> {
    name: &'a str,
    directory: PathBuf,
    /// Its number: `perf_event_attr.type`.
    pub(crate) kind: u32,
}

/// What an alias or a term sets.
enum Setting {
    Term(String, u64),
    Unit(String),
}

impl<'a> Pmu<'a> {
    pub(crate) fn open(devices: &Path, name: &'a str) -> Result<Self, Refusal> {
        let directory = devices.join(name);
        let Some(kind) = read::text_if_any(&directory.join("type"))? else {
            let there = read::names_in(devices);
            let refusal = Refusal::new(format!("there is no PMU '{name}' on this machine"));
            return Err(match near::question(&near::matches(name, &there)) {
                Some(question) => refusal.hint(question),
                None => refusal.hint(format!("ls {} shows what there is", devices.display())),
            });
        };
        let kind = kind.parse().map_err(|_| {
            Refusal::new(format!("the type of PMU '{name}' is no number: '{kind}'"))
        })?;
        Ok(Self { name, directory, kind })
    }

    /// The field called `term`.
    pub(crate) fn field(&self, term: &str) -> Result<Field, Refusal> {
        let format = read::text_if_any(&self.directory.join("format").join(term))?;
        let word = WORDS.iter().position(|word| *word == term);
        match (format, word) {
            (Some(format), _) => Field::parse(&format).ok_or_else(|| {
                let pmu = self.name;
                Refusal::new(format!(
                    "the format of term '{term}' of PMU '{pmu}' is unknown: '{format}'"
                ))
            }),
            (None, Some(word)) => Ok(Field { word, ranges: vec![(0, 63)] }),
            (None, None) => Err(self.no_such_term(term)),
        }
    }

    fn no_such_term(&self, term: &str) -> Refusal {
        let mut there = read::names_in(&self.directory.join("format"));
        there.extend(self.aliases());
        let refusal = Refusal::new(format!("the PMU '{}' has no term '{term}'", self.name));
        match near::question(&near::matches(term, &there)) {
            Some(question) => refusal.hint(question),
            None if there.is_empty() => refusal.hint("it has none but config, config1, …"),
            None => refusal.hint(format!("it has: {}", there.join(", "))),
        }
    }

    /// The names of the PMU's events. Names with a dot in them belong to another one (`NAME.scale`).
    fn aliases(&self) -> impl Iterator<Item = String> {
        let names = read::names_in(&self.directory.join("events"));
        names.into_iter().filter(|name| !name.contains('.'))
    }

    /// The terms with an alias replaced by what it stands for. A term that is typed goes before the
    /// alias's own of that name.
    fn expand(&self, terms: &[Term<'_>]) -> Result<Vec<Setting>, Refusal> {
        let mut settings = Vec::new();
        let mut alias: Option<&str> = None;
        for term in terms {
            match self.alias(term)? {
                None => settings.push(Setting::Term(term.name.to_owned(), term.value.unwrap_or(1))),
                Some(_) if alias.is_some() => {
                    let why = format!("two events of PMU '{}' in one", self.name);
                    return Err(Refusal::new(why).hint("separate them: pmu/a/,pmu/b/"));
                }
                Some(definition) => {
                    alias = Some(term.name);
                    self.expand_alias(term.name, &definition, terms, &mut settings)?;
                }
            }
        }
        Ok(settings)
    }

    /// What the term stands for, if it is an alias.
    fn alias(&self, term: &Term<'_>) -> Result<Option<String>, Refusal> {
        if term.value.is_some() || term.name.contains('.') {
            return Ok(None);
        }
        read::text_if_any(&self.directory.join("events").join(term.name))
    }

    fn expand_alias(
        &self,
        alias: &str,
        definition: &str,
        typed: &[Term<'_>],
        settings: &mut Vec<Setting>,
    ) -> Result<(), Refusal> {
        let unknown = || {
            let pmu = self.name;
            Refusal::new(format!(
                "event '{alias}' of PMU '{pmu}' is defined as '{definition}': unknown form"
            ))
        };
        for part in definition.split(',') {
            let (name, value) = part.trim().split_once('=').unwrap_or((part.trim(), "1"));
            if name.is_empty() || name.contains('/') || name.starts_with('.') {
                return Err(unknown());
            }
            if typed.iter().any(|term| term.name == name && name != alias) {
                continue;
            }
            if value == "?" {
                let why =
                    format!("event '{alias}' of PMU '{}' needs a value for '{name}'", self.name);
                return Err(
                    Refusal::new(why).hint(format!("write {}/{alias},{name}=VALUE/", self.name))
                );
            }
            let value = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => value.parse(),
            };
            settings.push(Setting::Term(name.to_owned(), value.map_err(|_| unknown())?));
        }
        settings.extend(self.unit(alias)?.map(Setting::Unit));
        Ok(())
    }

    /// `<scale> <unit>` of an alias that has either.
    fn unit(&self, alias: &str) -> Result<Option<String>, Refusal> {
        let events = self.directory.join("events");
        let scale = read::text_if_any(&events.join(format!("{alias}.scale")))?;
        let unit = read::text_if_any(&events.join(format!("{alias}.unit")))?;
        if let Some(scale) = &scale
            && !scale.parse().is_ok_and(f64::is_finite)
        {
            return Err(Refusal::new(format!(
                "the scale of event '{alias}' is no number: '{scale}'"
            )));
        }
        if scale.is_none() && unit.is_none() {
            return Ok(None);
        }
        let scale = scale.as_deref().unwrap_or("1");
        Ok(Some(format!("{scale} {}", unit.as_deref().unwrap_or(EVENTS))))
    }

    /// The CPUs that the PMU names: `cpumask` of those for many CPUs, `cpus` of a core type.
    fn cpus(&self) -> Result<Option<Vec<u32>>, Refusal> {
        for file in ["cpumask", "cpus"] {
            if let Some(list) = read::text_if_any(&self.directory.join(file))? {
                let cpus = cpu_list(&list).filter(|cpus| !cpus.is_empty());
                let why = || format!("{file} of PMU '{}' names no CPUs: '{list}'", self.name);
                return cpus.map(Some).ok_or_else(|| Refusal::new(why()));
            }
        }
        Ok(None)
    }
}

/// CPU numbers and ranges such as `0,2-3`.
fn cpu_list(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last > CPU_MAX || cpus.last().is_some_and(|&previous| previous >= first) {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Which bits of a config word a term is.
pub(crate) struct Field {
    word: usize,
    /// First and last bits, the lowest bits of the value first.
    ranges: Vec<(u32, u32)>,
}

impl Field {
    /// Reads a format such as `config1:0-7,32-35`.
    fn parse(format: &str) -> Option<Self> {
        let (word, ranges) = format.split_once(':')?;
        let word = WORDS.iter().position(|name| *name == word)?;
        let mut field = Self { word, ranges: Vec::new() };
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let range: (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if range.0 > range.1 || range.1 > 63 || field.mask() & mask(range) != 0 {
                return None;
            }
            field.ranges.push(range);
        }
        Some(field)
    }

    /// The field's bits in its word.
    fn mask(&self) -> u64 {
        self.ranges.iter().fold(0, |bits, &range| bits | mask(range))
    }

    /// `value` spread over the field's bits; `None` if it has more.
    fn spread(&self, mut value: u64) -> Option<u64> {
        let mut bits = 0;
        for &range in &self.ranges {
            let (first, last) = range;
            bits |= value << first & mask(range);
            value = value.checked_shr(last - first + 1).unwrap_or(0);
        }
        (value == 0).then_some(bits)
    }
}

/// Bits `first` to `last` of a word; both are at most 63, and in order.
fn mask((first, last): (u32, u32)) -> u64 {
    u64::MAX >> (63 - (last - first)) << first
}

/// The config words, and which bits of them are set already.
#[derive(Default)]
pub(crate) struct Registers {
    pub(crate) words: [u64; 4],
    claimed: [u64; 4],
}

impl Registers {
    /// Puts `value` into a field.
    pub(crate) fn set(&mut self, term: &str, field: &Field, value: u64) -> Result<(), Refusal> {
        let Some(bits) = field.spread(value) else {
            let most = u64::MAX >> (64 - field.mask().count_ones());
            let why = format!("term '{term}' is at most {most:#x}, not {value:#x}");
            return Err(Refusal::new(why));
        };
        if self.claimed[field.word] & field.mask() != 0 {
            let why =
                format!("term '{term}' shares bits of {} with another term", WORDS[field.word]);
            return Err(Refusal::new(why).hint("leave one of them out"));
        }
        self.claimed[field.word] |= field.mask();
        self.words[field.word] |= bits;
        Ok(())
    }
}
