//! All names of this machine, source by source.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use perfmon_data::pmu_type;

use crate::description::{EventEntry, Mask};
use crate::explain::Source;
use crate::names::Names;
use crate::registry::{self, PmuDescription};
use crate::vendor::VendorEvent;
use crate::{generic, read, sysfs, tracepoint};

/// Longest list of tracepoints that is read, in bytes.
const TRACEPOINTS_BYTES_MAX: usize = 16 << 20;

/// What a catalog is to have; the default is everything of this machine but libpfm4's names.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// These sources; none for all but [`Source::Libpfm`].
    pub sources: Vec<Source>,
    /// Only this PMU: a description, a PMU of sysfs, a group of tracepoints, a PMU of libpfm4's.
    pub pmu: Option<String>,
    /// Descriptions of other machines, too.
    pub other_machines: bool,
}

impl Wanted {
    fn has(&self, source: Source) -> bool {
        match self.sources.as_slice() {
            [] => source != Source::Libpfm || self.pmu.is_some(),
            sources => sources.contains(&source),
        }
    }

    fn has_pmu(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> bool {
        self.pmu.as_ref().is_none_or(|wanted| {
            names.into_iter().any(|name| name.as_ref().eq_ignore_ascii_case(wanted))
        })
    }
}

/// A name in a catalog.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Where it comes from.
    pub source: Source,
    /// The PMU, description or group of tracepoints that it belongs to.
    pub pmu: Cow<'a, str>,
    /// The event, as it is to be typed.
    pub name: Cow<'a, str>,
    /// Other names of the same event.
    pub also: Vec<Cow<'a, str>>,
    /// What it counts; empty if its source does not say.
    pub about: Cow<'a, str>,
    /// Its unit masks with what they count.
    pub masks: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// What is known to be wrong with it.
    pub errata: Option<Cow<'a, str>>,
    /// It is of a description of another machine.
    pub elsewhere: bool,
}

impl<'a> Entry<'a> {
    fn new(source: Source, pmu: impl Into<Cow<'a, str>>, name: impl Into<Cow<'a, str>>) -> Self {
        Self {
            source,
            pmu: pmu.into(),
            name: name.into(),
            also: Vec::new(),
            about: Cow::Borrowed(""),
            masks: Vec::new(),
            errata: None,
            elsewhere: false,
        }
    }

    fn described(event: &'a EventEntry, pmu: &'a str, name: Cow<'a, str>) -> Self {
        let mask = |mask: &'a Mask| (mask.name.as_str().into(), mask.about.as_str().into());
        Self {
            also: event.also.iter().map(|name| name.as_str().into()).collect(),
            about: event.about.as_str().into(),
            masks: event.masks.iter().map(mask).collect(),
            errata: event.errata.as_deref().map(Into::into),
            ..Self::new(Source::Description, pmu, name)
        }
    }
}

