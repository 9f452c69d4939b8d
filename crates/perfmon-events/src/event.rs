use std::borrow::Cow;
use std::sync::Arc;

use perfmon_core::{Encoding, Group, Refusal};

use crate::explain::Explained;
use crate::found::EVENTS;
use crate::hit::Hit;
use crate::modifiers::Modifiers;
use crate::syntax::{Item, Spec};

/// An event, ready to be counted or refused.
#[derive(Clone, Debug)]
pub struct Event {
    /// The event as typed. What the modifiers of a group add to a member's own is appended to it, so
    /// `{a,b:k}:u` gives `a:u` and `b:ku`. Where one name stands for events of several PMUs, each is
    /// written so that it stands for itself alone.
    pub text: String,
    /// Which item of the list it comes from, counted from 0; a name that stands for events of several PMUs
    /// gives several events of one item.
    pub item: usize,
    /// Which events of the list it runs together with; groups are numbered from 0.
    pub group: Group,
    /// One count is so many units: 1 for all but some events of sysfs PMUs and vendors' files.
    pub scale: f64,
    /// The unit: `ns` for the clocks, what sysfs says for an alias of a PMU, and `events` for all others.
    pub unit: Cow<'static, str>,
    /// The CPUs on which a system-wide session opens the event, if its PMU names them (one for each
    /// socket, say); `None` for all CPUs.
    pub cpus: Option<Vec<u32>>,
    /// Whether it can count in a thread; what is beside the CPUs counts on [`cpus`](Self::cpus) only.
    pub counts_in_threads: bool,
    /// The PMU's name in sysfs, where the lookup went there.
    pub pmu: Option<String>,
    /// The event's registers, or why it can't be had or would not be true.
    pub encoding: Result<Arc<Encoding>, Refusal>,
}

/// How an event was written, and what its modifiers ask.
#[derive(Clone)]
pub(crate) struct Written {
    text: String,
    item: usize,
    /// Letters of its own that an event in its place takes over.
    own_letters: String,
    added: String,
    modifiers: Modifiers,
    claims_leadership: bool,
}

impl Written {
    pub(crate) fn of(number: usize, item: Item<'_>) -> (Self, Spec<'_>) {
        let Item { typed, spec, modifiers, added, ends_in_letters, claims_leadership, .. } = item;
        let mut text = typed.to_owned();
        if !added.is_empty() {
            let has_letters = ends_in_letters && modifiers.letters().len() > added.len();
            if !has_letters && !text.ends_with('/') {
                text.push(':');
            }
            text.push_str(&added);
        }
        let mut own_letters = if ends_in_letters { modifiers.letters() } else { String::new() };
        added.chars().for_each(|letter| own_letters = own_letters.replacen(letter, "", 1));
        (Self { text, item: number, own_letters, added, modifiers, claims_leadership }, spec)
    }

    /// Takes what only the first event of a group may have from `leader`.
    pub(crate) fn lead(&mut self, leader: Modifiers) {
        self.modifiers.pinned |= leader.pinned;
        self.modifiers.exclusive |= leader.exclusive;
    }

    pub(crate) fn event(self, hit: Hit, group: Group) -> Explained {
        let text = match hit.text {
            None => self.text,
            Some(mut text) => {
                let letters = self.own_letters + &self.added;
                if !letters.is_empty() && !text.ends_with('/') {
                    text.push(':');
                }
                text + &letters
            }
        };
        let mut found = hit.found;
        let detail = found.as_mut().ok().and_then(|found| found.detail.take());
        let mut counts_in_threads = true;
        let (scale, unit, cpus, pmu) = match &mut found {
            Ok(found) => {
                let device = found.device.take();
                counts_in_threads = device.as_ref().is_none_or(|device| device.is_core);
                let cpus = device.as_ref().and_then(|device| device.cpus.clone());
                let pmu = device.map(|device| device.name.clone());
                (found.scale, std::mem::take(&mut found.unit), cpus, pmu)
            }
            Err(_) => (1.0, Cow::Borrowed(EVENTS), None, None),
        };
        let encoding = found.and_then(|found| found.encode(self.modifiers, self.claims_leadership));
        let encoding = encoding.map(Arc::new);
        Explained {
            event: Event {
                text,
                item: self.item,
                group,
                scale,
                unit,
                cpus,
                counts_in_threads,
                pmu,
                encoding,
            },
            detail: detail.map(|detail| *detail),
        }
    }
}
