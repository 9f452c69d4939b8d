//! perfmon2's rules once more, written as plainly as can be: no raw counters, no interrupts, no plans.
//! Time goes on nanosecond by nanosecond, values are wide enough never to wrap unseen.

use std::collections::{BTreeMap, VecDeque};

use perfmon_core::*;
use perfmon_sim::{Script, SplitMix64};

pub(crate) const WRAP: u128 = 1 << 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Busy,
    NotLoaded,
    NoSet,
    NoTimeout,
    NoRestart,
    NoTarget,
    Conflict,
}

#[derive(Clone, Debug)]
pub(crate) struct RefPmd {
    pub(crate) value: u128,
    pub(crate) last_reset_value: u64,
    pub(crate) switches_left: u64,
    attributes: PmdAttributes,
    /// The event that it counts in this load.
    counts: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct RefSet {
    pub(crate) policy: SwitchPolicy,
    pub(crate) runs: u64,
    pub(crate) duration_ns: u64,
    pub(crate) left_ns: u64,
    pub(crate) overflowed: Vec<u16>,
    waiting: Vec<u16>,
    pmcs: BTreeMap<u16, u64>,
    pub(crate) pmds: BTreeMap<u16, RefPmd>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefMessage {
    Overflow(u16, Vec<u16>),
    End,
}

#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) state: State,
    pub(crate) started: bool,
    pub(crate) active: u16,
    pub(crate) sets: BTreeMap<u16, RefSet>,
    pub(crate) messages: VecDeque<RefMessage>,
    flags: ContextFlags,
    is_self: bool,
    grants: u32,
    deferred: bool,
    now_ns: u64,
    exit_ns: u64,
    scripts: Vec<Script>,
    random: SplitMix64,
    /// How often each kind of thing happened.
    pub(crate) happened: BTreeMap<&'static str, u32>,
}

impl Reference {
    pub(crate) fn new(flags: ContextFlags, scripts: Vec<Script>, exit_ns: u64, seed: u64) -> Self {
        let mut reference = Self {
            state: State::Unloaded,
            started: false,
            active: 0,
            sets: BTreeMap::new(),
            messages: VecDeque::new(),
            flags,
            is_self: false,
            grants: 0,
            deferred: false,
            now_ns: 0,
            exit_ns,
            scripts,
            random: SplitMix64::new(seed),
            happened: BTreeMap::new(),
        };
        reference.create(0, SwitchPolicy::Stay).unwrap();
        reference
    }

