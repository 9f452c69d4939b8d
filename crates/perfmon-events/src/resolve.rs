//! Words to events: which source knows a name. Sources are asked in the order of [`Source`], and none is
//! opened before one in front of it did not know the name.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use perfmon_core::{Encoding, Refusal};
use perfmon_data::pmu_type::SOFTWARE;
use perfmon_sys::LibpfmEvent;

use crate::described::{BadPart, Described};
use crate::description::{EventEntry, Tables};
use crate::explain::{Detail, Source, Step};
use crate::found::Found;
use crate::generic::{self, Generic};
use crate::hit::{End, Hit, Hits, Word};
use crate::machine::CpuId;
use crate::modifiers::Modifiers;
use crate::names::{Active, Device, Names};
use crate::registry::{self, PmuDescription};
use crate::syntax::{Term, split_at_colon};
use crate::sysfs::{self, Pmu};
use crate::vendor::VendorEvent;

/// One lookup: where, and what was tried if somebody wants to know.
pub(crate) struct Lookup<'n> {
    pub(crate) names: &'n Names,
    trail: Option<RefCell<Vec<Step>>>,
    /// Which item of the list is looked at.
    item: Cell<usize>,
}

impl<'n> Lookup<'n> {
    pub(crate) fn new(names: &'n Names) -> Self {
        Self { names, trail: None, item: Cell::new(0) }
    }

    pub(crate) fn explaining(names: &'n Names) -> Self {
        Self { trail: Some(RefCell::default()), ..Self::new(names) }
    }

