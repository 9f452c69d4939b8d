use crate::Errno;

/// Lets the calling thread run before all threads of ordinary priority, whenever it is ready (`SCHED_FIFO`, lowest
/// priority). What it creates starts with an ordinary one.
///
/// # Errors
/// `EPERM` without privilege.
///
/// # References
/// - sched(7), sched_setscheduler(2)
#[doc(alias = "sched_setscheduler")]
pub fn take_precedence() -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads `parameters`, which live until it returns; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    crate::check(result).map(drop)
}
