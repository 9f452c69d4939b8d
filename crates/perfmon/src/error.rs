use perfmon_core::{ModelError, Refusal, SetId};
use perfmon_events::ParseError;

/// Why a session could not do what was asked. What concerns a single event is no error: it is that event's
/// [`Count`](crate::Count).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The event list can't be understood.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// More events than a context has registers.
    #[error("{0} events are too many for one session: the most is 320; split them over several")]
    TooManyEvents(usize),
    /// An event set can't be had.
    #[error("event set {}: {why}", .id.0)]
    Set {
        /// The set.
        id: SetId,
        /// Why not.
        why: String,
    },
    /// The step is not legal in the state that the session is in.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The target can't be monitored, or the system refused.
    #[error("{what}: {refusal}")]
    Refused {
        /// What was being done.
        what: String,
        /// Why not.
        refusal: Refusal,
    },
}

impl Error {
    pub(crate) fn refused(what: impl Into<String>, refusal: Refusal) -> Self {
        Self::Refused { what: what.into(), refusal }
    }
}