    /// What was tried.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.trail.map(RefCell::into_inner).unwrap_or_default()
    }

    /// What is noted from now on is about item number `item` of the list.
    pub(crate) fn begin(&self, item: usize) {
        self.item.set(item);
    }

    pub(crate) fn note(&self, source: Source, found: bool, what: impl FnOnce() -> String) {
        if let Some(trail) = &self.trail {
            let item = self.item.get();
            trail.borrow_mut().push(Step { item, source, found, what: what() });
        }
    }

    fn detail(&self, detail: impl FnOnce() -> Detail) -> Option<Box<Detail>> {
        self.trail.as_ref().map(|_| Box::new(detail()))
    }

    /// The event of the plain word at the start of `text`; `None` if no source before tracefs has it.
    pub(crate) fn word<'a>(&self, text: &'a str) -> Result<Option<Word<'a>>, BadPart<'a>> {
        let (word, behind) = split_at_colon(text);
        if let Some(event) = behind.and_then(|behind| behind.strip_prefix(':')) {
            return self.qualified(text, word, event).map(Some);
        }
        if let Some(word) = self.kernel_word(word, behind) {
            return Ok(Some(word));
        }
        if let Some(word) = self.described(text)? {
            return Ok(Some(word));
        }
        Ok(self.alias(word, behind))
    }

    /// The kernel's software and generic events. Their names are nobody else's, so that it doesn't show
    /// that they come first.
    pub(crate) fn kernel_word<'a>(
        &self,
        word: &'a str,
        behind: Option<&'a str>,
    ) -> Option<Word<'a>> {
        if let Some(event) = registry::software().event(word) {
            self.note(Source::Description, true, || "software (built in)".into());
            let described = Described::new(registry::software(), event);
            let found = described.encoding().map(|encoding| Found {
                detail: self.detail(|| Detail::of(&described, None)),
                ..Found::of_kernel(SOFTWARE, encoding.config)
            });
            return Some(Word { hits: Hits::one(found), end: End::Letters(behind) });
        }
        let generic = generic::find(word)?;
        self.note(Source::Description, false, || {
            format!("'{word}' is a generic event, and no description may name one")
        });
        self.note(Source::Generic, true, || {
            format!("perf_event_attr type {}, config {:#x}", generic.pmu_type, generic.config)
        });
        let hits = match self.names.core_pmus() {
            [] | [_] => Hits::one(Ok(of_generic(generic, None))),
            several => several.iter().map(|pmu| of_core_type(word, generic, pmu)).collect(),
        };
        Some(Word { hits, end: End::Letters(behind) })
    }

    /// An event of the descriptions of this machine.
    fn described<'a>(&self, text: &'a str) -> Result<Option<Word<'a>>, BadPart<'a>> {
        for is_architectural in [false, true] {
            let mut hits = Hits::default();
            let mut modifiers = Modifiers::default();
            let mut unknown = None;
            let active = self.names.active().iter();
            let active = active.filter(|it| it.is_architectural() == is_architectural);
            let has_several = active.clone().map(|it| it.devices.len()).sum::<usize>() > 1;
            for active in active {
                let tables = active.description.tables();
                let Some((event, parts)) = event_of(tables, text) else { continue };
                let mut described = Described::new(tables, event);
                match parts.map_or(Ok(()), |parts| described.add_parts(parts)) {
                    Err(bad) if bad.is_unknown => {
                        self.note(Source::Description, false, || {
                            let (name, origin) = (&event.name, origin(&active.description));
                            format!("'{name}' of {origin} has no '{}'", bad.part)
                        });
                        unknown.get_or_insert(bad);
                        continue;
                    }
                    added => added?,
                }
                modifiers = described.modifiers;
                self.note(Source::Description, true, || origin(&active.description));
                let name = active.description.identity().name.as_str();
                let text = has_several.then(|| format!("{name}::{text}"));
                self.on_devices(active, &described, text.as_deref(), &mut hits);
            }
            if !hits.is_empty() {
                let hits = hits.typed_if_one();
                return Ok(Some(Word { hits, end: End::Read(modifiers) }));
            }
            if let Some(unknown) = unknown {
                return Err(unknown);
            }
        }
        self.note(Source::Description, false, || {
            let active = self.names.active().iter();
            let names: Vec<&str> =
                active.map(|it| it.description.identity().name.as_str()).collect();
            match names.as_slice() {
                [] => "none describes this machine's CPU".into(),
                names => {
                    let (word, _) = split_at_colon(text);
                    format!("no event '{word}' in {}", names.join(", "))
                }
            }
        });
        Ok(None)
    }

    /// The event on each of the PMUs that its description is about.
    fn on_devices(
        &self,
        active: &Active,
        event: &Described<'_>,
        text: Option<&str>,
        hits: &mut Hits,
    ) {
        let on = |device: Option<&Arc<Device>>| {
            let found = event.encoding().and_then(|encoding| {
                let pmu_type = match (active.description.identity().pmu_type, device) {
                    (Some(pmu_type), _) => pmu_type,
                    (None, Some(device)) => device.pmu_type,
                    (None, None) => return Err(no_device(&active.description)),
                };
                let encoding = Encoding { pmu_type, ..encoding };
                Ok(Found {
                    device: device.cloned(),
                    detail: self.detail(|| Detail::of(event, Some(&*active.description))),
                    ..Found::new(encoding, None)
                })
            });
            Hit { text: text.map(str::to_owned), found }
        };
        match active.devices.as_slice() {
            [] => hits.push(on(None)),
            devices => devices.iter().for_each(|device| hits.push(on(Some(device)))),
        }
    }

    /// `pmu::event`, of a description or of libpfm4.
    fn qualified<'a>(
        &self,
        text: &'a str,
        pmu: &'a str,
        event: &'a str,
    ) -> Result<Word<'a>, BadPart<'a>> {
        let registry = self.names.registry();
        let Some(description) = registry.find(pmu) else {
            self.note(Source::Description, false, || format!("no description '{pmu}'"));
            return self.libpfm(text).ok_or_else(|| {
                let names = registry.descriptions.iter();
                let names = names.map(|it| it.identity().name.as_str());
                let near = crate::near::matches(pmu, names);
                BadPart { near, ..BadPart::new(pmu, "a PMU's description".into()) }
            });
        };
        let tables = description.tables();
        let Some((event, parts)) = event_of(tables, event) else {
            let (word, _) = split_at_colon(event);
            let described = format!("no event '{word}' in {}", origin(description));
            self.note(Source::Description, false, || described);
            // libpfm4 may know more events of the same PMU.
            return self.libpfm(text).ok_or_else(|| {
                let names = tables.events.iter().map(|event| event.name.as_str());
                let near = crate::near::matches(word, names);
                BadPart { near, ..BadPart::new(word, format!("an event of '{pmu}'")) }
            });
        };
        let mut described = Described::new(tables, event);
        parts.map_or(Ok(()), |parts| described.add_parts(parts))?;
        self.note(Source::Description, true, || origin(description));
        let modifiers = described.modifiers;
        let active =
            self.names.active().iter().find(|it| Arc::ptr_eq(&it.description, description));
        let is_software = description.identity().pmu_type == Some(SOFTWARE);
        let hits = match active {
            _ if is_software => {
                let found = described.encoding().map(|encoding| Found {
                    detail: self.detail(|| Detail::of(&described, Some(description))),
                    ..Found::of_kernel(SOFTWARE, encoding.config)
                });
                Hits::one(found)
            }
            Some(active) => {
                let mut hits = Hits::default();
                let text = (active.devices.len() > 1).then_some(text);
                self.on_devices(active, &described, text, &mut hits);
                hits
            }
            None => {
                // What it would be elsewhere is worth knowing.
                self.note(Source::Description, true, || {
                    Detail::of(&described, Some(description)).words(&described)
                });
                Hits::one(Err(self.names.not_this_machine(description)))
            }
        };
        Ok(Word { hits, end: End::Read(modifiers) })
    }

    /// An alias of the core PMU, by its name alone.
    fn alias<'a>(&self, word: &'a str, behind: Option<&'a str>) -> Option<Word<'a>> {
        let devices = self.names.devices();
        let is_file = !word.is_empty() && !word.starts_with('.') && !word.contains('/');
        let has = |pmu: &&Arc<Device>| devices.join(&pmu.name).join("events").join(word).is_file();
        let core_pmus = self.names.core_pmus();
        let pmus: Vec<&Arc<Device>> = core_pmus.iter().filter(|pmu| is_file && has(pmu)).collect();
        if pmus.is_empty() {
            self.note(Source::Sysfs, false, || match core_pmus {
                [] => "there is no core PMU".into(),
                core => {
                    let names: Vec<&str> = core.iter().map(|pmu| pmu.name.as_str()).collect();
                    format!("no event '{word}' of {}", names.join(", "))
                }
            });
            return None;
        }
        let hits = pmus.iter().map(|pmu| {
            self.note(Source::Sysfs, true, || format!("{}/{word}/", pmu.name));
            let terms = [Term { name: word, value: None }];
            let found = sysfs::find(devices, &pmu.name, &terms, &|_, _| None);
            let text = (pmus.len() > 1).then(|| format!("{}/{word}/", pmu.name));
            Hit { text, found }
        });
        Some(Word { hits: hits.collect(), end: End::Letters(behind) })
    }

    /// `pmu/terms/` on each PMU that is meant.
    pub(crate) fn sysfs(&self, pmu: &str, terms: &[Term<'_>]) -> Hits {
        let devices = self.names.devices();
        let instances = sysfs::instances(devices, pmu);
        let elsewhere = |pmu: &Pmu<'_>, name: &str| self.in_pmu(pmu, name);
        let is_one = instances.len() == 1;
        let hit = |pmu: String| {
            let found = sysfs::find(devices, &pmu, terms, &elsewhere);
            self.note(Source::Sysfs, found.is_ok(), || {
                format!("PMU '{pmu}' in {}", devices.display())
            });
            Hit { text: (!is_one).then(|| written(&pmu, terms)), found }
        };
        instances.into_iter().map(hit).collect()
    }

    /// A word among the terms of a PMU that is none of its own: an event of its description, or a generic one.
    fn in_pmu(&self, pmu: &Pmu<'_>, name: &str) -> Option<Result<Found, Refusal>> {
        let core = self.names.core_pmus().iter().find(|core| core.name == pmu.name());
        if let (Some(core), Some(generic)) = (core, generic::find(name)) {
            self.note(Source::Generic, true, || format!("'{name}' on PMU '{}'", core.name));
            return Some(Ok(of_generic(generic, Some(core))));
        }
        let active = self.names.active().iter();
        let mut on_pmu = active.filter(|it| it.devices.iter().any(|it| it.name == pmu.name()));
        let (active, event) =
            on_pmu.find_map(|active| Some((active, active.description.tables().event(name)?)))?;
        self.note(Source::Description, true, || origin(&active.description));
        let described = Described::new(active.description.tables(), event);
        let encoding = described.encoding();
        Some(encoding.map(|encoding| Found {
            detail: self.detail(|| Detail::of(&described, Some(&*active.description))),
            ..Found::new(Encoding { pmu_type: pmu.kind, ..encoding }, None)
        }))
    }

    /// An event of libpfm4, if the machine has it; `text` is all of the event's text.
    pub(crate) fn libpfm<'a>(&self, text: &'a str) -> Option<Word<'a>> {
        let library = match self.names.libpfm() {
            Ok(library) => library,
            Err(why) => {
                self.note(Source::Libpfm, false, || why.clone());
                return None;
            }
        };
        match library.encode(text) {
            Ok(event) => {
                self.note(Source::Libpfm, true, || event.full_name.clone());
                let modifiers = Modifiers::of_libpfm(&event);
                let hits = Hits::one(Ok(of_libpfm(&event)));
                Some(Word { hits, end: End::Read(modifiers) })
            }
            Err(error) => {
                self.note(Source::Libpfm, false, || error.to_string());
                None
            }
        }
    }

    /// An event of the vendors' files, on each PMU that is meant.
    pub(crate) fn vendor<'a>(&self, word: &'a str, behind: Option<&'a str>) -> Option<Word<'a>> {
        let devices = self.names.devices();
        let mut hits = Hits::default();
        for (cpu, event) in self.names.vendor_events(word) {
            self.note(Source::Vendor, true, || event.file.display().to_string());
            let term = |(name, value): &'n (String, u64)| Term { name, value: Some(*value) };
            let terms: Vec<Term<'_>> = event.terms.iter().map(term).collect();
            for pmu in self.vendor_pmus(event, cpu) {
                let found = sysfs::find(devices, &pmu, &terms, &|_, _| None);
                let found = found.map(|found| Found {
                    scale: event.scale.unwrap_or(found.scale),
                    unit: event.unit.clone().map_or(found.unit.clone(), Into::into),
                    detail: self.detail(|| Detail::of_vendor(event)),
                    ..found
                });
                hits.push(Hit { text: Some(written(&pmu, &terms)), found });
            }
        }
        if hits.is_empty() {
            self.note(Source::Vendor, false, || self.names.vendor_state(word));
            return None;
        }
        Some(Word { hits: hits.typed_if_one(), end: End::Letters(behind) })
    }

    /// The PMUs that a vendor's file calls by the name of their kind; `cpu` is the core PMU, whatever the
    /// kernel calls it, of the CPUs that the file is for.
    fn vendor_pmus(&self, event: &VendorEvent, cpu: &CpuId) -> Vec<String> {
        let mut core = self.names.core_pmus_of(cpu).map(|pmu| pmu.name.clone()).peekable();
        match event.pmu.as_str() {
            "cpu" if core.peek().is_some() => core.collect(),
            // Parts of a name, with something between them and behind.
            pmu if pmu.contains(',') => {
                sysfs::instances(self.names.devices(), &(pmu.replace(',', "*") + "*"))
            }
            pmu => sysfs::instances(self.names.devices(), pmu),
        }
    }
}

