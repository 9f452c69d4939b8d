//! The model of perfmon.
//!
//! A [`Context`] is perfmon2's: one handle that holds the control registers (PMC), the data registers
//! (PMD, 64-bit virtual counters) and the event sets of one thread or one CPU. The model decides and
//! never acts: it makes no system call, reads no clock and draws no random number. A [`Backend`] acts
//! and never decides.
//!
//! What a counter says is a [`Count`]: exact, estimated, not counted or unsupported, each with its
//! [`Reason`]. A count is never scaled silently and never zero in place of "unknown".

#![forbid(unsafe_code)]

mod backend;
mod context;
mod count;
mod counter;
mod description;
mod encoding;
mod error;
mod estimate;
mod event_set;
mod prng;
mod refusal;
mod register;

pub use backend::{
    Backend, Followed, Inherit, LoadPlan, Outcome, PlannedEvent, Reading, StartOn, Target,
};
pub use context::{
    Context, ContextFlags, Interrupt, MESSAGE_QUEUE_DEPTH, Message, Orders, Origin,
    OverflowMessage, PmdAttributes, PmdValue, RandomSource, SetInfo, State,
};
pub use count::{Caution, Count, Estimate, Method, Reason, Tally};
pub use counter::{VirtualCounter, Width};
pub use description::{Description, PmdDescription};
pub use encoding::{Encoding, Privilege};
pub use error::ModelError;
pub use estimate::{Estimator, SetEstimate};
pub use event_set::{EventSet, SetId, SwitchPolicy};
pub use prng::SplitMix64;
pub use refusal::Refusal;
pub use register::{Group, MAX_PMCS, MAX_PMDS, Pmc, PmcIndex, Pmd, PmdIndex, RegisterSet};
