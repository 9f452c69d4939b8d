use std::sync::Arc;

use perfmon_core::{
    Backend, Context, ContextFlags, Inherit, Interrupt, LoadPlan, ModelError, Orders, Origin,
    Outcome, Reading, Refusal, SetId, StartOn, Target,
};

use crate::{Loaded, Sim, SplitMix64};

/// Why a step of a [`Driver`] failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The model's rules forbid it.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The machine refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A context and a simulated machine, with the protocol between them: what a tool has to do around each
/// step of the model so that 64-bit values are exact.
///
/// Before a step that sets values it reads and folds; after it, it carries out the orders; then it arms
/// the counters for the next 64-bit overflow. Registers are written through
/// [`context_mut`](Self::context_mut); [`sync`](Self::sync) first if the context is loaded.
///
/// It takes all interrupts of its machine for its own, so have one driver a machine.
#[derive(Debug)]
pub struct Driver {
    sim: Sim,
    context: Context,
    random: SplitMix64,
    attached: Option<Attached>,
}

#[derive(Debug)]
struct Attached {
    plan: LoadPlan,
    loaded: Loaded,
    readings: Vec<Reading>,
}

impl Driver {
    /// A new context on `sim`; randomised resets follow from `seed`.
    ///
    /// # Errors
    /// Those of [`Context::new`].
    pub fn new(sim: &Sim, flags: ContextFlags, seed: u64) -> Result<Self, DriverError> {
        Ok(Self {
            sim: sim.clone(),
            context: Context::new(Arc::new(sim.description()), flags)?,
            random: SplitMix64::new(seed),
            attached: None,
        })
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The context, for steps that need nothing of the machine.
    pub fn context_mut(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Loads the context, and says which events could be had.
    ///
    /// # Errors
    /// Those of [`Context::load_set`]; the machine's refusal of the target, after which the context is
    /// unloaded.
    pub fn load(&mut self, target: Target, set: SetId) -> Result<Vec<Outcome>, DriverError> {
        let plan = self.context.load_set(target, Inherit::None, StartOn::Call, set)?;
        match self.sim.load(&plan) {
            Ok((loaded, outcomes)) => {
                self.context.accept(&outcomes);
                let readings = vec![Reading::default(); plan.events.len()];
                self.attached = Some(Attached { plan, loaded, readings });
                Ok(outcomes)
            }
            Err(refusal) => {
                self.context.undo_load();
                Err(refusal.into())
            }
        }
    }

    /// Starts the context, in `set` if there is one.
    ///
    /// # Errors
    /// Those of [`Context::start_set`].
    pub fn start(&mut self, set: Option<SetId>) -> Result<(), DriverError> {
        self.sync()?;
        let random = &mut || self.random.next_u64();
        let orders = self.context.start_set(set, random)?;
        self.obey(orders)
    }

    /// Stops the context.
    ///
    /// # Errors
    /// Those of [`Context::stop`].
    pub fn stop(&mut self) -> Result<(), DriverError> {
        let stop = Some(self.context.stop()?);
        self.obey(Orders { stop, start: None })
    }

    /// Restarts the context after a notification.
    ///
    /// # Errors
    /// Those of [`Context::restart`].
    pub fn restart(&mut self) -> Result<(), DriverError> {
        self.sync()?;
        let orders = self.context.restart(&mut || self.random.next_u64())?;
        self.obey(orders)
    }

    /// Unloads the context with its last counts.
    ///
    /// # Errors
    /// The machine's own.
    pub fn unload(&mut self) -> Result<(), DriverError> {
        self.sync()?;
        self.context.unload();
        self.attached = None;
        Ok(())
    }

    /// Reads the counters of a loaded context and folds them: one reading an event of the plan, in its
    /// order, with 64-bit values.
    ///
    /// # Errors
    /// The machine's own.
    pub fn sync(&mut self) -> Result<&[Reading], DriverError> {
        let Some(attached) = &mut self.attached else { return Ok(&[]) };
        self.sim.read(&mut attached.loaded, &mut attached.readings)?;
        self.context.fold(&mut attached.readings);
        Ok(&attached.readings)
    }

    /// Lets `duration_ns` pass, deals with interrupts, timeouts of sets and the target's end on the way,
    /// and returns what followed from the interrupts. Nobody restarts a context that is masked meanwhile.
    ///
    /// # Errors
    /// The machine's own.
    pub fn run_for(&mut self, duration_ns: u64) -> Result<Vec<Interrupt>, DriverError> {
        let end_ns = self.sim.now_ns().saturating_add(duration_ns);
        let mut interrupts = Vec::new();
        loop {
            self.sync()?;
            self.notice_end();
            let orders = self.context.timeout(&mut || self.random.next_u64());
            self.obey(orders)?;
            let before_ns = self.sim.now_ns();
            if before_ns >= end_ns {
                break;
            }
            self.arm();
            let interrupt = self.sim.run_until(self.next_stop_ns(end_ns));
            self.context.elapse(self.sim.now_ns() - before_ns);
            let Some(interrupt) = interrupt else { continue };
            self.sync()?;
            let random = &mut || self.random.next_u64();
            let outcome = self.context.interrupt(&interrupt.pmds, Origin::default(), random);
            self.obey(outcome.orders)?;
            interrupts.push(outcome);
        }
        Ok(interrupts)
    }

    fn obey(&mut self, orders: Orders) -> Result<(), DriverError> {
        let Some(attached) = &mut self.attached else { return Ok(()) };
        if let Some(set) = orders.stop {
            self.sim.stop(&mut attached.loaded, set)?;
        }
        if let Some(set) = orders.start {
            self.sim.start(&mut attached.loaded, set)?;
        }
        Ok(())
    }

    /// Arms each counter of the active set for its next 64-bit overflow.
    fn arm(&mut self) {
        let Some(attached) = &mut self.attached else { return };
        for (place, event) in attached.plan.events.iter().enumerate() {
            let is_active = event.set == self.context.active_set();
            let value = self.context.read_pmd(event.set, event.pmd).map_or(0, |pmd| pmd.value);
            let after = is_active.then_some(value.wrapping_neg());
            self.sim.set_alarm(&mut attached.loaded, place, after);
        }
    }

    fn notice_end(&mut self) {
        let now_ns = self.sim.now_ns();
        let exit_ns = self.attached.as_ref().and_then(|a| self.sim.exit_ns(&a.plan.target));
        if exit_ns.is_some_and(|exit_ns| exit_ns <= now_ns) {
            self.context.target_ended();
            self.attached = None;
        }
    }

    /// The first of `end_ns`, the target's end and the active set's timeout.
    fn next_stop_ns(&self, end_ns: u64) -> u64 {
        let target = self.attached.as_ref().map(|attached| &attached.plan.target);
        let exit_ns = target.and_then(|target| self.sim.exit_ns(target));
        let info = self.context.set_info(self.context.active_set()).ok();
        let timed = info.filter(|info| self.context.is_counting() && info.policy.timeout_ns() > 0);
        let timeout_ns = timed.map(|info| self.sim.now_ns().saturating_add(info.timeout_left_ns));
        exit_ns.into_iter().chain(timeout_ns).fold(end_ns, u64::min)
    }
}