    fn note(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    fn counting(&self) -> bool {
        self.state == State::Loaded && self.started
    }

    fn unloaded(&self) -> Result<(), Refused> {
        if self.state == State::Unloaded { Ok(()) } else { Err(Refused::Busy) }
    }

    fn set(&mut self, set: u16) -> Result<&mut RefSet, Refused> {
        self.sets.get_mut(&set).ok_or(Refused::NoSet)
    }

    pub(crate) fn create(&mut self, set: u16, policy: SwitchPolicy) -> Result<(), Refused> {
        self.unloaded()?;
        let left_ns = match policy {
            SwitchPolicy::Timeout { timeout_ns: 0, .. } => return Err(Refused::NoTimeout),
            SwitchPolicy::Timeout { timeout_ns, .. } => timeout_ns,
            _ => 0,
        };
        let pmds = self.sets.remove(&set).map(|old| old.pmds).unwrap_or_default();
        let new = RefSet {
            policy,
            runs: 0,
            duration_ns: 0,
            left_ns,
            overflowed: vec![],
            waiting: vec![],
            pmcs: BTreeMap::new(),
            pmds,
        };
        self.sets.insert(set, new);
        Ok(())
    }

    pub(crate) fn delete(&mut self, set: u16) -> Result<(), Refused> {
        self.unloaded()?;
        self.sets.remove(&set).map(drop).ok_or(Refused::NoSet)
    }

    pub(crate) fn write_pmc(&mut self, set: u16, pmc: u16, event: u64) -> Result<(), Refused> {
        self.unloaded()?;
        self.set(set)?.pmcs.insert(pmc, event);
        Ok(())
    }

    pub(crate) fn write_pmd(
        &mut self,
        set: u16,
        pmd: u16,
        new: &PmdAttributes,
    ) -> Result<(), Refused> {
        let loaded = self.state != State::Unloaded;
        let set = self.set(set)?;
        let used: Vec<u16> =
            [pmd].into_iter().chain(new.sample_pmds.iter()).chain(new.reset_pmds.iter()).collect();
        let is_new_event = |pmd: &u16| !set.pmds.contains_key(pmd) && set.pmcs.contains_key(pmd);
        if loaded && used.iter().any(is_new_event) {
            return Err(Refused::Busy);
        }
        for used in used {
            set.pmds.entry(used).or_insert(RefPmd {
                value: 0,
                last_reset_value: 0,
                switches_left: 0,
                attributes: PmdAttributes::default(),
                counts: None,
            });
        }
        let pmd = set.pmds.get_mut(&pmd).unwrap();
        pmd.value = u128::from(new.value);
        pmd.last_reset_value = new.value;
        pmd.switches_left = new.switch_count;
        pmd.attributes = *new;
        Ok(())
    }

    pub(crate) fn load(&mut self, is_self: bool, set: u16) -> Result<(), Refused> {
        self.unloaded()?;
        self.set(set)?;
        if self.flags.notify_block && is_self {
            return Err(Refused::Conflict);
        }
        self.messages.clear();
        for set in self.sets.values_mut() {
            set.overflowed.clear();
            set.waiting.clear();
            set.refill();
            for (index, pmd) in &mut set.pmds {
                pmd.counts = set.pmcs.get(index).copied();
            }
        }
        if self.now_ns >= self.exit_ns {
            return Err(Refused::NoTarget);
        }
        self.set(set)?.runs += 1;
        self.note(if set == 0 { "load" } else { "load with another set" });
        (self.state, self.active, self.is_self) = (State::Loaded, set, is_self);
        Ok(())
    }

    pub(crate) fn start(&mut self, set: Option<u16>) -> Result<(), Refused> {
        if self.state == State::Unloaded {
            return Err(Refused::NotLoaded);
        }
        let new = set.unwrap_or(self.active);
        self.set(new)?;
        if new != self.active {
            self.note("start with another set");
            self.activate(new, true);
        }
        self.started = true;
        if self.state == State::Masked {
            self.note("start while masked");
        } else {
            let set = self.set(new)?;
            set.left_ns = set.policy.timeout_ns();
        }
        Ok(())
    }

    pub(crate) fn stop(&mut self) -> Result<(), Refused> {
        if self.state == State::Unloaded {
            return Err(Refused::NotLoaded);
        }
        self.started = false;
        Ok(())
    }

    pub(crate) fn restart(&mut self) -> Result<(), Refused> {
        if self.state != State::Masked || self.grants == 0 {
            return Err(Refused::NoRestart);
        }
        self.grants -= 1;
        if self.deferred {
            self.note("restart with a switch");
            self.deferred = false;
            self.activate(self.next_set(), true);
        } else {
            self.note("restart");
            self.reset(true);
        }
        self.state = State::Loaded;
        Ok(())
    }

    pub(crate) fn unload(&mut self) {
        self.state = State::Unloaded;
        self.started = false;
        self.deferred = false;
        self.grants = 0;
    }

    pub(crate) fn run(&mut self, duration_ns: u64) {
        let end_ns = self.now_ns + duration_ns;
        loop {
            if self.state != State::Unloaded && self.now_ns >= self.exit_ns {
                self.note("end");
                self.unload();
                if !self.is_self {
                    self.messages.push_back(RefMessage::End);
                }
            }
            let set = self.sets.get(&self.active);
            let due = set.is_some_and(|set| set.policy.timeout_ns() > 0 && set.left_ns == 0);
            if self.counting() && due {
                self.note("switch by time");
                self.activate(self.next_set(), false);
            }
            if self.now_ns == end_ns {
                return;
            }
            if self.counting() {
                self.count();
            }
            self.now_ns += 1;
        }
    }

    /// One nanosecond of counting.
    fn count(&mut self) {
        let now_ns = self.now_ns;
        let scripts = &self.scripts;
        let set = self.sets.get_mut(&self.active).unwrap();
        set.duration_ns += 1;
        set.left_ns = set.left_ns.saturating_sub(1);
        let mut overflowed = vec![];
        for (&index, pmd) in &mut set.pmds {
            let Some(event) = pmd.counts else { continue };
            let script = &scripts[usize::try_from(event).unwrap()];
            let (old, new) =
                (script.occurrences_until(now_ns), script.occurrences_until(now_ns + 1));
            pmd.value += u128::from(new - old);
            if pmd.value == WRAP && new > old {
                pmd.value = 0;
                overflowed.push(index);
            }
        }
        if !overflowed.is_empty() {
            self.overflow(overflowed);
        }
    }

    fn overflow(&mut self, overflowed: Vec<u16>) {
        let active = self.active;
        let set = self.sets.get_mut(&active).unwrap();
        let (mut notify, mut switch) = (false, false);
        set.waiting.clone_from(&overflowed);
        for index in &overflowed {
            let pmd = set.pmds.get_mut(index).unwrap();
            notify |= pmd.attributes.notify;
            set.waiting.extend(pmd.attributes.reset_pmds.iter());
            if set.policy == SwitchPolicy::Overflow && pmd.switches_left > 0 {
                pmd.switches_left -= 1;
                switch |= pmd.switches_left == 0;
            }
        }
        set.overflowed.clone_from(&overflowed);
        if overflowed.len() > 1 {
            self.note("several overflows at once");
        }
        if switch && !notify {
            self.note("switch by overflow");
            self.activate(self.next_set(), false);
            return;
        }
        self.state = State::Masked;
        self.deferred = switch;
        if !notify {
            self.note("saturation");
        } else if self.flags.no_overflow_message {
            self.note("notification without message");
            self.grants += 1;
        } else if self.messages.len() < 8 {
            self.note("notification");
            self.messages.push_back(RefMessage::Overflow(active, overflowed));
            self.grants += 1;
        } else {
            self.note("full queue");
        }
    }

    fn next_set(&self) -> u16 {
        let ids: Vec<u16> = self.sets.keys().copied().collect();
        let place = ids.iter().position(|&id| id == self.active).unwrap();
        ids[(place + 1) % ids.len()]
    }

    fn activate(&mut self, set: u16, long: bool) {
        self.active = set;
        let set = self.sets.get_mut(&set).unwrap();
        set.runs += 1;
        set.refill();
        self.reset(long);
    }

    fn reset(&mut self, long: bool) {
        let set = self.sets.get_mut(&self.active).unwrap();
        for (index, pmd) in &mut set.pmds {
            if set.waiting.contains(index) {
                let attributes = &pmd.attributes;
                let value = if long { attributes.long_reset } else { attributes.short_reset };
                let taken = if attributes.random {
                    self.random.next_u64() & attributes.random_mask
                } else {
                    0
                };
                pmd.last_reset_value = value.wrapping_sub(taken);
                pmd.value = u128::from(pmd.last_reset_value);
            }
        }
        if !set.waiting.is_empty() {
            set.waiting.clear();
            self.note(if long { "long reset" } else { "short reset" });
        }
    }
}

impl RefSet {
    /// What becoming active, or a load, gives a set anew.
    fn refill(&mut self) {
        self.left_ns = self.policy.timeout_ns();
        for pmd in self.pmds.values_mut() {
            pmd.switches_left = pmd.attributes.switch_count;
        }
    }
}