/// The event that `text` begins with, and what stands behind its colon; or behind its dot, as vendors write
/// `EVENT.MASK`.
fn event_of<'t, 'a>(
    tables: &'t Tables,
    text: &'a str,
) -> Option<(&'t EventEntry, Option<&'a str>)> {
    let (word, behind) = split_at_colon(text);
    let dotted = || {
        let (word, behind) = text.split_once('.')?;
        Some((tables.event(word)?, Some(behind)))
    };
    tables.event(word).map(|event| (event, behind)).or_else(dotted)
}

/// A description, as people know it.
pub(crate) fn origin(description: &PmuDescription) -> String {
    let identity = description.identity();
    let place = match description.is_built_in() {
        true => "built in".to_owned(),
        false => description.file().display().to_string(),
    };
    format!("{} {} ({place})", identity.name, identity.version_text())
}

fn no_device(description: &PmuDescription) -> Refusal {
    let identity = description.identity();
    let devices = identity.devices.join("' or '");
    Refusal::new(format!(
        "this machine has no PMU '{devices}', which '{}' describes",
        identity.name
    ))
    .hint("in a virtual machine, its host must offer one")
}

/// A generic hardware event, on one PMU of several if one is given: `PERF_PMU_CAP_EXTENDED_HW_TYPE`.
fn of_generic(generic: Generic, pmu: Option<&Arc<Device>>) -> Found {
    let extension = pmu.map_or(0, |pmu| u64::from(pmu.pmu_type) << 32);
    let extension = if pmu.is_some_and(|pmu| pmu.is_only) { 0 } else { extension };
    Found { device: pmu.cloned(), ..Found::of_kernel(generic.pmu_type, generic.config | extension) }
}

fn of_core_type(word: &str, generic: Generic, pmu: &Arc<Device>) -> Hit {
    let text = Some(format!("{}/{word}/", pmu.name));
    Hit { text, found: Ok(of_generic(generic, Some(pmu))) }
}

fn of_libpfm(event: &LibpfmEvent) -> Found {
    let encoding = Encoding {
        config1: event.config1,
        config2: event.config2,
        ..Found::of_kernel(event.pmu_type, event.config).encoding
    };
    Found { encoding, ..Found::of_kernel(event.pmu_type, event.config) }
}

/// An event of a PMU as it is typed.
fn written(pmu: &str, terms: &[Term<'_>]) -> String {
    let terms: Vec<String> = terms
        .iter()
        .map(|term| match term.value {
            Some(value) => format!("{}={value:#x}", term.name),
            None => term.name.to_owned(),
        })
        .collect();
    format!("{pmu}/{}/", terms.join(","))
}
