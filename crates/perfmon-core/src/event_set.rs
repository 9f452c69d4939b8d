use crate::{Pmc, PmcIndex, Pmd, PmdIndex, RegisterSet};

/// The number of an event set, chosen by the user; sets run in increasing order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u16);

/// When a set is left for the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwitchPolicy {
    /// Never.
    #[default]
    Stay,
    /// After this many nanoseconds of active time.
    #[doc(alias = "PFM_SETFL_TIME_SWITCH")]
    Timeout {
        /// The time, at least 1.
        timeout_ns: u64,
        /// Each residence draws its own time, from half of `timeout_ns` to half as much again: against lockstep with the
        /// target's phases.
        randomised: bool,
    },
    /// After a PMD's number of overflows; the number is the PMD's.
    #[doc(alias = "PFM_SETFL_OVFL_SWITCH")]
    Overflow,
    /// Not at all: its events count beside whichever set is active, and it takes no turn.
    Always,
}

impl SwitchPolicy {
    /// The timeout in nanoseconds; 0 if the set is not left by time.
    pub const fn timeout_ns(self) -> u64 {
        match self {
            Self::Timeout { timeout_ns, .. } => timeout_ns,
            Self::Stay | Self::Overflow | Self::Always => 0,
        }
    }

    /// The time of one residence, in nanoseconds; 0 if the set is not left by time.
    pub(crate) fn draw_timeout_ns(self, random: &mut dyn FnMut() -> u64) -> u64 {
        match self {
            Self::Timeout { timeout_ns, randomised: true } => (timeout_ns - timeout_ns / 2)
                .saturating_add(random() % timeout_ns.saturating_add(1)),
            policy => policy.timeout_ns(),
        }
    }
}

/// An event set: a full copy of the registers, of which one set is active at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSet {
    /// Its number.
    pub id: SetId,
    /// When it is left.
    pub policy: SwitchPolicy,
    /// Times the set became active.
    pub runs: u64,
    /// Nanoseconds for which the set was active.
    pub active_duration_ns: u64,
    /// PMDs of the set's last 64-bit overflow.
    pub overflowed_pmds: RegisterSet,
    pub(crate) pmcs: Vec<Pmc>,
    pub(crate) pmds: Vec<Pmd>,
    /// PMDs of the last overflow, with those they reset, until they are reset.
    pub(crate) pending_reset: RegisterSet,
    pub(crate) timeout_left_ns: u64,
}

impl EventSet {
    /// An empty set.
    pub const fn new(id: SetId, policy: SwitchPolicy) -> Self {
        Self {
            id,
            policy,
            runs: 0,
            active_duration_ns: 0,
            overflowed_pmds: RegisterSet::EMPTY,
            pmcs: Vec::new(),
            pmds: Vec::new(),
            pending_reset: RegisterSet::EMPTY,
            timeout_left_ns: policy.timeout_ns(),
        }
    }

    /// The PMCs in use, in increasing order.
    pub fn pmcs(&self) -> &[Pmc] {
        &self.pmcs
    }

    /// The PMDs in use, in increasing order.
    pub fn pmds(&self) -> &[Pmd] {
        &self.pmds
    }

    /// The PMC `index`, if it is in use.
    pub fn pmc(&self, index: PmcIndex) -> Option<&Pmc> {
        let place = self.pmcs.binary_search_by_key(&index, |pmc| pmc.index).ok()?;
        self.pmcs.get(place)
    }

    /// The PMD `index`, if it is in use.
    pub fn pmd(&self, index: PmdIndex) -> Option<&Pmd> {
        let place = self.pmds.binary_search_by_key(&index, |pmd| pmd.index).ok()?;
        self.pmds.get(place)
    }

    /// Nanoseconds before the set is left; 0 if it is not left by time.
    pub const fn timeout_left_ns(&self) -> u64 {
        self.timeout_left_ns
    }

    pub(crate) fn pmd_mut(&mut self, index: PmdIndex) -> Option<&mut Pmd> {
        let place = self.pmds.binary_search_by_key(&index, |pmd| pmd.index).ok()?;
        self.pmds.get_mut(place)
    }
}
