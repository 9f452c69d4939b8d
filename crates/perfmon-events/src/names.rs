mod devices;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use perfmon_core::{Encoding, Group, Refusal};
use perfmon_data::pmu_type::{BREAKPOINT, RAW};
use perfmon_sys::Libpfm;

use crate::blind::Subject;
use crate::description::DescriptionError;
use crate::error::ParseError;
use crate::event::{Event, Written};
use crate::explain::{Explained, Explanation, Source};
use crate::found::Found;
use crate::hit::{Hit, Hits};
use crate::machine::CpuId;
use crate::registry::{PmuDescription, Registry};
use crate::resolve::Lookup;
use crate::syntax::{self, Item, Spec};
use crate::vendor::{VendorEvent, VendorEvents};
use crate::{generic, kprobe, registry, tracepoint, uprobe};

pub(crate) use devices::{Active, Device};

/// Where names are looked up.
///
/// Nothing is read before a name needs it: the kernel's generic events, raw events and breakpoints of a
/// machine with one kind of CPU touch no file but, for hardware events, the list of PMUs.
#[derive(Debug)]
pub struct Names {
    sysfs: PathBuf,
    /// Where sysfs has its PMUs.
    devices: PathBuf,
    /// Where tracefs may be mounted, the first choice first.
    tracefs: Vec<PathBuf>,
    proc: PathBuf,
    description_directories: Vec<PathBuf>,
    vendor_paths: Vec<PathBuf>,
    /// The machine is the one that this process runs on.
    is_here: bool,
    registry: OnceLock<Registry>,
    cpus: OnceLock<Vec<CpuId>>,
    active: OnceLock<Vec<Active>>,
    core_pmus: OnceLock<Vec<Arc<Device>>>,
    /// By path, and the CPU that they are for.
    vendor: OnceLock<Vec<(CpuId, Result<VendorEvents, Refusal>)>>,
}

impl Names {
    /// This machine: `/sys`, `/proc`, and tracefs at `/sys/kernel/tracing` or `/sys/kernel/debug/tracing`;
    /// descriptions in `/etc/perfmon/pmu` and `$XDG_CONFIG_HOME/perfmon/pmu`, vendors' event files in
    /// `/etc/perfmon/events` and `$XDG_CONFIG_HOME/perfmon/events` (`~/.config` if that is not set).
    pub fn system() -> Self {
        let tracefs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        let folders = configuration_folders();
        Self {
            tracefs: tracefs.map(PathBuf::from).into(),
            description_directories: folders.iter().map(|it| it.join("pmu")).collect(),
            vendor_paths: folders.iter().map(|it| it.join("events")).collect(),
            is_here: true,
            ..Self::elsewhere("/sys".into(), "/proc".into())
        }
    }

    /// Another machine's files: a tree like `/sys` and a tree like `/sys/kernel/tracing`. Nothing else is
    /// read: no `/proc`, no directories, no libpfm4.
    pub fn with_roots(sysfs: impl Into<PathBuf>, tracefs: impl Into<PathBuf>) -> Self {
        Self { tracefs: vec![tracefs.into()], ..Self::elsewhere(sysfs.into(), PathBuf::new()) }
    }

    fn elsewhere(sysfs: PathBuf, proc: PathBuf) -> Self {
        Self {
            devices: sysfs.join("bus/event_source/devices"),
            sysfs,
            tracefs: Vec::new(),
            proc,
            description_directories: Vec::new(),
            vendor_paths: Vec::new(),
            is_here: false,
            registry: OnceLock::new(),
            cpus: OnceLock::new(),
            active: OnceLock::new(),
            core_pmus: OnceLock::new(),
            vendor: OnceLock::new(),
        }
    }

    /// Takes another machine's tree like `/proc`, of which `cpuinfo` is read.
    #[must_use]
    pub fn proc(mut self, proc: impl Into<PathBuf>) -> Self {
        self.proc = proc.into();
        (self.cpus, self.active) = (OnceLock::new(), OnceLock::new());
        self.vendor = OnceLock::new();
        self
    }

