use std::fmt;

/// Why something could not be had, in words for people, with the errno for programs.
///
/// Cheap to clone: the texts are shared.
///
/// ```
/// use perfmon_core::Refusal;
/// let refusal = Refusal::new("permission denied")
///     .errno("perf_event_open", "EACCES", 13)
///     .hint("count in user mode only: append ':u'");
/// assert_eq!(
///     refusal.to_string(),
///     "permission denied (EACCES from perf_event_open); count in user mode only: append ':u'"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    why: std::sync::Arc<str>,
    hint: Option<std::sync::Arc<str>>,
    errno: Option<Errno>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Errno {
    call: &'static str,
    name: &'static str,
    number: i32,
}

impl Refusal {
    /// A refusal for the reason `why`: a clause without a full stop.
    pub fn new(why: impl AsRef<str>) -> Self {
        Self { why: why.as_ref().into(), hint: None, errno: None }
    }

    /// Adds what to do next: a clause without a full stop.
    #[must_use]
    pub fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(hint.as_ref().into());
        self
    }

    /// Adds the errno that `call` failed with, by name and number.
    #[must_use]
    pub fn errno(mut self, call: &'static str, name: &'static str, number: i32) -> Self {
        self.errno = Some(Errno { call, name, number });
        self
    }

    /// The reason alone.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// What to do next, if anything can be done.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The errno, if a system call said no.
    pub fn errno_number(&self) -> Option<i32> {
        self.errno.map(|errno| errno.number)
    }

    /// The errno's name, such as `ENOENT`.
    pub fn errno_name(&self) -> Option<&'static str> {
        self.errno.map(|errno| errno.name)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        if let Some(Errno { call, name, .. }) = self.errno {
            write!(f, " ({name} from {call})")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
