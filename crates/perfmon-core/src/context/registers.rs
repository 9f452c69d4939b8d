use std::sync::Arc;

use super::{Context, State};
use crate::{
    Encoding, Group, ModelError, Pmc, PmcIndex, Pmd, PmdDescription, PmdIndex, RegisterSet, SetId,
};

/// All that a write gives a PMD: its value, and what happens at its overflow.
///
/// The default is value 0 and nothing at overflow.
#[doc(alias = "pfarg_pmd_t")]
#[doc(alias = "pfm_write_pmds")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmdAttributes {
    /// The 64-bit value, never randomised; a period of *p* events is written as `-p`.
    #[doc(alias = "reg_value")]
    pub value: u64,
    /// The value that a restart loads.
    #[doc(alias = "reg_long_reset")]
    pub long_reset: u64,
    /// The value that is loaded when monitoring goes on by itself.
    #[doc(alias = "reg_short_reset")]
    pub short_reset: u64,
    /// An overflow notifies.
    #[doc(alias = "PFM_REGFL_OVFL_NOTIFY")]
    pub notify: bool,
    /// The reset values are randomised.
    #[doc(alias = "PFM_REGFL_RANDOM")]
    pub random: bool,
    /// Bits that a random number may take from a reset value.
    #[doc(alias = "reg_random_mask")]
    pub random_mask: u64,
    /// PMDs reset with this one. They come into use.
    #[doc(alias = "reg_reset_pmds")]
    pub reset_pmds: RegisterSet,
    /// PMDs recorded when this one overflows. They come into use.
    #[doc(alias = "reg_smpl_pmds")]
    pub sample_pmds: RegisterSet,
    /// Opaque to the model, handed to the sampling format.
    #[doc(alias = "reg_smpl_eventid")]
    pub event_id: u64,
    /// Overflows before the set is left; 0 means never.
    #[doc(alias = "reg_ovfl_switch_cnt")]
    pub switch_count: u64,
}

/// What a read says of a PMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmdValue {
    /// The 64-bit value as of the last [`Context::fold`].
    #[doc(alias = "reg_value")]
    pub value: u64,
    /// The value loaded at the last write or reset.
    #[doc(alias = "reg_last_reset_val")]
    pub last_reset_value: u64,
    /// Overflows that remain before the set is left.
    #[doc(alias = "reg_ovfl_switch_cnt")]
    pub switch_count_left: u64,
}

impl Context {
    /// Writes a PMC: the event that its PMD counts, and which events it runs together with.
    ///
    /// perfmon2 takes it at any time; here a loaded context refuses it, because a backend can't put
    /// another event in the place of one that it holds.
    ///
    /// # Errors
    /// [`ModelError::Busy`] once loaded; [`ModelError::NoSuchPmc`], [`ModelError::NoSuchSet`].
    #[doc(alias = "pfm_write_pmcs")]
    pub fn write_pmc(
        &mut self,
        set: SetId,
        index: PmcIndex,
        encoding: Arc<Encoding>,
        group: Group,
    ) -> Result<(), ModelError> {
        self.require_unloaded("write_pmc")?;
        if !self.description.has_pmc(index) {
            return Err(ModelError::NoSuchPmc(index));
        }
        let pmc = Pmc { index, encoding, group };
        let pmcs = &mut self.set_mut(set)?.pmcs;
        match pmcs.binary_search_by_key(&index, |pmc| pmc.index) {
            Ok(place) => pmcs[place] = pmc,
            Err(place) => pmcs.insert(place, pmc),
        }
        Ok(())
    }

    /// Writes the value of a PMD, which comes into use, and leaves its other attributes as they are.
    ///
    /// Otherwise as [`write_pmd_attributes`](Self::write_pmd_attributes).
    ///
    /// # Errors
    /// [`ModelError::NoSuchPmd`], [`ModelError::NoSuchSet`], [`ModelError::Busy`].
    pub fn write_pmd(&mut self, set: SetId, index: PmdIndex, value: u64) -> Result<(), ModelError> {
        let description = self.describe(index)?;
        self.use_pmds(set, &RegisterSet::from_iter([index.0]))?;
        if !description.read_only {
            self.pmd_mut(set, index)?.load(value);
        }
        Ok(())
    }

