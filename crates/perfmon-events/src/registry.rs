//! Which PMU descriptions there are: built in, in directories, given as files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use perfmon_core::{Encoding, Refusal};
use perfmon_data::pmu_type::RAW;

use crate::description::{
    self, DESCRIPTION_BYTES_MAX, DescriptionError, EventEntry, Identity, Machine, Tables, Text,
};
use crate::machine::CpuId;
use crate::{described, generic, read};

/// A description that is built in.
struct BuiltIn {
    file: &'static str,
    identity: &'static [u8],
    tables: &'static [u8],
    has_events: bool,
}

/// What the build script made of `pmu/`.
static BUILT_IN: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/descriptions.rs"));

/// The description that may name the kernel's software events.
const SOFTWARE: &str = "software";

/// A PMU description. Its format is documented in `docs/pmu-descriptions.md`.
#[derive(Debug)]
pub struct PmuDescription {
    identity: Identity,
    /// The file that it was read from.
    file: PathBuf,
    is_built_in: bool,
    has_events: bool,
    /// Read when they are first needed, if built in.
    tables: OnceLock<Tables>,
    stored: &'static [u8],
}

impl PmuDescription {
    /// Reads the file `path`.
    ///
    /// # Errors
    /// [`DescriptionError`] if the file can't be read, is longer than 1 MiB, or is wrong.
    pub fn load(path: &Path) -> Result<Self, DescriptionError> {
        let file = path.display().to_string();
        let whole = |why: String| DescriptionError {
            file: file.clone(),
            line: None,
            field: String::new(),
            why,
        };
        let text = read::text_of_at_most(path, DESCRIPTION_BYTES_MAX)
            .map_err(|error| whole(error.to_string()))?;
        let (identity, tables) = description::parse(&text, &file)?;
        if let Some(event) = tables.events.iter().find(|event| hides_generic(event)) {
            let line = line_of(&text, &event.name);
            let field = format!("event.{}", event.name);
            let why = "is called like one of the kernel's generic events, which mean the same on every machine";
            return Err(DescriptionError { file, line, field, why: why.into() });
        }
        Ok(Self {
            identity,
            file: path.to_owned(),
            is_built_in: false,
            has_events: !tables.events.is_empty(),
            tables: OnceLock::from(tables),
            stored: &[],
        })
    }

    fn built_in(built_in: &BuiltIn) -> Option<Self> {
        let identity = postcard::from_bytes(built_in.identity).ok()?;
        Some(Self {
            identity,
            file: built_in.file.into(),
            is_built_in: true,
            has_events: built_in.has_events,
            tables: OnceLock::new(),
            stored: built_in.tables,
        })
    }

    /// What it is, and which machine it fits.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its registers and events.
    pub fn tables(&self) -> &Tables {
        // The build script wrote what is stored, so the default is never needed.
        self.tables.get_or_init(|| postcard::from_bytes(self.stored).unwrap_or_default())
    }

    /// The file that it was read from; of one that is built in, the file in perfmon's sources.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether it is part of this library.
    pub fn is_built_in(&self) -> bool {
        self.is_built_in
    }

    /// Whether it describes a PMU of a machine with this CPU.
    pub fn fits(&self, cpu: &CpuId) -> bool {
        let machines = &self.identity.machines;
        machines.is_empty() || machines.iter().any(|machine| fits(machine, cpu))
    }

    /// Whether it has events, and not registers alone.
    pub fn has_events(&self) -> bool {
        self.has_events
    }

    /// The perf event that data register `pmd` counts while its control register holds `value`; `None` if
    /// the counter then stands still. Its `pmu_type` is the description's fixed one, or `PERF_TYPE_RAW`: on
    /// machines of several core types the PMU's own goes there.
    ///
    /// # Errors
    /// [`Refusal`] for registers that do not exist or that perf events can't express, and for reserved bits
    /// that differ from their default.
    pub fn encoding_of(&self, pmd: u16, value: u64) -> Result<Option<Encoding>, Refusal> {
        let encoding = described::encoding_of(self.tables(), pmd, value)?;
        let pmu_type = self.identity.pmu_type.unwrap_or(RAW);
        Ok(encoding.map(|encoding| Encoding { pmu_type, ..encoding }))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity && self.tables() == other.tables()
    }
}

