use super::{Context, Orders, RandomSource};
use crate::{EventSet, ModelError, RegisterSet, SetId, SwitchPolicy};

/// What is known of an event set.
#[doc(alias = "pfarg_setinfo_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetInfo {
    /// Its number.
    pub id: SetId,
    /// When it is left.
    #[doc(alias = "set_flags")]
    pub policy: SwitchPolicy,
    /// PMDs of its last 64-bit overflow.
    #[doc(alias = "set_ovfl_pmds")]
    pub overflowed_pmds: RegisterSet,
    /// Times it became active.
    #[doc(alias = "set_runs")]
    pub runs: u64,
    /// Nanoseconds left before it is left; 0 if that is not by time.
    #[doc(alias = "set_timeout")]
    pub timeout_left_ns: u64,
    /// Nanoseconds for which it was active.
    #[doc(alias = "set_act_duration")]
    pub active_duration_ns: u64,
    /// PMCs that the context may use.
    #[doc(alias = "set_avail_pmcs")]
    pub available_pmcs: RegisterSet,
    /// PMDs that the context may use.
    #[doc(alias = "set_avail_pmds")]
    pub available_pmds: RegisterSet,
}

/// Which reset value a PMD is loaded with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reset {
    Long,
    Short,
}

impl Context {
    /// Creates an event set. One that exists is changed instead: it gets the policy, its runs and duration
    /// start at 0 again, and its PMCs hold no event any more; its PMDs stay.
    ///
    /// # Errors
    /// [`ModelError::Busy`] once loaded; [`ModelError::ZeroTimeout`].
    #[doc(alias = "pfm_create_evtsets")]
    pub fn create_set(&mut self, id: SetId, policy: SwitchPolicy) -> Result<(), ModelError> {
        self.require_unloaded("create_set")?;
        if matches!(policy, SwitchPolicy::Timeout { timeout_ns: 0, .. }) {
            return Err(ModelError::ZeroTimeout(id));
        }
        let set = EventSet::new(id, policy);
        match self.sets.binary_search_by_key(&id, |set| set.id) {
            Ok(place) => {
                let pmds = std::mem::take(&mut self.sets[place].pmds);
                self.sets[place] = EventSet { pmds, ..set };
            }
            Err(place) => self.sets.insert(place, set),
        }
        Ok(())
    }

    /// Deletes an event set; set 0 is no exception.
    ///
    /// # Errors
    /// [`ModelError::Busy`] once loaded; [`ModelError::NoSuchSet`].
    #[doc(alias = "pfm_delete_evtsets")]
    pub fn delete_set(&mut self, id: SetId) -> Result<(), ModelError> {
        self.require_unloaded("delete_set")?;
        let place = self.place(id)?;
        self.sets.remove(place);
        Ok(())
    }

    /// What is known of an event set, in any state.
    ///
    /// # Errors
    /// [`ModelError::NoSuchSet`].
    #[doc(alias = "pfm_getinfo_evtsets")]
    pub fn set_info(&self, id: SetId) -> Result<SetInfo, ModelError> {
        let set = self.set(id)?;
        Ok(SetInfo {
            id,
            policy: set.policy,
            overflowed_pmds: set.overflowed_pmds,
            runs: set.runs,
            timeout_left_ns: set.timeout_left_ns,
            active_duration_ns: set.active_duration_ns,
            available_pmcs: self.description.pmcs(),
            available_pmds: self.description.pmds(),
        })
    }

    /// Tells the model that the active set counted for `active_ns` more nanoseconds. Call it before a
    /// step that ends the counting; while nothing counts, no time is active and nothing is added.
    pub fn elapse(&mut self, active_ns: u64) {
        if !self.is_counting() {
            return;
        }
        if let Ok(set) = self.set_mut(self.active) {
            set.active_duration_ns = set.active_duration_ns.saturating_add(active_ns);
            set.timeout_left_ns = set.timeout_left_ns.saturating_sub(active_ns);
        }
    }

    /// Leaves the active set for the next if its timeout has run out while it counts (which
    /// [`elapse`](Self::elapse) tells), and says what the backend has to do. PMDs of the next set that
    /// wait for a reset get their short reset values.
    pub fn timeout(&mut self, random: RandomSource<'_>) -> Orders {
        let is_due = |set: &EventSet| {
            matches!(set.policy, SwitchPolicy::Timeout { .. }) && set.timeout_left_ns == 0
        };
        if self.is_counting() && self.set(self.active).is_ok_and(is_due) {
            self.switch(Reset::Short, random)
        } else {
            Orders::default()
        }
    }

    /// As [`timeout`](Self::timeout) once the active set's time is up, as the backend's clock says, and not as far as
    /// [`elapse`](Self::elapse) was told.
    pub fn expire(&mut self, random: RandomSource<'_>) -> Orders {
        if let Ok(set) = self.set_mut(self.active) {
            set.timeout_left_ns = 0;
        }
        self.timeout(random)
    }

    /// Makes the next set active, in turn; with one set only, that set anew.
    /// The sets that take turns, in their order.
    pub(super) fn turn_takers(&self) -> impl Iterator<Item = SetId> {
        self.sets.iter().filter(|set| set.policy != SwitchPolicy::Always).map(|set| set.id)
    }

    /// The sets whose events count beside whichever set is active.
    pub fn always_sets(&self) -> impl Iterator<Item = SetId> {
        self.sets.iter().filter(|set| set.policy == SwitchPolicy::Always).map(|set| set.id)
    }

    pub(super) fn switch(&mut self, reset: Reset, random: RandomSource<'_>) -> Orders {
        let old = self.active;
        let taking_turns = || self.turn_takers();
        let Some(new) = taking_turns().find(|&id| id > old).or(taking_turns().next()) else {
            return Orders::default();
        };
        if self.activate(new, reset, random).is_err() || new == old {
            return Orders::default();
        }
        Orders { stop: Some(old), start: Some(new) }
    }

    pub(super) fn activate(
        &mut self,
        id: SetId,
        reset: Reset,
        random: RandomSource<'_>,
    ) -> Result<(), ModelError> {
        let set = self.set_mut(id)?;
        set.begin_residence(random);
        set.runs += 1;
        set.reload_pending(reset, random);
        self.active = id;
        Ok(())
    }
}

impl EventSet {
    pub(super) fn begin_residence(&mut self, random: RandomSource<'_>) {
        self.reload_timeout(random);
        self.forget_overflows();
        for pmd in &mut self.pmds {
            pmd.switch_count_left = pmd.switch_count;
        }
    }

    pub(super) fn reload_timeout(&mut self, random: RandomSource<'_>) {
        self.timeout_left_ns = self.policy.draw_timeout_ns(random);
    }

    pub(super) fn forget_overflows(&mut self) {
        for pmd in &mut self.pmds {
            pmd.overflow_pending = false;
        }
    }

    /// Gives the PMDs that wait for a reset their reset values.
    pub(super) fn reload_pending(&mut self, reset: Reset, random: RandomSource<'_>) {
        let pending = std::mem::take(&mut self.pending_reset);
        for pmd in self.pmds.iter_mut().filter(|pmd| pending.contains(pmd.index.0)) {
            let value = match reset {
                Reset::Long => pmd.long_reset,
                Reset::Short => pmd.short_reset,
            };
            let taken = if pmd.random { random() & pmd.random_mask } else { 0 };
            pmd.load(value.wrapping_sub(taken));
        }
    }
}
