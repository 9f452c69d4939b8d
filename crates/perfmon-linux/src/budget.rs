//! Descriptors are counted before the first event is opened.

use std::sync::OnceLock;

use perfmon_core::Refusal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors left to the rest of the process.
const RESERVE: u64 = 64;

/// Makes sure that `events` more descriptors can be opened, and raises the soft limit as far as needed.
///
/// What it was before is [`limit_before`].
///
/// # Errors
/// There can't be as many: the refusal says how many are needed, and how many there may be.
#[doc(alias = "RLIMIT_NOFILE")]
pub fn reserve(events: u64) -> Result<(), Refusal> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (soft, hard) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX));
    let needed = events.saturating_add(RESERVE).saturating_add(open_now(events, soft));
    if needed <= soft {
        return machine_wide(events);
    }
    if needed > hard {
        return Err(Refusal::new(format!(
            "{events} events have to be open at once, but this process may have no more than {hard} \
             descriptors"
        ))
        .hint("raise the limit (ulimit -Hn, as root), or count fewer events, threads or CPUs at once"));
    }
    machine_wide(events)?;
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })
        .map_err(|errno| Refusal::new(format!("can't raise the limit of descriptors: {errno}")))?;
    LIMIT_BEFORE.get_or_init(|| (soft, hard));
    Ok(())
}

static LIMIT_BEFORE: OnceLock<(u64, u64)> = OnceLock::new();

/// The limits (soft and hard) that this process was started with, if [`reserve`] has changed them: a
/// measured command is to start with these.
pub fn limit_before() -> Option<(u64, u64)> {
    LIMIT_BEFORE.get().copied()
}

/// How many descriptors are open; looked up only if it could matter.
fn open_now(events: u64, soft: u64) -> u64 {
    if events.saturating_add(RESERVE).saturating_mul(2) < soft {
        return 0;
    }
    std::fs::read_dir("/proc/self/fd").map_or(RESERVE, |entries| entries.count() as u64)
}

/// Whether the machine as a whole has `events` descriptors left; looked up only for many.
fn machine_wide(events: u64) -> Result<(), Refusal> {
    const MANY: u64 = 4096;
    if events < MANY {
        return Ok(());
    }
    let text = crate::proc_file::read("/proc/sys/fs/file-nr").unwrap_or_default();
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(u64::MAX));
    let (Some(used), Some(_), Some(most)) = (numbers.next(), numbers.next(), numbers.next()) else {
        return Ok(());
    };
    if used.saturating_add(events) > most {
        return Err(Refusal::new(format!(
            "{events} events have to be open at once, but {used} of the machine's {most} descriptors are \
             in use"
        ))
        .hint("raise /proc/sys/fs/file-max, or count fewer events, threads or CPUs at once"));
    }
    Ok(())
}
