use std::fmt;
use std::sync::Arc;

use crate::{Encoding, VirtualCounter, Width};

/// Most PMCs a description may have: 256 of hardware and 64 of software, as in perfmon2.
#[doc(alias = "PFM_MAX_PMCS")]
pub const MAX_PMCS: u16 = 320;
/// Most PMDs a description may have.
#[doc(alias = "PFM_MAX_PMDS")]
pub const MAX_PMDS: u16 = 320;

/// A logical control register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PmcIndex(pub u16);

/// A logical data register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PmdIndex(pub u16);

/// Which events of a set run together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// On its own: the kernel may run it without the others.
    #[default]
    Free,
    /// All or nothing with the other events of this number.
    Together(u16),
}

/// A control register: an encoded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmc {
    /// Which register.
    pub index: PmcIndex,
    /// What it holds; shared by the contexts of a session.
    pub encoding: Arc<Encoding>,
    /// Which events it runs together with.
    pub group: Group,
}

/// A data register: a 64-bit virtual counter, with what happens at its overflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmd {
    /// Which register.
    pub index: PmdIndex,
    /// The counter.
    pub counter: VirtualCounter,
    /// Value loaded at the last write or reset (`reg_last_reset_val`).
    pub last_reset_value: u64,
    /// Value loaded by a restart (`reg_long_reset`).
    pub long_reset: u64,
    /// Value loaded when monitoring goes on by itself (`reg_short_reset`).
    pub short_reset: u64,
    /// Bits that a random number may take from a reset value (`reg_random_mask`).
    pub random_mask: u64,
    /// The reset values are randomised (`PFM_REGFL_RANDOM`).
    pub random: bool,
    /// An overflow notifies (`PFM_REGFL_OVFL_NOTIFY`).
    pub notify: bool,
    /// PMDs reset with this one (`reg_reset_pmds`).
    pub reset_pmds: RegisterSet,
    /// PMDs recorded when this one overflows (`reg_smpl_pmds`).
    pub sample_pmds: RegisterSet,
    /// Opaque to the model, handed to the sampling format (`reg_smpl_eventid`).
    pub event_id: u64,
    /// Overflows before the set is left; 0 means never (`reg_ovfl_switch_cnt`).
    pub switch_count: u64,
    /// How many of them remain.
    pub switch_count_left: u64,
    /// The loaded plan has an event for it.
    pub(crate) planned: bool,
    /// The backend could not have that event.
    pub(crate) refused: bool,
    /// A fold saw the 64-bit value wrap, and no interrupt has been told of yet.
    pub(crate) overflow_pending: bool,
}

impl Pmd {
    /// A register at 0 over a raw counter of `width`.
    pub const fn new(index: PmdIndex, width: Width) -> Self {
        Self {
            index,
            counter: VirtualCounter::new(width),
            last_reset_value: 0,
            long_reset: 0,
            short_reset: 0,
            random_mask: 0,
            random: false,
            notify: false,
            reset_pmds: RegisterSet::EMPTY,
            sample_pmds: RegisterSet::EMPTY,
            event_id: 0,
            switch_count: 0,
            switch_count_left: 0,
            planned: false,
            refused: false,
            overflow_pending: false,
        }
    }
}

/// A set of register numbers: perfmon2's bit vectors of five 64-bit words.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RegisterSet([u64; 5]);

impl RegisterSet {
    /// No register.
    pub const EMPTY: Self = Self([0; 5]);

    /// The set with the bits of `words`: bit *i* of word *w* is register 64·w + i.
    pub const fn from_words(words: [u64; 5]) -> Self {
        Self(words)
    }

    /// The bits, as in [`from_words`](Self::from_words).
    pub const fn words(&self) -> [u64; 5] {
        self.0
    }

    /// Adds register `index`; numbers of 320 and up are no registers and are left out.
    pub const fn insert(&mut self, index: u16) {
        if index < MAX_PMDS {
            self.0[(index / 64) as usize] |= 1 << (index % 64);
        }
    }

    /// Whether register `index` is in the set.
    pub const fn contains(&self, index: u16) -> bool {
        index < MAX_PMDS && self.0[(index / 64) as usize] >> (index % 64) & 1 == 1
    }

    /// The registers of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Whether there is no register.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 5]
    }

    /// The registers in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(self.0).flat_map(|(place, word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then_some(left.trailing_zeros())?;
                left &= left - 1;
                u16::try_from(64 * place + bit).ok()
            })
        })
    }
}

impl FromIterator<u16> for RegisterSet {
    fn from_iter<I: IntoIterator<Item = u16>>(indices: I) -> Self {
        let mut set = Self::EMPTY;
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

impl fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
