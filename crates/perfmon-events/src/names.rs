use std::path::PathBuf;
use std::sync::Arc;

use perfmon_core::{Encoding, Group, Privilege, Refusal};

use crate::blind::{self, Subject};
use crate::error::ParseError;
use crate::syntax::{self, Item, Spec};
use crate::{sysfs, tracepoint, uprobe};

/// `PERF_TYPE_RAW`.
const RAW: u32 = 4;
/// `PERF_TYPE_BREAKPOINT`.
const BREAKPOINT: u32 = 5;

/// Unit of events that are counted one by one.
pub(crate) const EVENTS: &str = "events";

/// Where names are looked up.
///
/// Nothing is read before a name needs it: the kernel's generic events, raw events and breakpoints
/// touch no file.
#[derive(Clone, Debug)]
pub struct Names {
    sysfs: PathBuf,
    /// Where tracefs may be mounted, the first choice first.
    tracefs: Vec<PathBuf>,
}

/// An event, ready to be counted or refused.
#[derive(Clone, Debug)]
pub struct Event {
    /// The event as typed. What the modifiers of a group add to a member's own is appended to it, so
    /// `{a,b:k}:u` gives `a:u` and `b:ku`.
    pub text: String,
    /// Which events of the list it runs together with; groups are numbered from 0.
    pub group: Group,
    /// What one unit of the count is: `ns` for the clocks, `<scale> <unit>` for an alias of a PMU that
    /// has a scale or a unit (the count times `<scale>` is in `<unit>`), and `events` for all others.
    pub unit: String,
    /// The CPUs on which a system-wide session opens the event, if its PMU names them (one for each
    /// socket, say); `None` for all CPUs.
    pub cpus: Option<Vec<u32>>,
    /// The event's registers, or why it can't be had or would not be true.
    pub encoding: Result<Arc<Encoding>, Refusal>,
}

/// What looking a name up gives.
pub(crate) struct Found {
    /// Without what modifiers decide.
    pub(crate) encoding: Encoding,
    pub(crate) unit: String,
    pub(crate) cpus: Option<Vec<u32>>,
    /// Which rows of the blind table may apply.
    pub(crate) subject: Option<Subject>,
}

impl Found {
    pub(crate) fn new(encoding: Encoding, subject: impl Into<Option<Subject>>) -> Self {
        Self { encoding, unit: EVENTS.to_owned(), cpus: None, subject: subject.into() }
    }
}

impl Names {
    /// This machine: `/sys`, and tracefs at `/sys/kernel/tracing` or `/sys/kernel/debug/tracing`.
    pub fn system() -> Self {
        let tracefs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        Self { sysfs: "/sys".into(), tracefs: tracefs.map(PathBuf::from).into() }
    }

    /// Another machine's files: a tree like `/sys` and a tree like `/sys/kernel/tracing`.
    pub fn with_roots(sysfs: impl Into<PathBuf>, tracefs: impl Into<PathBuf>) -> Self {
        Self { sysfs: sysfs.into(), tracefs: vec![tracefs.into()] }
    }

    /// The events of a list such as `a,b,{c,d}:u`, in its order. The crate's documentation has the grammar.
    ///
    /// # Errors
    /// [`ParseError`] for text that is no list of events, a plain word that names no event, and lists of
    /// more than 65,536 bytes. What this machine lacks, and counts that would not be true, are refusals
    /// of single events in [`Event::encoding`].
    pub fn parse(&self, list: &str) -> Result<Vec<Event>, ParseError> {
        let items = syntax::items(list)?;
        Ok(items.into_iter().map(|item| self.event(item)).collect())
    }

    fn event(&self, item: Item<'_>) -> Event {
        let found = self.look_up(&item.spec);
        let unit = found.as_ref().map_or(EVENTS, |found| &found.unit).to_owned();
        let cpus = found.as_ref().ok().and_then(|found| found.cpus.clone());
        let encoding = found.and_then(|found| encode(&item, found)).map(Arc::new);
        Event { text: item.text, group: item.group, unit, cpus, encoding }
    }

    fn look_up(&self, spec: &Spec<'_>) -> Result<Found, Refusal> {
        let devices = self.sysfs.join("bus/event_source/devices");
        match *spec {
            Spec::Generic(generic) => {
                let (pmu_type, config) = (generic.pmu_type, generic.config);
                let encoding = Encoding { pmu_type, config, ..Encoding::default() };
                let mut found = Found::new(encoding, generic.subject);
                if generic.subject == Some(Subject::Clock) {
                    "ns".clone_into(&mut found.unit);
                }
                Ok(found)
            }
            Spec::Raw(config) => {
                Ok(Found::new(Encoding { pmu_type: RAW, config, ..Encoding::default() }, None))
            }
            Spec::Breakpoint { address, length, access } => Ok(breakpoint(address, length, access)),
            Spec::Sysfs { pmu, ref terms } => sysfs::find(&devices, pmu, terms),
            Spec::Tracepoint { group, name } => tracepoint::find(&self.tracefs, group, name),
            Spec::Uprobe { path, place, is_return } => {
                uprobe::find(&devices, path, &place, is_return)
            }
        }
    }
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

/// Puts the modifiers of `item` into what was found, and refuses what would not be true.
fn encode(item: &Item<'_>, found: Found) -> Result<Encoding, Refusal> {
    let modifiers = item.modifiers;
    modifiers.require_offered()?;
    if item.claims_leadership {
        let why = "only the first event of a group can be pinned or exclusive, for all of them";
        return Err(Refusal::new(why).hint("put 'D' and 'e' behind the group"));
    }
    let mut privilege = modifiers.privilege();
    if let Some(subject) = found.subject {
        blind::check(subject, &privilege)?;
    }
    if found.subject == Some(Subject::Clock) {
        // The kernel lets an ordinary user open only what excludes the kernel, and the clocks count
        // the same with it.
        privilege = Privilege::USER;
    }
    Ok(Encoding {
        privilege,
        pinned: modifiers.pinned,
        exclusive: modifiers.exclusive,
        precise_ip: modifiers.precise_ip,
        ..found.encoding
    })
}