    /// Writes all of a PMD: perfmon2's `pfm_write_pmds`. It comes into use in this set, with the PMDs
    /// that it names, which start at 0.
    ///
    /// An overflow pending on it is forgotten. A read-only PMD keeps its value. On a loaded context the
    /// value holds as of the last [`fold`](Context::fold).
    ///
    /// # Errors
    /// [`ModelError::NoSuchPmd`] for it or a PMD that it names, [`ModelError::NoSuchSet`],
    /// [`ModelError::ReadOnly`] for a PMD that is to be reset; [`ModelError::Busy`] on a loaded context if
    /// a PMD comes into use whose PMC holds an event, which the backend was not asked for.
    #[doc(alias = "pfm_write_pmds")]
    pub fn write_pmd_attributes(
        &mut self,
        set: SetId,
        index: PmdIndex,
        attributes: &PmdAttributes,
    ) -> Result<(), ModelError> {
        let description = self.describe(index)?;
        self.set(set)?;
        for named in attributes.sample_pmds.iter() {
            self.describe(PmdIndex(named))?;
        }
        for named in attributes.reset_pmds.iter().map(PmdIndex) {
            if self.describe(named)?.read_only {
                return Err(ModelError::ReadOnly(named));
            }
        }
        let named = attributes.sample_pmds.union(&attributes.reset_pmds);
        self.use_pmds(set, &named.union(&RegisterSet::from_iter([index.0])))?;
        let pmd = self.pmd_mut(set, index)?;
        if !description.read_only {
            pmd.load(attributes.value);
        }
        pmd.set_attributes(attributes);
        Ok(())
    }

    /// Reads a PMD as of the last [`fold`](Context::fold), in any state.
    ///
    /// # Errors
    /// [`ModelError::NoSuchPmd`] if it does not exist or is not in use in that set;
    /// [`ModelError::NoSuchSet`].
    #[doc(alias = "pfm_read_pmds")]
    pub fn read_pmd(&self, set: SetId, index: PmdIndex) -> Result<PmdValue, ModelError> {
        self.describe(index)?;
        let pmd = self.set(set)?.pmd(index).ok_or(ModelError::NoSuchPmd(index))?;
        Ok(PmdValue {
            value: pmd.counter.value(),
            last_reset_value: pmd.last_reset_value,
            switch_count_left: pmd.switch_count_left,
        })
    }

    fn describe(&self, index: PmdIndex) -> Result<PmdDescription, ModelError> {
        self.description.pmd(index).copied().ok_or(ModelError::NoSuchPmd(index))
    }

    fn pmd_mut(&mut self, set: SetId, index: PmdIndex) -> Result<&mut Pmd, ModelError> {
        self.set_mut(set)?.pmd_mut(index).ok_or(ModelError::NoSuchPmd(index))
    }

    /// Marks PMDs used, all or none.
    fn use_pmds(&mut self, set: SetId, indices: &RegisterSet) -> Result<(), ModelError> {
        let state = self.state;
        let event_set = self.set(set)?;
        let new = indices.iter().map(PmdIndex).filter(|&index| event_set.pmd(index).is_none());
        let mut new_pmds = Vec::new();
        for index in new {
            let description = self.describe(index)?;
            if state != State::Unloaded && event_set.pmc(description.pmc).is_some() {
                let step = "the first use of a PMD with an event";
                return Err(ModelError::Busy { step, state });
            }
            new_pmds.push(Pmd::new(index, description.width));
        }
        let pmds = &mut self.set_mut(set)?.pmds;
        pmds.extend(new_pmds);
        pmds.sort_unstable_by_key(|pmd| pmd.index);
        Ok(())
    }
}

impl Pmd {
    /// Sets the value, as a write or a reset does.
    pub(super) fn load(&mut self, value: u64) {
        self.counter.write(value);
        self.last_reset_value = value;
        self.overflow_pending = false;
    }

    fn set_attributes(&mut self, attributes: &PmdAttributes) {
        // Field by field, so that a new attribute can't be forgotten.
        let PmdAttributes {
            value: _,
            long_reset,
            short_reset,
            notify,
            random,
            random_mask,
            reset_pmds,
            sample_pmds,
            event_id,
            switch_count,
        } = *attributes;
        self.long_reset = long_reset;
        self.short_reset = short_reset;
        self.notify = notify;
        self.random = random;
        self.random_mask = random_mask;
        self.reset_pmds = reset_pmds;
        self.sample_pmds = sample_pmds;
        self.event_id = event_id;
        self.switch_count = switch_count;
        self.switch_count_left = switch_count;
    }
}
