//! Contexts for programs in the kernel: published under a name, found there, read by any probe.

mod attached;
mod directory;
mod memory;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;

use perfmon_bpf::{
    BpfRing, Errno, Error, Loaded as Object, Loader, Map, Object as File, Program, SharedMemory,
    TaskFilter,
};
use perfmon_core::{Encoding, Refusal, SetId, Target};

use crate::counter::{Counter, Place};
pub use attached::Attached;
use attached::Way;
use directory::{Mount, Name};
pub use memory::ContextInfo;

#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../../../bpf/perfmon_bpf/layout.rs"]
mod layout;

static STUBS: &[u8] = include_bytes!("../../../../bpf/objects/stubs.bpf.o");

/// The map that each publisher has.
const CONTEXTS: &str = "pfm_contexts";
/// The maps that programs of others share.
const SHARED: [&str; 5] = [CONTEXTS, "pfm_events", "pfm_tasks", "pfm_cpus", "pfm_ring"];
const RING_BYTES: u32 = 1 << 18;

/// One context to publish.
#[derive(Debug)]
pub struct ToPublish<'a> {
    /// A thread or a CPU.
    pub(crate) target: Target,
    /// Its registers, in order: the set and the event.
    pub(crate) pmds: Vec<(SetId, &'a Counter)>,
}

/// Contexts that programs in the kernel can read. Dropping it frees them: readers are then told that there are none.
#[derive(Debug)]
pub struct Published {
    // First what runs, then what it needs.
    call_backs: BTreeMap<u32, CallBack>,
    name: Option<Name>,
    stubs: Object,
    mount: Option<Mount>,
    contexts: SharedMemory,
    ring: BpfRing,
    places: Vec<Place>,
}

/// What calls a context's call-back.
#[derive(Debug)]
struct CallBack {
    _attached: Attached,
    way: Way,
}