    /// Also takes the PMU descriptions (`*.toml`) of a directory.
    #[must_use]
    pub fn description_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.description_directories.push(directory.into());
        (self.registry, self.active) = (OnceLock::new(), OnceLock::new());
        self
    }

    /// Also takes vendors' event files (JSON): a file, or a directory in Intel's, Arm's or the kernel's layout.
    #[must_use]
    pub fn vendor_events_at(mut self, path: impl Into<PathBuf>) -> Self {
        self.vendor_paths.push(path.into());
        self.vendor = OnceLock::new();
        self
    }

    /// Also takes the PMU description `file`.
    ///
    /// # Errors
    /// [`DescriptionError`] if the file can't be read, is wrong, or conflicts with another description.
    pub fn add_description(&mut self, file: &Path) -> Result<(), DescriptionError> {
        self.registry();
        self.active = OnceLock::new();
        let description = PmuDescription::load(file)?;
        self.registry.get_mut().map_or(Ok(()), |registry| registry.add(description))
    }

    /// The events of a list such as `a,b,{c,d}:u`, in its order. The crate's documentation has the grammar.
    ///
    /// # Errors
    /// [`ParseError`] for text that is no list of events, a plain word that names no event, and lists of
    /// more than 65,536 bytes. What this machine lacks, and counts that would not be true, are refusals
    /// of single events in [`Event::encoding`].
    pub fn parse(&self, list: &str) -> Result<Vec<Event>, ParseError> {
        let explained = self.resolve(list, &Lookup::new(self))?;
        Ok(explained.into_iter().map(|explained| explained.event).collect())
    }

    /// As [`parse`](Self::parse), with what was tried on the way.
    pub fn explain(&self, list: &str) -> Explanation {
        let lookup = Lookup::explaining(self);
        let events = self.resolve(list, &lookup);
        Explanation { steps: lookup.into_steps(), events }
    }

    /// The registers of one event, by the shortest way: [`parse`](Self::parse) for one name.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); `Ok(Err(…))` if this machine can't have the event. A list of several
    /// events, or a name for events of several PMUs, gives the first one.
    pub fn encoding(&self, event: &str) -> Result<Result<Encoding, Refusal>, ParseError> {
        let lookup = Lookup::new(self);
        let (spec, modifiers) = syntax::first(event, &lookup)?;
        Ok(match self.hits(spec, &lookup).first() {
            Some(hit) => hit.found.and_then(|found| found.encode(modifiers, false)),
            None => Err(Refusal::new("it names no event")),
        })
    }

    fn resolve(&self, list: &str, lookup: &Lookup<'_>) -> Result<Vec<Explained>, ParseError> {
        let items = syntax::items(list, lookup)?;
        let mut events = Vec::with_capacity(items.len());
        let mut groups = 0;
        let mut items = items.into_iter().enumerate().peekable();
        while let Some(first) = items.next() {
            let group = first.1.group;
            let mut members = vec![first];
            while group != Group::Free
                && let Some(member) = items.next_if(|(_, item)| item.group == group)
            {
                members.push(member);
            }
            self.events_of(members, &mut groups, lookup, &mut events);
        }
        Ok(events)
    }

    /// The events of one group, or of one item without one. Where names stand for events of several PMUs,
    /// there is a group for each PMU, and what is of no such PMU is in the first.
    fn events_of(
        &self,
        items: Vec<(usize, Item<'_>)>,
        groups: &mut u16,
        lookup: &Lookup<'_>,
        events: &mut Vec<Explained>,
    ) {
        let is_group = items.first().is_some_and(|(_, item)| item.group != Group::Free);
        let leader = items.first().map(|(_, item)| item.modifiers).unwrap_or_default();
        let mut members: Vec<(Written, Hit)> = Vec::new();
        for (number, item) in items {
            let (written, spec) = Written::of(number, item);
            lookup.begin(number);
            let hits = self.hits(spec, lookup);
            members.extend(hits.into_iter().map(|hit| (written.clone(), hit)));
        }
        let mut pmus: Vec<String> = Vec::new();
        for (_, hit) in &members {
            if let Some(pmu) = hit.pmu().filter(|_| hit.text.is_some())
                && !pmus.iter().any(|other| other == pmu)
            {
                pmus.push(pmu.to_owned());
            }
        }
        if !is_group || pmus.len() < 2 {
            let group = next_group(is_group, groups);
            events.extend(members.into_iter().map(|(written, hit)| written.event(hit, group)));
            return;
        }
        for (place, pmu) in pmus.iter().enumerate() {
            let group = next_group(is_group, groups);
            let is_member =
                |hit: &Hit| match hit.pmu().filter(|pmu| pmus.iter().any(|it| it == pmu)) {
                    Some(own) => own == pmu,
                    None => place == 0,
                };
            let mut is_first = true;
            let (chosen, rest): (Vec<_>, Vec<_>) =
                members.into_iter().partition(|(_, hit)| is_member(hit));
            members = rest;
            for (mut written, hit) in chosen {
                if std::mem::replace(&mut is_first, false) {
                    written.lead(leader);
                }
                events.push(written.event(hit, group));
            }
        }
    }

    /// The events that an item stands for: one, unless it names several PMUs.
    fn hits(&self, spec: Spec<'_>, lookup: &Lookup<'_>) -> Hits {
        match spec {
            Spec::Word(hits) => hits,
            Spec::Raw(config) => self.raw(config, lookup),
            Spec::Numeric { pmu_type, config } => {
                lookup.note(Source::Form, true, || "a PMU's number and config".into());
                Hits::one(numeric(pmu_type, config))
            }
            Spec::Breakpoint { address, length, access } => {
                lookup.note(Source::Form, true, || "a breakpoint".into());
                Hits::one(Ok(breakpoint(address, length, access)))
            }
            Spec::Sysfs { pmu, terms } => lookup.sysfs(pmu, &terms),
            Spec::Tracepoint { group, name } => {
                let found = tracepoint::find(&self.tracefs, group, name);
                lookup.note(Source::Tracefs, found.is_ok(), || format!("{group}:{name}"));
                Hits::one(found)
            }
            Spec::Uprobe { path, place, is_return } => {
                lookup.note(Source::Form, true, || "a probe of user code".into());
                Hits::one(uprobe::find(self.devices(), path, &place, is_return))
            }
            Spec::Kprobe { function, offset, is_return } => {
                lookup.note(Source::Form, true, || "a probe of the kernel".into());
                Hits::one(kprobe::find(self.devices(), function, offset, is_return))
            }
        }
    }

    /// A raw event, on each core PMU.
    fn raw(&self, config: u64, lookup: &Lookup<'_>) -> Hits {
        lookup.note(Source::Form, true, || "a raw event of the core PMU".into());
        let event =
            |pmu_type| Found::new(Encoding { pmu_type, config, ..Encoding::default() }, None);
        match self.core_pmus() {
            [] | [_] => Hits::one(Ok(event(RAW))),
            several => several
                .iter()
                .map(|pmu| Hit {
                    text: Some(format!("{}/config={config:#x}/", pmu.name)),
                    found: Ok(Found { device: Some(pmu.clone()), ..event(pmu.pmu_type) }),
                })
                .collect(),
        }
    }

    /// Names that may be typed alone, as far as they are known without reading much.
    pub(crate) fn plain_names(&self) -> Vec<String> {
        let software = registry::software().events.iter();
        let software = software.flat_map(|event| std::iter::once(&event.name).chain(&event.also));
        let generic = generic::events().flat_map(|(names, _)| names);
        let described = self.described_names().map(str::to_owned);
        software.map(ToString::to_string).chain(generic).chain(described).collect()
    }

    /// The names of this machine's descriptions.
    pub(crate) fn described_names(&self) -> impl Iterator<Item = &str> {
        let events = self.active().iter().flat_map(|it| &it.description.tables().events);
        events.map(|event| event.name.as_str())
    }

    pub(crate) fn tracefs(&self) -> &[PathBuf] {
        &self.tracefs
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.registry.get_or_init(|| Registry::load(&self.description_directories))
    }

    /// The PMU descriptions that there are, those of other machines included.
    pub fn descriptions(&self) -> impl Iterator<Item = &PmuDescription> {
        self.registry().descriptions.iter().map(|it| &**it)
    }

    /// The description called `name`, or that goes by it.
    pub fn description(&self, name: &str) -> Option<&PmuDescription> {
        self.registry().find(name).map(|it| &**it)
    }

    /// The names of descriptions nearest to `name`, all equally near.
    pub fn near_descriptions(&self, name: &str) -> Vec<String> {
        let identities = self.descriptions().map(PmuDescription::identity);
        let names = identities.flat_map(|it| std::iter::once(&it.name).chain(&it.also));
        crate::near::matches(name, names)
    }

    /// What is wrong with descriptions and vendors' files; the others are not touched by it.
    pub fn problems(&self) -> Vec<String> {
        let descriptions = self.registry().problems.iter().map(ToString::to_string);
        let vendor = self.vendor().iter().flat_map(|(_, events)| match events {
            Ok(events) => events.problems().to_vec(),
            Err(refusal) => vec![refusal.to_string()],
        });
        let mut problems: Vec<String> = descriptions.collect();
        for problem in vendor {
            // A file that is for several CPUs is read for each.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }

    fn vendor(&self) -> &[(CpuId, Result<VendorEvents, Refusal>)] {
        self.vendor.get_or_init(|| {
            let paths = self.vendor_paths.iter().filter(|path| path.exists());
            let load = |path, cpu: &CpuId| (cpu.clone(), VendorEvents::load(path, cpu));
            paths.flat_map(|path| self.cpus().iter().map(|cpu| load(path, cpu))).collect()
        })
    }

    /// The events of vendors' files, each once: a file may be for several CPUs.
    pub(crate) fn all_vendor_events(&self) -> impl Iterator<Item = &VendorEvent> {
        let files: Vec<&VendorEvents> =
            self.vendor().iter().filter_map(|(_, events)| events.as_ref().ok()).collect();
        (0..files.len()).flat_map(move |place| {
            let (before, events) = (files[..place].to_vec(), files[place]);
            let is_known = move |event: &&VendorEvent| {
                before.iter().any(|other| other.find_all(&event.name).contains(event))
            };
            events.iter().filter(move |event| !is_known(event))
        })
    }

    /// The events of vendors' files that are called `name`, with the CPU that each is for.
    pub(crate) fn vendor_events(&self, name: &str) -> Vec<(&CpuId, &VendorEvent)> {
        let files = self.vendor().iter();
        let files = files.filter_map(|(cpu, events)| Some((cpu, events.as_ref().ok()?)));
        files.flat_map(|(cpu, it)| it.find_all(name).iter().map(move |it| (cpu, it))).collect()
    }

    /// Why vendors' files don't have `name`.
    pub(crate) fn vendor_state(&self, name: &str) -> String {
        match self.vendor().len() {
            0 => "no directory with event files".into(),
            _ => format!("no event '{name}' in their files"),
        }
    }

    /// libpfm4's library, or why it is not asked.
    pub(crate) fn libpfm(&self) -> Result<&'static Libpfm, String> {
        static LIBRARY: OnceLock<Result<Libpfm, String>> = OnceLock::new();
        if !self.is_here {
            return Err("it knows this machine only".into());
        }
        let library = LIBRARY.get_or_init(|| Libpfm::open().map_err(|error| error.to_string()));
        library.as_ref().map_err(Clone::clone)
    }

    /// Why an event of a description can't be had on another machine.
    pub(crate) fn not_this_machine(&self, description: &PmuDescription) -> Refusal {
        let identity = description.identity();
        let cpu = match self.cpus() {
            [] | [CpuId::Unknown] => "unknown".to_owned(),
            cpus => cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        let why = format!("'{}' describes another machine: {}", identity.name, identity.about);
        Refusal::new(why).hint(format!("this machine's CPU is {cpu}"))
    }
}

/// Where a machine's and a user's own files are, the user's last.
pub fn configuration_folders() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let user = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
    let user = user.map(PathBuf::from).or_else(|| Some(PathBuf::from(home?).join(".config")));
    let system = PathBuf::from("/etc/perfmon");
    std::iter::once(system).chain(user.map(|folder| folder.join("perfmon"))).collect()
}

fn next_group(is_group: bool, groups: &mut u16) -> Group {
    if !is_group {
        return Group::Free;
    }
    let number = *groups;
    // A list has room for fewer groups; on machines of several core types they share the last number.
    *groups = groups.saturating_add(1);
    Group::Together(number)
}

fn numeric(pmu_type: u32, config: u64) -> Result<Found, Refusal> {
    if pmu_type == BREAKPOINT {
        let why = "a breakpoint is no type and config: it has an address";
        return Err(Refusal::new(why).hint("write mem:ADDRESS/LENGTH:rwx"));
    }
    Ok(Found::of_kernel(pmu_type, config))
}

fn breakpoint(address: u64, length: u64, access: u32) -> Found {
    let is_user_code = access == syntax::ACCESS_EXECUTE && address >> 63 == 0;
    let subject = if is_user_code { Subject::UserCodeBreakpoint } else { Subject::Breakpoint };
    let encoding = Encoding {
        pmu_type: BREAKPOINT,
        config1: address,
        config2: length,
        bp_type: access,
        ..Encoding::default()
    };
    Found::new(encoding, subject)
}
