use std::fmt;

use crate::described::Described;
use crate::error::ParseError;
use crate::event::Event;
use crate::registry::PmuDescription;
use crate::resolve;
use crate::vendor::VendorEvent;

/// Where names come from, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A form of the grammar that names registers or addresses itself.
    Form,
    /// PMU descriptions.
    Description,
    /// PMUs that the kernel describes in sysfs.
    Sysfs,
    /// The kernel's generic hardware events.
    Generic,
    /// Tracepoints.
    Tracefs,
    /// libpfm4's library.
    Libpfm,
    /// Vendors' event files.
    Vendor,
}

impl Source {
    /// Its name in lists and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Description => "descriptions",
            Self::Sysfs => "sysfs",
            Self::Generic => "generic",
            Self::Tracefs => "tracefs",
            Self::Libpfm => "libpfm4",
            Self::Vendor => "vendor",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One source that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// For which item of the list, counted from 0.
    pub item: usize,
    /// The source.
    pub source: Source,
    /// Whether it knew the name.
    pub found: bool,
    /// What it said.
    pub what: String,
}

/// How a list of events resolved.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The sources that were asked, in order.
    pub steps: Vec<Step>,
    /// The events, or why the list can't be read.
    pub events: Result<Vec<Explained>, ParseError>,
}

/// An event, and what its source says of it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The event.
    pub event: Event,
    /// What a description or a vendor's file says of it.
    pub detail: Option<Detail>,
}

/// What a description or a vendor's file says of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Which description or file.
    pub origin: String,
    /// What it counts.
    pub about: String,
    /// The unit masks in force, with what they count.
    pub masks: Vec<(String, String)>,
    /// The fields that it sets.
    pub fields: Vec<(String, u64)>,
    /// What is known to be wrong with it.
    pub errata: Option<String>,
    /// The registers on which it can be counted: control register, its value, data register.
    pub registers: Vec<(String, u64, String)>,
}

impl Detail {
    pub(crate) fn of(event: &Described<'_>, description: Option<&PmuDescription>) -> Self {
        let privilege = event.modifiers.privilege();
        let tables = event.tables;
        let register = |pmd: u16| {
            let pmd = tables.pmds.get(&pmd)?;
            let pmc = tables.pmcs.get(pmd.pmcs.first()?)?;
            let value = event.register_value(pmc, pmd, &privilege)?;
            Some((pmc.name.clone(), value, pmd.name.clone()))
        };
        let fields = event.fields().unwrap_or_default();
        Self {
            origin: description.map_or("software (built in)".into(), resolve::origin),
            about: event.event.about.to_string(),
            masks: event
                .masks_in_force()
                .map(|mask| (mask.name.to_string(), mask.about.to_string()))
                .collect(),
            fields: fields.iter().map(|(field, value)| (field.name.clone(), *value)).collect(),
            errata: event.event.errata.clone(),
            registers: event.counters().into_iter().filter_map(register).collect(),
        }
    }

    /// What the event would be on its own machine.
    pub(crate) fn words(&self, event: &Described<'_>) -> String {
        let words = match event.encoding() {
            Ok(encoding) => {
                let words = [encoding.config, encoding.config1, encoding.config2, encoding.config3];
                let names = ["config", "config1", "config2", "config3"];
                let used = names
                    .into_iter()
                    .zip(words)
                    .filter(|&(name, word)| name == "config" || word != 0);
                used.map(|(name, word)| format!("{name} {word:#x}")).collect::<Vec<_>>().join(", ")
            }
            Err(refusal) => refusal.to_string(),
        };
        format!("{}: {words}", self.origin)
    }

    pub(crate) fn of_vendor(event: &VendorEvent) -> Self {
        Self {
            origin: event.file.display().to_string(),
            about: event.about.clone(),
            fields: event.terms.clone(),
            errata: event.errata.clone(),
            ..Self::default()
        }
    }
}
