//! Opens events as a session on this machine would.

use perfmon::{Encoding, Event, Names, Refusal, Trial};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::sysfs;
use crate::exit::Failure;

/// Opens events and closes them again.
pub(crate) struct Prober {
    trial: Trial,
}

impl Prober {
    pub(crate) fn new() -> Self {
        Self { trial: Trial::new() }
    }

    /// Where an event is opened, in words.
    pub(crate) fn place(&self, event: &Event) -> String {
        match sysfs::only_on(event) {
            Some([cpu, ..]) => format!("on CPU {cpu}"),
            _ => "on a thread".into(),
        }
    }

    /// Opens `encoding` where `event` can count.
    pub(crate) fn open(&self, event: &Event, encoding: &Encoding) -> Result<(), Refusal> {
        self.trial.open_as_asked(encoding, sysfs::only_on(event))
    }

    /// Why `event` does not open; `None` if it does.
    pub(crate) fn refusal(&self, names: &Names, event: &Event) -> Option<Refusal> {
        let encoding = match &event.encoding {
            Ok(encoding) => encoding,
            Err(refusal) => return Some(refusal.clone()),
        };
        let refusal = self.open(event, encoding).err()?;
        Some(reason(&self.trial, names, event, refusal))
    }

    /// The event that `event` is in user mode only, if that can be had and is another one.
    pub(crate) fn in_user_mode(&self, names: &Names, event: &Event) -> Option<Event> {
        let is_elsewhere = sysfs::only_on(event).is_some();
        if is_elsewhere { None } else { in_user_mode(names, event) }
    }

    /// Whether `events`, each of which opens by itself, can be counted together.
    ///
    /// # Errors
    /// An event that does not open any more, and CPUs that this process may not use.
    pub(crate) fn together(&self, events: &[&Event]) -> Result<bool, Failure> {
        // An event that counts on CPUs only takes all others with it.
        if events.iter().all(|event| sysfs::only_on(event).is_none()) {
            let mut types: Vec<&[u32]> =
                events.iter().filter_map(|event| sysfs::core_type(event)).collect();
            types.dedup();
            match types.as_slice() {
                [] => {}
                [cpus] => run_on(cpus)?,
                _ => return Ok(false),
            }
        }
        let mut opened = Vec::with_capacity(events.len());
        for event in events {
            let encoding = event.encoding.as_ref().map_err(Failure::new)?;
            opened.push((&**encoding, sysfs::only_on(event)));
        }
        self.trial.together(&opened).map_err(Failure::new)
    }
}

/// `EPERM` and `EACCES`.
const DENIED: [i32; 2] = [1, 13];

/// Whether the kernel refused for lack of privilege.
pub(crate) fn is_denied(refusal: &Refusal) -> bool {
    refusal.errno_number().is_some_and(|errno| DENIED.contains(&errno))
}

/// Why `event` was refused: the kernel asks for privilege first, also where that would not help.
pub(crate) fn reason(trial: &Trial, names: &Names, event: &Event, refusal: Refusal) -> Refusal {
    if !is_denied(&refusal) {
        return refusal;
    }
    let Some(Ok(encoding)) = in_user_mode(names, event).map(|it| it.encoding) else {
        return refusal;
    };
    let without = trial.open_as_asked(&encoding, None).err();
    without.filter(|without| !is_denied(without)).unwrap_or(refusal)
}

/// The event that `event` is with the modifier 'u' added, unless it has levels of its own. What would not be true in
/// user mode is none.
pub(crate) fn in_user_mode(names: &Names, event: &Event) -> Option<Event> {
    let privilege = event.encoding.as_ref().ok()?.privilege;
    if privilege.exclude_user || privilege.exclude_kernel {
        return None;
    }
    // Behind letters or a slash there is no colon.
    [":u", "u"].iter().find_map(|letters| {
        let mut events = names.parse(&format!("{}{letters}", event.text)).ok()?;
        let encoding = events.first()?.encoding.as_ref().ok()?;
        let is_user = encoding.privilege.exclude_kernel && !encoding.privilege.exclude_user;
        events.truncate(1);
        events.pop().filter(|_| is_user)
    })
}

/// Moves this thread to a core type, so that a group of that type's events gets to run.
fn run_on(cpus: &[u32]) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    let known = cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok());
    known.filter(|cpu| *cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    sched_setaffinity(None::<Pid>, &set).map_err(|error| {
        Failure::new(format!("can't run on the CPUs {cpus:?} to try their events: {error}"))
    })
}
