use crate::{PmcIndex, PmdIndex, SetId, State};

/// Why a step is refused: perfmon2's rules. A refused step changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The step needs an unloaded context (`EBUSY`).
    #[error("the context is {state:?}; {step} needs it unloaded", state = .state)]
    Busy {
        /// The step.
        step: &'static str,
        /// The state the context is in.
        state: State,
    },
    /// The step needs a loaded context (`EINVAL`).
    #[error("{step} needs a loaded context")]
    NotLoaded {
        /// The step.
        step: &'static str,
    },
    /// There is no such event set (`EINVAL`).
    #[error("there is no event set {}", .0.0)]
    NoSuchSet(SetId),
    /// The description has no such PMC (`EINVAL`).
    #[error("there is no PMC {}", .0.0)]
    NoSuchPmc(PmcIndex),
    /// The description has no such PMD, or it is not in use in that set (`EINVAL`).
    #[error("there is no PMD {}, or it is not in use in this set", .0.0)]
    NoSuchPmd(PmdIndex),
    /// A PMD that is to be reset can't be written (`EINVAL`).
    #[error("PMD {} is read-only, so it can't be reset", .0.0)]
    ReadOnly(PmdIndex),
    /// A set that is to be left after no time at all (`EINVAL`).
    #[error("event set {}: the timeout must be at least 1 ns", .0.0)]
    ZeroTimeout(SetId),
    /// Flags or a target that exclude each other (`EINVAL`).
    #[error("{0}")]
    Conflict(&'static str),
    /// Nothing was notified, so there is nothing to restart (`EBUSY`).
    #[error("no notification is waiting for a restart")]
    NoRestartGranted,
}

impl ModelError {
    /// The name of the errno that perfmon2 has for this: `EBUSY` or `EINVAL`.
    ///
    /// ```
    /// use perfmon_core::ModelError;
    /// assert_eq!(ModelError::NoRestartGranted.errno_name(), "EBUSY");
    /// ```
    pub const fn errno_name(&self) -> &'static str {
        match self {
            Self::Busy { .. } | Self::NoRestartGranted => "EBUSY",
            Self::NotLoaded { .. }
            | Self::NoSuchSet(_)
            | Self::NoSuchPmc(_)
            | Self::NoSuchPmd(_)
            | Self::ReadOnly(_)
            | Self::ZeroTimeout(_)
            | Self::Conflict(_) => "EINVAL",
        }
    }
}
