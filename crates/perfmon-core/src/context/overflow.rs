use super::sets::Reset;
use super::{Context, Orders, State};
use crate::{Description, EventSet, ModelError, PmdIndex, RegisterSet, SetId, SwitchPolicy};

/// Where random numbers for [randomised](crate::PmdAttributes::random) resets come from: all 64 bits
/// random, asked once for each such PMD that is reset.
pub type RandomSource<'a> = &'a mut dyn FnMut() -> u64;

/// Most overflow messages that wait to be read.
pub const MESSAGE_QUEUE_DEPTH: usize = 8;

/// Where an interrupt hit; opaque to the model, handed on in the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The process.
    pub process: u32,
    /// The thread.
    #[doc(alias = "msg_ovfl_tid")]
    pub thread: u32,
    /// The CPU.
    #[doc(alias = "msg_ovfl_cpu")]
    pub cpu: u16,
    /// The address of the interrupted instruction.
    #[doc(alias = "msg_ovfl_ip")]
    pub ip: u64,
}

/// What a context tells its tool.
#[doc(alias = "pfarg_msg_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A PMD that notifies has overflowed.
    #[doc(alias = "PFM_MSG_OVFL")]
    Overflow(OverflowMessage),
    /// The monitored thread has ended.
    #[doc(alias = "PFM_MSG_END")]
    End,
}

/// The message of an overflow.
#[doc(alias = "pfarg_ovfl_msg_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverflowMessage {
    /// The set that was active.
    #[doc(alias = "msg_active_set")]
    pub set: SetId,
    /// All PMDs that overflowed 64 bits in this interrupt, whether they notify or not.
    #[doc(alias = "msg_ovfl_pmds")]
    pub overflowed_pmds: RegisterSet,
    /// Where it hit.
    pub origin: Origin,
}

/// What follows from a counter interrupt. Nothing, in its default.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// PMDs that overflowed 64 bits.
    pub overflowed_pmds: RegisterSet,
    /// The context is masked now: its counters are to be frozen.
    pub mask: bool,
    /// The tool is to be woken and signalled; unless the context queues none, a message waits.
    pub notify: bool,
    /// The monitored thread is to be blocked until restart.
    pub block: bool,
    /// What the backend has to do.
    pub orders: Orders,
}

/// What an interrupt does to a set.
struct Overflow {
    pmds: RegisterSet,
    notify: bool,
    switch: bool,
}

impl Context {
    /// Tells of a counter interrupt of `interrupted` PMDs in the active set, and says what follows from
    /// it: perfmon2's rules for a context without a sampling format. [`fold`](Self::fold) readings that
    /// were taken in the interrupt first.
    ///
    /// Only a PMD whose 64-bit value wrapped overflows, also when a fold before this one saw the wrap. An
    /// overflow that asks for notification, or for no switch of sets, masks the context. A switch that
    /// is asked for then waits for the restart, otherwise it is made here. With the message queue full,
    /// nobody is notified and no restart granted.
    ///
    /// An interrupt while nothing counts is spurious and ignored.
    pub fn interrupt(
        &mut self,
        interrupted: &RegisterSet,
        origin: Origin,
        random: RandomSource<'_>,
    ) -> Interrupt {
        let counting = self.is_counting();
        let (set, description) = (self.active, std::sync::Arc::clone(&self.description));
        let Some(active) = self.set_mut(set).ok().filter(|_| counting) else {
            return Interrupt::default();
        };
        let Overflow { pmds, notify, switch } = active.overflow(interrupted, &description);
        if pmds.is_empty() {
            return Interrupt::default();
        }
        let mask = notify || !switch;
        let orders = if mask {
            self.state = State::Masked;
            self.switch_deferred = switch;
            Orders { stop: Some(set), start: None }
        } else {
            self.switch(Reset::Short, random)
        };
        let message = OverflowMessage { set, overflowed_pmds: pmds, origin };
        Interrupt {
            overflowed_pmds: pmds,
            mask,
            notify: notify && self.notify(message),
            block: notify && self.flags.notify_block,
            orders,
        }
    }

    /// Resumes a context that a notification masked, and says what the backend has to do. Each
    /// notification grants one restart.
    ///
    /// The PMDs of the last overflow, with those they reset, get their long reset values. If a switch
    /// of sets was waiting it is made instead, and PMDs of the next set that wait for a reset get theirs.
    ///
    /// # Errors
    /// [`ModelError::NoRestartGranted`].
    #[doc(alias = "pfm_restart")]
    pub fn restart(&mut self, random: RandomSource<'_>) -> Result<Orders, ModelError> {
        if self.state != State::Masked || self.restarts_granted == 0 {
            return Err(ModelError::NoRestartGranted);
        }
        self.restarts_granted -= 1;
        if std::mem::take(&mut self.switch_deferred) {
            let _ = self.switch(Reset::Long, random);
        } else {
            self.set_mut(self.active)?.reload_pending(Reset::Long, random);
        }
        self.state = State::Loaded;
        Ok(Orders { stop: None, start: self.started.then_some(self.active) })
    }

    /// Takes the oldest message from the queue.
    pub fn next_message(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Tells that the target has ended: the context is unloaded, and an end message queued if it
    /// monitored another thread. Fold the last readings first.
    pub fn target_ended(&mut self) {
        if self.state == State::Unloaded {
            return;
        }
        self.unload();
        if self.monitors_another_thread {
            // Beside the queue's depth: a tool that waits for the end must learn of it.
            self.messages.push_back(Message::End);
        }
    }

    /// Queues the message and grants a restart, if there is room.
    fn notify(&mut self, message: OverflowMessage) -> bool {
        if !self.flags.no_overflow_message {
            if self.messages.len() >= MESSAGE_QUEUE_DEPTH {
                return false;
            }
            self.messages.push_back(Message::Overflow(message));
        }
        self.restarts_granted = self.restarts_granted.saturating_add(1);
        true
    }
}

impl EventSet {
    fn overflow(&mut self, interrupted: &RegisterSet, description: &Description) -> Overflow {
        let mut overflow = Overflow { pmds: RegisterSet::EMPTY, notify: false, switch: false };
        self.pending_reset = RegisterSet::EMPTY;
        for pmd in self.pmds.iter_mut().filter(|pmd| interrupted.contains(pmd.index.0)) {
            if !std::mem::take(&mut pmd.overflow_pending) {
                continue;
            }
            overflow.pmds.insert(pmd.index.0);
            overflow.notify |= pmd.notify;
            if is_writable(description, pmd.index) {
                self.pending_reset.insert(pmd.index.0);
            }
            self.pending_reset = self.pending_reset.union(&pmd.reset_pmds);
            if self.policy == SwitchPolicy::Overflow && pmd.switch_count_left > 0 {
                pmd.switch_count_left -= 1;
                overflow.switch |= pmd.switch_count_left == 0;
            }
        }
        if !overflow.pmds.is_empty() {
            self.overflowed_pmds = overflow.pmds;
        }
        overflow
    }
}

fn is_writable(description: &Description, index: PmdIndex) -> bool {
    description.pmd(index).is_some_and(|pmd| !pmd.read_only)
}