fn fits(machine: &Machine, cpu: &CpuId) -> bool {
    let any = |ranges: &[(u32, u32)], number: u32| {
        ranges.is_empty() || ranges.iter().any(|&(first, last)| (first..=last).contains(&number))
    };
    let is_arch = machine.arch.as_deref().is_none_or(|arch| arch == cpu.arch());
    let wants_x86 = machine.vendor.is_some()
        || machine.family.is_some()
        || !machine.models.is_empty()
        || !machine.steppings.is_empty();
    let wants_arm64 = machine.implementer.is_some() || !machine.parts.is_empty();
    is_arch
        && match cpu {
            CpuId::X86 { vendor, family, model, stepping } => {
                !wants_arm64
                    && machine.vendor.as_ref().is_none_or(|wanted| wanted == vendor)
                    && machine.family.is_none_or(|wanted| wanted == *family)
                    && any(&machine.models, *model)
                    && any(&machine.steppings, *stepping)
            }
            // Bits 31..24 and 15..4 of MIDR_EL1: Arm ARM, DDI 0487, "MIDR_EL1".
            CpuId::Arm64 { midr } => {
                let implementer = midr >> 24 & 0xff;
                let part = midr >> 4 & 0xfff;
                !wants_x86
                    && machine.implementer.is_none_or(|wanted| u64::from(wanted) == implementer)
                    && (machine.parts.is_empty()
                        || machine.parts.iter().any(|wanted| u64::from(*wanted) == part))
            }
            CpuId::Riscv { .. } => !wants_x86 && !wants_arm64,
            CpuId::Unknown => machine == &Machine::default(),
        }
}

fn hides_generic(event: &EventEntry) -> bool {
    let names = std::iter::once(&event.name).chain(&event.also);
    let generic = |name: &&Text| {
        let name = name.to_ascii_lowercase();
        generic::find(&name).is_some() || software().event(&name).is_some()
    };
    names.filter(generic).count() > 0
}

/// The line on which the event called `name` begins.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let begins = |line: &str| {
        let line = line.trim_start().trim_start_matches("[event.").trim_start_matches('"');
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '=', ']', '"', '.']))
    };
    text.lines().position(begins).map(|place| place + 1)
}

/// The kernel's software events.
pub(crate) fn software() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let stored = BUILT_IN.iter().find(|built_in| built_in.file == "pmu/software.toml");
        stored.and_then(|it| postcard::from_bytes(it.tables).ok()).unwrap_or_default()
    })
}

/// The descriptions that there are.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) descriptions: Vec<Arc<PmuDescription>>,
    /// What is wrong with files of the directories.
    pub(crate) problems: Vec<DescriptionError>,
}

impl Registry {
    pub(crate) fn load(directories: &[PathBuf]) -> Self {
        let built_in = BUILT_IN.iter().filter_map(PmuDescription::built_in).map(Arc::new);
        let mut registry = Self { descriptions: built_in.collect(), problems: Vec::new() };
        for directory in directories {
            for name in read::names_in(directory) {
                if !name.ends_with(".toml") {
                    continue;
                }
                let added =
                    PmuDescription::load(&directory.join(name)).and_then(|it| registry.add(it));
                registry.problems.extend(added.err());
            }
        }
        registry
    }

    /// Adds a description; an older one of the same name goes.
    pub(crate) fn add(&mut self, new: PmuDescription) -> Result<(), DescriptionError> {
        let refuse = |why: String| {
            let file = new.file.display().to_string();
            Err(DescriptionError { file, line: None, field: "name".into(), why })
        };
        let name = &new.identity.name;
        if name == SOFTWARE {
            return refuse("'software' is the kernel's own and can't be replaced".into());
        }
        let version = new.identity.version_text();
        for (place, other) in self.descriptions.iter().enumerate() {
            if other.identity.name.eq_ignore_ascii_case(name) {
                if other.identity.version > new.identity.version || other.is_same(&new) {
                    return Ok(());
                }
                if other.identity.version == new.identity.version {
                    let file = other.file.display();
                    return refuse(format!(
                        "{file} is also '{name}' version {version}, with other content; raise the version of the one that is to count"
                    ));
                }
                self.descriptions[place] = Arc::new(new);
                return Ok(());
            }
        }
        let names = std::iter::once(name).chain(&new.identity.also);
        for called in names {
            let other = self.descriptions.iter().find(|other| other.identity.is_called(called));
            if let Some(other) = other {
                let (other, file) = (&other.identity.name, other.file.display());
                return refuse(format!("'{called}' is also a name of '{other}' ({file})"));
            }
        }
        self.descriptions.push(Arc::new(new));
        Ok(())
    }

    /// The description called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<PmuDescription>> {
        self.descriptions.iter().find(|it| it.identity.is_called(name))
    }
}
