use crate::{Counts, Error, Scope, Session};

/// Counts the events of `list` while `body` runs, in the calling thread.
///
/// Each call opens and closes the events (some hundred microseconds); to count many times, keep a
/// [`Session`] and use [`Session::region`].
///
/// ```
/// let (sum, counts) = perfmon::measure("task-clock,page-faults:u", || (1..=1000_u64).sum::<u64>())?;
/// assert_eq!(sum, 500_500);
/// assert!(counts.exact("task-clock").is_some_and(|time_ns| time_ns > 0));
/// # Ok::<(), perfmon::Error>(())
/// ```
///
/// # Errors
/// As [`Session::new`] and [`Session::load`].
pub fn measure<R>(list: &str, body: impl FnOnce() -> R) -> Result<(R, Counts), Error> {
    let mut session = Session::new(list)?;
    session.load(&Scope::CurrentThread)?;
    session.start()?;
    Ok(session.region(body))
}
