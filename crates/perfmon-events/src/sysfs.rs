//! PMUs that the kernel describes in sysfs: fields of their registers, and names for events.
//!
//! References: Linux, `Documentation/ABI/testing/sysfs-bus-event_source-devices-format` and `-events`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use perfmon_core::{Encoding, Refusal};

use crate::description::Bits;
use crate::found::{EVENTS, Found};
use crate::names::Device;
use crate::syntax::{NOT_COUNTING, Term};
use crate::{near, read};

/// PMUs whose events hold more than terms can say, with the grammar's own form for them.
const OWN_FORM: [(&str, &str); 5] = [
    ("software", "write the event's name alone"),
    ("tracepoint", "write GROUP:NAME"),
    ("breakpoint", "write mem:ADDRESS/LENGTH:rwx"),
    ("uprobe", "write uprobe:PATH:SYMBOL"),
    ("kprobe", "write kprobe:FUNCTION"),
];

/// The words that take a value whole: `config` and its followers.
const WORDS: [&str; 4] = ["config", "config1", "config2", "config3"];

/// The file of a core type's PMU that names its CPUs.
const CORE_CPUS: &str = "cpus";

/// Greatest CPU number that a mask may hold; the kernel's own limit (`NR_CPUS`) is lower.
const CPU_MAX: u32 = 65_535;

/// What a word that sysfs does not know as a term of the PMU may stand for elsewhere.
pub(crate) type Elsewhere<'e> = dyn Fn(&Pmu<'_>, &str) -> Option<Result<Found, Refusal>> + 'e;

