use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Bits, Text};

/// What a description is, and which machine it fits. Everything that choosing one needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its unique name.
    pub name: String,
    /// Other names that are accepted before `::`.
    pub also: Vec<String>,
    /// Its version, most significant number first.
    pub version: Vec<u32>,
    /// One line on the PMU.
    pub about: String,
    /// The public documents that its tables are taken from.
    pub source: Vec<String>,
    /// Its events are used only where no more special description of the machine has the name.
    pub architectural: bool,
    /// The machines that it fits; empty for all.
    pub machines: Vec<Machine>,
    /// The PMU in sysfs, the first choice first; `*` stands for any text.
    pub devices: Vec<String>,
    /// A fixed `perf_event_attr.type`, for a PMU that sysfs need not name.
    pub pmu_type: Option<u32>,
}

impl Identity {
    /// The version as text, such as `1.2`.
    pub fn version_text(&self) -> String {
        let numbers: Vec<String> = self.version.iter().map(u32::to_string).collect();
        numbers.join(".")
    }

    /// Whether `name` is its name, or another one that it goes by. Without regard to case.
    pub fn is_called(&self, name: &str) -> bool {
        std::iter::once(&self.name).chain(&self.also).any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// Machines that a description fits: all that is given must fit, and an empty list fits all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// `x86`, `arm64` or `riscv64`; `None` for all.
    pub arch: Option<String>,
    /// The vendor that CPUID names.
    pub vendor: Option<String>,
    /// The family, base and extended added.
    pub family: Option<u32>,
    /// Ranges of models, with the extended part.
    pub models: Vec<(u32, u32)>,
    /// Ranges of steppings.
    pub steppings: Vec<(u32, u32)>,
    /// The implementer of `MIDR_EL1`.
    pub implementer: Option<u32>,
    /// Part numbers of `MIDR_EL1`.
    pub parts: Vec<u32>,
}

/// The registers and events of a PMU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Tables {
    /// The layouts of control registers, by number.
    pub layouts: Vec<Layout>,
    /// The layout in which events are written.
    pub event_layout: Option<u16>,
    /// Control registers, by index.
    pub pmcs: BTreeMap<u16, PmcEntry>,
    /// Data registers, by index.
    pub pmds: BTreeMap<u16, PmdEntry>,
    /// Modifiers of events.
    pub modifiers: Vec<Modifier>,
    /// Events, by name.
    pub events: Vec<EventEntry>,
    /// Hash and event of each name, by hash.
    pub(super) index: Vec<(u32, u16)>,
}

impl Tables {
    /// The event called `name`, without regard to case.
    pub fn event(&self, name: &str) -> Option<&EventEntry> {
        let hash = hash(name);
        let first = self.index.partition_point(|&(other, _)| other < hash);
        let same = self.index.get(first..)?.iter().take_while(|&&(other, _)| other == hash);
        same.filter_map(|&(_, event)| self.events.get(usize::from(event)))
            .find(|event| event.is_called(name))
    }

    /// The layout of events; none if there is no event.
    pub fn event_layout(&self) -> Option<&Layout> {
        self.layouts.get(usize::from(self.event_layout?))
    }
}

/// A hash of the name's letters without regard to case (FNV-1a).
pub(super) fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
    })
}

/// Which bits of a control register mean what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Its name in the description.
    pub name: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

impl Layout {
    /// The number of the field called `name`.
    pub fn field(&self, name: &str) -> Option<u16> {
        let place = self.fields.iter().position(|field| field.name == name)?;
        u16::try_from(place).ok()
    }
}

/// Some bits of a control register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name in the description.
    pub name: String,
    /// Its bits in the register; `None` if no register holds it.
    pub bits: Option<Bits>,
    /// What it is in a perf event.
    pub place: Place,
}

/// What a field is in a perf event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Bits of `config` (0) or one of its followers.
    Config(u8, Bits),
    /// 1: counts at this level.
    At(Level),
    /// 1: does not count at this level.
    NotAt(Level),
    /// 0: the counter stands still.
    Enable,
    /// The kernel decides.
    None,
}

/// Where an event may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    /// User mode.
    User,
    /// The kernel.
    Kernel,
    /// The hypervisor.
    Hypervisor,
    /// Guests.
    Guest,
    /// The host.
    Host,
}

/// A control register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PmcEntry {
    /// Its name.
    pub name: String,
    /// What perfmon2 showed as its address: an MSR or a register number.
    pub address: Option<u64>,
    /// Its value after a reset.
    pub default: u64,
    /// 1: a bit that keeps its default.
    pub reserved: u64,
    /// The number of its layout.
    pub layout: Option<u16>,
    /// Only in per-thread contexts.
    pub thread_only: bool,
    /// Only in system-wide contexts.
    pub system_only: bool,
    /// Why perf events can't express it.
    pub unsupported: Option<String>,
}

/// A data register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PmdEntry {
    /// Its name.
    pub name: String,
    /// What perfmon2 showed as its address.
    pub address: Option<u64>,
    /// Its width in bits.
    pub width: u8,
    /// The control registers that it depends on.
    pub pmcs: Vec<u16>,
    /// Can't be written.
    pub read_only: bool,
    /// Only in per-thread contexts.
    pub thread_only: bool,
    /// Only in system-wide contexts.
    pub system_only: bool,
    /// The number of the one event that it counts.
    pub fixed: Option<u16>,
    /// The bit of its PMC at which its own fields start.
    pub shift: u8,
    /// Why perf events can't express it.
    pub unsupported: Option<String>,
}

/// A modifier of events, as in `EVENT:c=2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modifier {
    /// Its name.
    pub name: String,
    /// The number of the field that it sets.
    pub field: u16,
    /// One line on what it does.
    pub about: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct EventEntry {
    /// Its name.
    pub name: Text,
    /// Other names.
    pub also: Vec<Text>,
    /// One line on what it counts.
    pub about: Text,
    /// Fields of the layout, by number, and their values.
    pub set: Vec<(u16, u64)>,
    /// Unit masks.
    pub masks: Vec<Mask>,
    /// The data registers that can count it; empty for all that are not fixed.
    pub counters: Vec<u16>,
    /// What is known to be wrong with it.
    pub errata: Option<String>,
    /// Where it is described, if not in the description's sources.
    pub source: Option<String>,
}

impl EventEntry {
    /// Whether `name` is one of its names. Without regard to case.
    pub fn is_called(&self, name: &str) -> bool {
        let is_it = |own: &Text| own.as_str() == name || own.eq_ignore_ascii_case(name);
        is_it(&self.name) || self.also.iter().any(is_it)
    }

    /// The unit mask called `name`, without regard to case.
    pub fn mask(&self, name: &str) -> Option<&Mask> {
        let is_it = |own: &str| own == name || own.eq_ignore_ascii_case(name);
        self.masks.iter().find(|mask| is_it(&mask.name))
    }
}

/// A unit mask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Mask {
    /// Its name.
    pub name: Text,
    /// One line on what it counts.
    pub about: Text,
    /// Fields of the layout, by number, and the bits that it adds to them.
    pub set: Vec<(u16, u64)>,
    /// Taken when no mask is named.
    pub default: bool,
    /// Not together with another mask.
    pub alone: bool,
    /// Fields that a modifier may change, unlike those of `set`, and their values if none does.
    pub preset: Vec<(u16, u64)>,
    /// The data registers that can count it; empty for all that can count the event.
    pub counters: Vec<u16>,
}
