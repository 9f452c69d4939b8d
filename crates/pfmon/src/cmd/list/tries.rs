//! Whether events open here.

use perfmon::{Encoding, Names, Opened, Privilege, Refusal, Source, Trial};
use perfmon_data::pmu_type;

use super::found::{Found, FoundEvent};
use crate::args::Try;
use crate::cmd::{prober, sysfs};

/// So many tracepoints are opened one by one: the kernel takes about 40 ms to close one, since it waits until no CPU
/// can be inside of it.
const TRACEPOINTS_MAX: usize = 3;
/// So many other events are opened one by one; each takes some microseconds.
const OTHERS_MAX: usize = 2000;
const EINVAL: i32 = 22;
const ENOENT: i32 = 2;

/// Whether an event opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    NotTried,
    Yes,
    /// Only in user mode.
    User,
    /// The reasons are in [`Tried::reasons`].
    No {
        reason: usize,
    },
}

/// What was found out about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) opens: Opens,
    /// It was opened itself, and not judged by its kind.
    pub(crate) itself: bool,
    /// It was opened with its first unit mask.
    pub(crate) with_mask: bool,
}

/// Why an event does not open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) short: String,
    pub(crate) whole: String,
}

/// What was found out about all events, in their order.
#[derive(Default)]
pub(crate) struct Tried {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) reasons: Vec<Why>,
    /// Events that were not tried since there are too many.
    pub(crate) left_out: usize,
}

const NOT_TRIED: Outcome = Outcome { opens: Opens::NotTried, itself: false, with_mask: false };

/// Tries the events that were found.
pub(crate) fn all(names: &Names, found: &Found, which: Try) -> Tried {
    let mut tried = Tried::default();
    if which == Try::None {
        tried.outcomes = vec![NOT_TRIED; found.events.len()];
        return tried;
    }
    let is_tracepoint = |event: &&FoundEvent| event.source == Source::Tracefs;
    let tracepoints = found.events.iter().filter(is_tracepoint);
    let by_kind = which == Try::Auto && tracepoints.clone().count() > TRACEPOINTS_MAX;
    let trial = Trial::new();
    let kind = tracepoints.take(usize::from(by_kind)).next().map(|first| {
        let opened = tracepoints_open(names, &trial, found.name(first));
        let opens = tried.opens(opened);
        Outcome { opens, itself: false, with_mask: false }
    });
    let mut left = if which == Try::Auto { OTHERS_MAX } else { usize::MAX };
    tried.outcomes.reserve(found.events.len());
    for event in &found.events {
        let outcome = match &kind {
            Some(kind) if event.source == Source::Tracefs => kind.clone(),
            _ if event.elsewhere => NOT_TRIED,
            _ if left == 0 => {
                tried.left_out += 1;
                NOT_TRIED
            }
            _ => {
                left -= 1;
                tried.try_one(names, &trial, found, event)
            }
        };
        tried.outcomes.push(outcome);
    }
    tried
}

impl Tried {
    fn try_one(
        &mut self,
        names: &Names,
        trial: &Trial,
        found: &Found,
        event: &FoundEvent,
    ) -> Outcome {
        let name = found.name(event);
        let opened = open(names, trial, name);
        // Some events can be had only with a unit mask.
        let first_mask = found.masks(event).next().filter(|_| opened.is_err());
        let with_mask = first_mask.map(|(mask, _)| open(names, trial, &format!("{name}:{mask}")));
        match with_mask {
            Some(Ok(opened)) => {
                Outcome { opens: self.opens(Ok(opened)), itself: true, with_mask: true }
            }
            Some(Err(why)) => {
                Outcome { opens: self.opens(Err(why)), itself: true, with_mask: true }
            }
            None => Outcome { opens: self.opens(opened), itself: true, with_mask: false },
        }
    }

    fn opens(&mut self, opened: Result<Opened, Why>) -> Opens {
        let why = match opened {
            Ok(Opened::AsAsked) => return Opens::Yes,
            Ok(Opened::UserOnly) => return Opens::User,
            Err(why) => why,
        };
        // Events of a PMU have the same few reasons.
        let recent = self.reasons.iter().rev().take(4).position(|known| *known == why);
        let reason = match recent {
            Some(back) => self.reasons.len() - 1 - back,
            None => {
                self.reasons.push(why);
                self.reasons.len() - 1
            }
        };
        Opens::No { reason }
    }
}

/// Opens what `name` stands for: all of it must open.
fn open(names: &Names, trial: &Trial, name: &str) -> Result<Opened, Why> {
    let events = names.parse(name).map_err(|error| {
        let whole = error.to_string();
        Why { short: whole.lines().next().unwrap_or_default().to_owned(), whole }
    })?;
    let mut opened = Opened::AsAsked;
    for event in &events {
        let encoding = event.encoding.as_ref().map_err(why)?;
        let cpus = sysfs::only_on(event);
        let refused = |refusal: Refusal| match cpus {
            None => why(&prober::reason(trial, names, event, refusal)),
            Some(_) => why(&refusal),
        };
        if trial.open(encoding, cpus).map_err(refused)? == Opened::UserOnly {
            // What would not be true there can't be had there.
            if prober::in_user_mode(names, event).is_none() {
                trial.open_as_asked(encoding, cpus).map_err(|it| why(&it))?;
            }
            opened = Opened::UserOnly;
        }
    }
    Ok(opened)
}

fn why(refusal: &Refusal) -> Why {
    Why { short: refusal.why().to_owned(), whole: refusal.to_string() }
}

/// Whether the kernel lets this user open tracepoints. It is asked for one that does not exist, which costs nothing:
/// the kernel looks for it after it has judged the user. `first` is one that exists, whose number must be readable.
fn tracepoints_open(names: &Names, trial: &Trial, first: &str) -> Result<Opened, Why> {
    let first = names.parse(first).ok().and_then(|events| events.into_iter().next());
    if let Some(Err(refusal)) = first.as_ref().map(|event| &event.encoding) {
        return Err(why(refusal));
    }
    let is_true_in_user_mode = first.is_some_and(|it| prober::in_user_mode(names, &it).is_some());
    let everywhere =
        Encoding { pmu_type: pmu_type::TRACEPOINT, config: u64::MAX, ..Encoding::default() };
    let in_user_mode = Encoding { privilege: Privilege::USER, ..everywhere.clone() };
    let judge = |encoding: &Encoding| match trial.open(encoding, None) {
        Err(refusal) if matches!(refusal.errno_number(), Some(EINVAL | ENOENT)) => Ok(()),
        Err(refusal) => Err(why(&refusal)),
        Ok(_) => Ok(()),
    };
    match judge(&everywhere) {
        Ok(()) => Ok(Opened::AsAsked),
        Err(refused) if !is_true_in_user_mode => Err(refused),
        Err(refused) => judge(&in_user_mode).map(|()| Opened::UserOnly).map_err(|_| refused),
    }
}