/// Looks up `pmu/terms/`. A term without a value that the PMU does not have is looked up by `elsewhere`.
pub(crate) fn find(
    devices: &Path,
    pmu: &str,
    terms: &[Term<'_>],
    elsewhere: &Elsewhere<'_>,
) -> Result<Found, Refusal> {
    if let Some((_, hint)) = OWN_FORM.iter().find(|(name, _)| *name == pmu) {
        let why = format!("events of the PMU '{pmu}' can't be given by terms");
        return Err(Refusal::new(why).hint(hint));
    }
    refuse_not_counting(terms)?;
    let pmu = Pmu::open(devices, pmu)?;
    let mut registers = Registers::default();
    let mut named = None;
    let mut found = Found::new(Encoding { pmu_type: pmu.kind, ..Encoding::default() }, None);
    for setting in pmu.expand(terms)? {
        match setting {
            Setting::Unit { scale, unit } => (found.scale, found.unit) = (scale, unit.into()),
            Setting::Snapshot(alias) => return Err(pmu.is_level(&alias)),
            Setting::Term(name, value, has_value) => match pmu.field(&name) {
                Ok(field) => registers.set(&name, &field, value)?,
                Err(refusal) if has_value || named.is_some() => return Err(refusal),
                Err(refusal) => named = Some(elsewhere(&pmu, &name).ok_or(refusal)??),
            },
        }
    }
    if let Some(named) = named {
        found = named;
        let base = &found.encoding;
        let words = [base.config, base.config1, base.config2, base.config3];
        registers.add(words)?;
    }
    let [config, config1, config2, config3] = registers.words;
    found.encoding = Encoding { config, config1, config2, config3, ..found.encoding };
    found.device = Some(Arc::new(pmu.device()?));
    Ok(found)
}

/// Refuses terms that are about something else than what is counted.
pub(crate) fn refuse_not_counting(terms: &[Term<'_>]) -> Result<(), Refusal> {
    match terms.iter().find(|term| NOT_COUNTING.contains(&term.name)) {
        None => Ok(()),
        Some(term) => {
            let name = term.name;
            let why = format!("the term '{name}' says nothing about what is counted: not offered");
            Err(Refusal::new(why).hint("leave it out"))
        }
    }
}

/// The PMUs that `pattern` stands for: itself, all that fit its `*`, or those with a number behind it, such as
/// `uncore_imc_0` for `uncore_imc`.
pub(crate) fn instances(devices: &Path, pattern: &str) -> Vec<String> {
    let is_glob = pattern.contains('*');
    if !is_glob && (devices.join(pattern).is_dir() || pattern.is_empty()) {
        return vec![pattern.to_owned()];
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mut names = read::names_in(devices);
    names.retain(|name| match is_glob {
        true => fits(pattern, name),
        false => name
            .strip_prefix(pattern)
            .is_some_and(|rest| is_number(rest.strip_prefix('_').unwrap_or(rest))),
    });
    // By number, not by letter: 2 before 10.
    names.sort_by_key(|name| {
        (name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), name.len(), name.clone())
    });
    if names.is_empty() { vec![pattern.to_owned()] } else { names }
}

/// Whether `name` is `pattern`, in which `*` stands for any text.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    let mut is_open = false;
    while let Some(part) = parts.next() {
        is_open = true;
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    is_open || rest.is_empty()
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
    /// A field and its value, and whether the value was given.
    Term(String, u64, bool),
    Unit {
        scale: f64,
        unit: String,
    },
    /// The alias of this name is no count.
    Snapshot(String),
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
            (None, Some(word)) => Ok(Field { word, bits: Bits::all() }),
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
    pub(crate) fn aliases(&self) -> impl Iterator<Item = String> {
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
                None => {
                    let value = term.value.unwrap_or(1);
                    let has_value = term.value.is_some();
                    settings.push(Setting::Term(term.name.to_owned(), value, has_value));
                }
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
            settings.push(Setting::Term(name.to_owned(), value.map_err(|_| unknown())?, true));
        }
        let (scale, unit) = self.unit(alias)?;
        settings.push(Setting::Unit { scale, unit });
        if self.directory.join("events").join(format!("{alias}.snapshot")).exists() {
            settings.push(Setting::Snapshot(alias.to_owned()));
        }
        Ok(())
    }

    /// What one of the alias's count is: so many of which unit.
    pub(crate) fn unit(&self, alias: &str) -> Result<(f64, String), Refusal> {
        let events = self.directory.join("events");
        let scale = read::text_if_any(&events.join(format!("{alias}.scale")))?;
        let unit = read::text_if_any(&events.join(format!("{alias}.unit")))?;
        let number = match &scale {
            None => 1.0,
            Some(scale) => {
                scale.parse().ok().filter(|it: &f64| it.is_finite()).ok_or_else(|| {
                    Refusal::new(format!("the scale of event '{alias}' is no number: '{scale}'"))
                })?
            }
        };
        Ok((number, unit.unwrap_or_else(|| EVENTS.to_owned())))
    }

    fn is_level(&self, alias: &str) -> Refusal {
        let pmu = self.name;
        let why =
            format!("'{alias}' of PMU '{pmu}' is a level at one moment (a snapshot), no count");
        Refusal::new(why).hint("choose another event")
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.name
    }

    /// What it is, but for what it counts.
    pub(crate) fn device(&self) -> Result<Device, Refusal> {
        let (name, pmu_type, cpus) = (self.name.to_owned(), self.kind, self.cpus()?);
        let is_core = cpus.is_none() || self.directory.join(CORE_CPUS).is_file();
        Ok(Device { name, pmu_type, cpus, is_core, is_only: true })
    }

    /// The CPUs that the PMU names: `cpumask` of those for many CPUs, `cpus` of a core type.
    pub(crate) fn cpus(&self) -> Result<Option<Vec<u32>>, Refusal> {
        for file in ["cpumask", CORE_CPUS] {
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
pub(crate) fn cpu_list(list: &str) -> Option<Vec<u32>> {
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
    bits: Bits,
}

impl Field {
    /// Reads a format such as `config1:0-7,32-35`.
    fn parse(format: &str) -> Option<Self> {
        let (word, ranges) = format.split_once(':')?;
        let word = WORDS.iter().position(|name| *name == word)?;
        Some(Self { word, bits: Bits::parse(ranges)? })
    }
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
        let Some(bits) = field.bits.spread(value) else {
            let most = field.bits.greatest();
            let why = format!("term '{term}' is at most {most:#x}, not {value:#x}");
            return Err(Refusal::new(why));
        };
        let mask = field.bits.mask();
        if self.claimed[field.word] & mask != 0 {
            let why =
                format!("term '{term}' shares bits of {} with another term", WORDS[field.word]);
            return Err(Refusal::new(why).hint("leave one of them out"));
        }
        self.claimed[field.word] |= mask;
        self.words[field.word] |= bits;
        Ok(())
    }

    /// Adds what an event sets, unless a term sets other bits in its place.
    fn add(&mut self, words: [u64; 4]) -> Result<(), Refusal> {
        for (word, bits) in words.into_iter().enumerate() {
            if self.claimed[word] & bits != 0 {
                let why = format!("a term shares bits of {} with the event", WORDS[word]);
                return Err(Refusal::new(why).hint("leave it out"));
            }
            self.words[word] |= bits;
        }
        Ok(())
    }
}