impl Names {
    /// Calls `visit` for each name that is wanted, source by source. What can't be listed, and why, is the
    /// result.
    pub fn catalog(&self, wanted: &Wanted, visit: &mut dyn FnMut(Entry<'_>)) -> Vec<String> {
        let mut notes = Vec::new();
        if wanted.has(Source::Description) {
            self.list_descriptions(wanted, visit);
        }
        if wanted.has(Source::Sysfs) {
            self.list_sysfs(wanted, visit);
        }
        if wanted.has(Source::Generic) && wanted.has_pmu(["generic"]) {
            list_generic(visit);
        }
        if wanted.has(Source::Tracefs) {
            notes.extend(self.list_tracepoints(wanted, visit).err());
        }
        if wanted.has(Source::Libpfm) {
            let failure = self.list_libpfm(wanted, visit).err();
            notes.extend(failure.filter(|_| wanted.sources.contains(&Source::Libpfm)));
        }
        if wanted.has(Source::Vendor) {
            for event in self.all_vendor_events().filter(|event| wanted.has_pmu([&event.pmu])) {
                visit(vendor_entry(event));
            }
        }
        notes
    }

    fn list_descriptions(&self, wanted: &Wanted, visit: &mut dyn FnMut(Entry<'_>)) {
        if wanted.has_pmu(["software", "perf"]) {
            for event in &registry::software().events {
                visit(Entry::described(event, "software", event.name.as_str().into()));
            }
        }
        let mut list = |description: &PmuDescription, elsewhere: bool| {
            let identity = description.identity();
            if !wanted.has_pmu(std::iter::once(&identity.name).chain(&identity.also)) {
                return;
            }
            for event in &description.tables().events {
                // The PMU in front makes a name stand for itself on machines of several core types.
                let name = format!("{}::{}", identity.name, event.name);
                visit(Entry {
                    elsewhere,
                    ..Entry::described(event, &identity.name, Cow::Owned(name))
                });
            }
        };
        for active in self.active() {
            list(&active.description, false);
        }
        if wanted.other_machines || wanted.pmu.is_some() {
            let is_active = |it: &&PmuDescription| self.devices_of(it).is_some();
            let is_software = |it: &&PmuDescription| it.identity().machines.is_empty();
            for other in self.descriptions().filter(|it| !is_active(it) && !is_software(it)) {
                list(other, true);
            }
        }
    }

    fn list_sysfs(&self, wanted: &Wanted, visit: &mut dyn FnMut(Entry<'_>)) {
        let devices = self.devices();
        for name in read::names_in(devices).into_iter().filter(|name| wanted.has_pmu([name])) {
            let Ok(pmu) = sysfs::Pmu::open(devices, &name) else { continue };
            for alias in pmu.aliases() {
                let events = devices.join(&name).join("events");
                let mut about = read::text(&events.join(&alias)).unwrap_or_default();
                if let Ok((scale, unit)) = pmu.unit(&alias)
                    && unit != crate::found::EVENTS
                {
                    about.push_str(&format!("; in units of {scale} {unit}"));
                }
                let typed = format!("{name}/{alias}/");
                let about = Cow::Owned(about);
                visit(Entry { about, ..Entry::new(Source::Sysfs, name.as_str(), typed) });
            }
        }
    }

    fn list_tracepoints(
        &self,
        wanted: &Wanted,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<(), String> {
        let events = tracepoint::events_directory(self.tracefs()).map_err(|it| it.to_string())?;
        let file = events.with_file_name("available_events");
        let list = match read::text_of_at_most(&file, TRACEPOINTS_BYTES_MAX) {
            Ok(list) => list,
            Err(_) => walk_tracepoints(&events),
        };
        let mut names: Vec<&str> = list.lines().filter(|line| line.contains(':')).collect();
        names.sort_unstable();
        for name in names {
            let group = name.split(':').next().unwrap_or(name);
            if wanted.has_pmu([group, "tracepoint"]) {
                visit(Entry::new(Source::Tracefs, group, name));
            }
        }
        Ok(())
    }

    fn list_libpfm(&self, wanted: &Wanted, visit: &mut dyn FnMut(Entry<'_>)) -> Result<(), String> {
        let library = self.libpfm()?;
        for pmu in library.pmus() {
            let is_here = pmu.present || wanted.other_machines || wanted.pmu.is_some();
            if !is_here || !wanted.has_pmu([&pmu.name]) {
                continue;
            }
            library.events(&pmu, &mut |event| {
                let name = format!("{}::{}", pmu.name, event.name);
                let mut entry = Entry::new(Source::Libpfm, pmu.name.as_str(), name);
                entry.about = event.description.into();
                entry.elsewhere = !pmu.present;
                visit(entry);
                std::ops::ControlFlow::Continue(())
            });
        }
        Ok(())
    }
}

fn list_generic(visit: &mut dyn FnMut(Entry<'_>)) {
    for (mut names, event) in generic::events() {
        let name = names.remove(0);
        let also = names.into_iter().map(Cow::Owned).collect();
        let about = match event.pmu_type {
            pmu_type::HW_CACHE => "the kernel's cache event for this CPU",
            _ => "the kernel's generic event for this CPU",
        };
        visit(Entry { also, about: about.into(), ..Entry::new(Source::Generic, "generic", name) });
    }
}

fn vendor_entry(event: &VendorEvent) -> Entry<'_> {
    let mut about = event.about.clone();
    if event.deprecated {
        about.push_str(" (deprecated)");
    }
    Entry {
        about: Cow::Owned(about),
        errata: event.errata.as_deref().map(Into::into),
        ..Entry::new(Source::Vendor, event.pmu.as_str(), event.name.as_str())
    }
}

/// The tracepoints of a tree without a list of them.
fn walk_tracepoints(events: &Path) -> String {
    let mut list = String::new();
    for group in read::names_in(events) {
        for name in read::names_in(&events.join(&group)) {
            if fs::metadata(events.join(&group).join(&name).join("id")).is_ok() {
                list.push_str(&format!("{group}:{name}\n"));
            }
        }
    }
    list
}