/// Published contexts of another process, or of this one.
#[derive(Debug)]
pub struct Found {
    // Where the publisher has them.
    place: PathBuf,
    maps: Vec<(&'static str, Map)>,
    contexts: SharedMemory,
}

impl Published {
    /// Readies contexts for programs, without a name yet.
    ///
    /// # Errors
    /// The kernel's, for want of rights or memory; a target that has ended.
    pub fn new(contexts: &[ToPublish<'_>]) -> Result<Self, Refusal> {
        let object = File::parse_with("the stubs", STUBS, memory::LAYOUTS).map_err(refusal)?;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let events: usize = contexts.iter().map(|context| context.pmds.len()).sum();
        let number = count(contexts.len()).max(1);
        let stubs = Loader::new()
            .entries(CONTEXTS, number)
            .entries("pfm_events", count(events).max(1))
            .entries("pfm_cpus", crate::cpus::possible()?)
            .entries("pfm_callbacks", number)
            .entries("pfm_tracepoint_callbacks", number)
            .entries("pfm_probe_callbacks", number)
            .entries("pfm_ring", RING_BYTES)
            .load(&object)
            .map_err(refusal)?;
        let map = |name: &str| stubs.map(name).map_err(refusal);
        let memory = map(CONTEXTS)?.share_memory(true).map_err(refusal)?;
        let ring = BpfRing::map(map("pfm_ring")?.raw())
            .map_err(|errno| Refusal::new(format!("can't map a ring: {errno}")))?;
        let mut published = Self {
            call_backs: BTreeMap::new(),
            name: None,
            stubs,
            mount: None,
            contexts: memory,
            ring,
            places: Vec::new(),
        };
        let mut first_event = 0;
        for (index, context) in (0..).zip(contexts) {
            published.add(index, first_event, context)?;
            first_event += count(context.pmds.len());
        }
        Ok(published)
    }

    fn add(
        &mut self,
        index: u32,
        first_event: u32,
        context: &ToPublish<'_>,
    ) -> Result<(), Refusal> {
        if context.pmds.is_empty() {
            return Err(Refusal::new("a published context needs a register"));
        }
        if context.pmds.len() > layout::PMDS_MAX {
            let why = format!("a published context has {} registers at most", layout::PMDS_MAX);
            return Err(Refusal::new(why).hint("publish fewer events"));
        }
        let events = self.stubs.map("pfm_events").map_err(refusal)?;
        for (number, (_, counter)) in (first_event..).zip(&context.pmds) {
            events.plug(number, counter).map_err(refusal)?;
        }
        let sets: Vec<u32> = context.pmds.iter().map(|(set, _)| u32::from(set.0)).collect();
        let place = attached::place_of(&context.target)?;
        let (flags, target) = match place.cpu {
            -1 => (0, place.tid.unsigned_abs()),
            cpu => (layout::SYSTEM_WIDE, cpu.unsigned_abs()),
        };
        self.places.push(place);
        memory::write(
            &self.contexts,
            index,
            &memory::Written { flags, target, first_event, sets: &sets },
        );
        if flags & layout::SYSTEM_WIDE == 0 {
            return self.bind(target, u64::from(index) + 1);
        }
        let cpus = self.stubs.map("pfm_cpus").map_err(refusal)?;
        let number = (u64::from(index) + 1).to_ne_bytes();
        cpus.raw().update(&target.to_ne_bytes(), &number).map_err(|errno| {
            Refusal::new(format!("can't note whose context CPU {target} has: {errno}"))
        })
    }

    /// Binds a thread to the context with this number, or to none (0).
    fn bind(&self, tid: u32, number: u64) -> Result<(), Refusal> {
        let bind = self.stubs.map("pfm_bind").map_err(refusal)?;
        bind.raw()
            .update(&0_u32.to_ne_bytes(), &number.to_ne_bytes())
            .map_err(|errno| Refusal::new(format!("can't bind thread {tid}: {errno}")))?;
        let bound = self.stubs.program("bind").and_then(|it| it.iterate(TaskFilter::Thread(tid)));
        match bound {
            Ok(done) if done.len() == 1 => Ok(()),
            Ok(_) => Err(Refusal::new(format!("there is no thread {tid}"))),
            Err(error) => Err(refusal(error)),
        }
    }

    /// Gives the contexts a name, by which [`Found::open`] finds them from any process that may look into this one.
    ///
    /// # Errors
    /// The name is in use, or no name; no rights.
    pub fn publish(&mut self, name: &str) -> Result<(), Refusal> {
        directory::path_of(name)?;
        let mount = Mount::new()?;
        for map in SHARED {
            let pinned = self.stubs.map(map).and_then(|map_| map_.pin(&mount.path(map)));
            pinned.map_err(refusal)?;
        }
        self.name = Some(Name::new(name, &mount)?);
        self.mount = Some(mount);
        Ok(())
    }

    /// Puts these contexts' maps into an object that a loader loads.
    pub fn share<'a>(&'a self, loader: Loader<'a>) -> Loader<'a> {
        let maps = SHARED.iter().filter_map(|name| Some((*name, self.stubs.map(name).ok()?)));
        maps.fold(loader, |loader, (name, map)| loader.share(name, map))
    }

    /// Runs the call-back `name` of `programs` (`callback!` or `PFM_CALLBACK` made it) after each `period` of `event` on the context's
    /// target: at its overflows, or hits if it is a tracepoint or a probe. A context has one call-back; another replaces it.
    ///
    /// # Errors
    /// There is no such context or program; the event can't be sampled there. The context then has no call-back.
    pub fn call_back(
        &mut self,
        context: u32,
        event: &Encoding,
        period: u64,
        programs: &Object,
        name: &str,
    ) -> Result<(), Refusal> {
        if period == 0 {
            return Err(Refusal::new("a period of 0 events never passes"));
        }
        let place = usize::try_from(context).ok().and_then(|index| self.places.get(index));
        let place = place.ok_or_else(|| Refusal::new(format!("there is no context {context}")))?;
        let way = Way::of(event);
        let program = programs.program(&format!("{name}{}", way.suffix())).map_err(refusal)?;
        if let Some(old) = self.call_backs.remove(&context) {
            self.take_away(old.way, context)?;
        }
        let callbacks = self.stubs.map(way.callbacks()).map_err(refusal)?;
        callbacks.plug(context, program).map_err(refusal)?;
        // The stub counts hits itself: programs on tracepoints and probes run at each.
        let is_hit = way != Way::Overflow;
        memory::set_hit_period(&self.contexts, context, if is_hit { period } else { 0 });
        let stub = self.stubs.program(way.stub()).map_err(refusal)?;
        let period = if is_hit { 0 } else { period };
        let attached = Attached::at(stub, event, place, period, u64::from(context))?;
        self.call_backs.insert(context, CallBack { _attached: attached, way });
        Ok(())
    }

    /// Takes a context's call-back away. Its event goes on: what comes counts as [unplugged](ContextInfo::unplugged)
    /// until there is another call-back.
    ///
    /// # Errors
    /// It has none.
    pub fn unplug(&mut self, context: u32) -> Result<(), Refusal> {
        let none = || Refusal::new(format!("context {context} has no call-back"));
        let way = self.call_backs.get(&context).ok_or_else(none)?.way;
        self.take_away(way, context)
    }

    fn take_away(&self, way: Way, context: u32) -> Result<(), Refusal> {
        match self.stubs.map(way.callbacks()).and_then(|map| map.unplug(context)) {
            // It was taken away before.
            Err(error) if error.errno() == Some(Errno::NOENT) => Ok(()),
            result => result.map_err(refusal),
        }
    }

    /// Hands on the records that programs sent with `pfm_emit`, and says how many.
    pub fn drain(&mut self, take: impl FnMut(&[u8])) -> usize {
        self.ring.drain(take)
    }

    /// A descriptor that is readable when there are records.
    ///
    /// # Errors
    /// None that is known.
    pub fn records(&self) -> Result<impl AsFd, Refusal> {
        self.stubs.map("pfm_ring").map_err(refusal)
    }

    /// Which set's registers programs can read; those of others say that they are inactive.
    pub fn set_active_set(&self, context: u32, set: SetId) {
        memory::set_active_set(&self.contexts, context, u32::from(set.0));
    }

    /// Hits of tracepoints and probes, in any task, that the kernel has kept from call-backs: a program was running on that
    /// CPU. Since Linux 7 it may be one whose task was switched out.
    pub fn skipped(&self) -> u64 {
        let stubs = [Way::Tracepoint, Way::Probe].map(Way::stub);
        let skipped =
            stubs.map(|stub| self.stubs.program(stub).and_then(Program::recursion_misses));
        skipped.iter().flatten().sum()
    }

    /// How a context stands; `None` if there is none.
    pub fn info(&self, context: u32) -> Option<ContextInfo> {
        memory::info(&self.contexts, context)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.call_backs.clear();
        for context in 0..u32::try_from(self.places.len()).unwrap_or(u32::MAX) {
            memory::free(&self.contexts, context);
        }
        for place in self.places.iter().filter(|place| place.cpu == -1) {
            // A thread that has ended needs no more.
            let _ = self.bind(place.tid.unsigned_abs(), 0);
        }
    }
}

impl Found {
    /// Finds the contexts that were published under a name.
    ///
    /// # Errors
    /// There are none, or not for this user.
    pub fn open(name: &str) -> Result<Self, Refusal> {
        let link = directory::path_of(name)?;
        if std::fs::symlink_metadata(&link).is_err() || directory::is_stale(&link) {
            let why = format!("no contexts are published as {name}");
            let known = Self::names().join(", ");
            let known =
                if known.is_empty() { "none is".into() } else { format!("there are: {known}") };
            return Err(Refusal::new(why).hint(known));
        }
        let open = |name| Map::pinned(&link.join(name)).map(|map| (name, map)).map_err(refusal);
        let maps = SHARED.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let contexts = maps.iter().find(|(name, _)| *name == CONTEXTS);
        let contexts = contexts.ok_or_else(|| Refusal::new("no contexts"))?.1.share_memory(false);
        let contexts = contexts.map_err(refusal)?;
        Ok(Self { place: directory::place_of(&link), contexts, maps })
    }

    /// All names that can be [opened](Self::open), in alphabetical order. Those of publishers that have ended are removed.
    pub fn names() -> Vec<String> {
        directory::names()
    }

    /// Puts the contexts' maps into an object that a loader loads.
    pub fn share<'a>(&'a self, loader: Loader<'a>) -> Loader<'a> {
        self.maps.iter().fold(loader, |loader, (name, map)| loader.share(name, map))
    }

    /// How a context stands; `None` if there is none, if it was freed or its publisher has ended.
    pub fn info(&self, context: u32) -> Option<ContextInfo> {
        memory::info(&self.contexts, context).filter(|_| !directory::is_gone(&self.place))
    }
}

fn refusal(error: Error) -> Refusal {
    Refusal::new(error.to_string())
}

#[cfg(test)]
mod tests;
