use perfmon_sys::{Errno, MapSpec};

use crate::Refusal;

/// Why an object could not be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is no usable object.
    #[error("{object}: not a usable eBPF object: {why}")]
    Object {
        /// The object.
        object: String,
        /// What is wrong with it.
        why: String,
    },
    /// It has no map or program of this name.
    #[error("{object} has no {what} {name}; it has {known}")]
    Missing {
        /// The object.
        object: String,
        /// A map or a program.
        what: &'static str,
        /// The name.
        name: String,
        /// What it has.
        known: String,
    },
    /// A map given to [`Loader::share`](crate::Loader::share) is not what the object declares.
    #[error("map {map}: the object declares {wanted:?}, shared is {given:?}")]
    Mismatch {
        /// The map.
        map: String,
        /// What the object declares.
        wanted: MapSpec,
        /// What was given.
        given: MapSpec,
    },
    /// The kernel refused a program or the object's type information.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The kernel lacks what a program needs.
    #[error("{what} needs {needs}, which this kernel does not have")]
    Kernel {
        /// The program.
        what: String,
        /// A tracepoint, function or type.
        needs: String,
    },
    /// A call failed.
    #[error("{what}: {call}: {errno}{}", hint(*.errno))]
    Call {
        /// What was to be done.
        what: String,
        /// The call.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
}

impl Error {
    pub(crate) fn object(object: &str, why: impl Into<String>) -> Self {
        Self::Object { object: object.into(), why: why.into() }
    }

    pub(crate) fn call(what: impl Into<String>, call: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Call { what: what.into(), call, errno }
    }

    pub(crate) fn missing(object: &str, what: &'static str, name: &str, known: &[&str]) -> Self {
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        Self::Missing { object: object.into(), what, name: name.into(), known }
    }

    /// The errno of the call that failed, if one did.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Call { errno, .. } => Some(*errno),
            Self::Refused(refusal) => Some(refusal.errno),
            _ => None,
        }
    }
}

/// What to do about an errno.
fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => {
            "; run as root, or with CAP_BPF and CAP_PERFMON (`pfmon doctor` says what is missing)"
        }
        Errno::MFILE => "; raise the limit of open files (ulimit -n)",
        Errno::NOMEM => "; there is not enough memory, or it may not be locked (ulimit -l)",
        _ => "",
    }
}
