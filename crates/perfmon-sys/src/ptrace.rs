use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Errno, check};

// Of a type that any C library's takes.
const PTRACE_DETACH: u16 = 17;
const PTRACE_SEIZE: u16 = 0x4206;
const PTRACE_INTERRUPT: u16 = 0x4207;

/// A thread that is held still between two instructions in user mode, until this is dropped.
#[derive(Debug)]
pub struct Held {
    tid: i32,
    /// A signal that was on its way to the thread when it stopped.
    pending: i32,
}

/// Holds the thread `tid` still; `None` if it did not stop in `patience` (it sleeps in the kernel where
/// nothing may interrupt it). The thread gets no signal; a system call that it waits in may be
/// restarted or, as with any debugger, answer `EINTR`.
///
/// Call this from a thread that ends afterwards: a held thread is let go when its [`Held`] is dropped, one
/// that did not stop in time when the calling thread ends.
///
/// # Errors
/// The kernel's, see ptrace(2): `ESRCH` if there is no such thread, `EPERM` if another tracer has it or
/// it may not be traced.
///
/// # References
/// - ptrace(2), `PTRACE_SEIZE`, `PTRACE_INTERRUPT`
pub fn hold_thread(tid: i32, patience: Duration) -> Result<Option<Held>, Errno> {
    let seized = ptrace(PTRACE_SEIZE, tid, 0);
    let deadline = Instant::now() + patience;
    // A thread that did not stop in time when it was asked before is ours already, and can be asked again.
    if let Err(errno) = ptrace(PTRACE_INTERRUPT, tid, 0) {
        return Err(seized.err().unwrap_or(errno));
    }
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable.
        let waited =
            check(unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) });
        match waited {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(0) if Instant::now() >= deadline => return Ok(None),
            Ok(0) => sleep(Duration::from_micros(20)),
            Ok(_) if libc::WIFSTOPPED(status) => {
                let is_event = status >> 16 != 0;
                let pending = if is_event { 0 } else { libc::WSTOPSIG(status) };
                return Ok(Some(Held { tid, pending }));
            }
            // It ended.
            Ok(_) => return Err(Errno::SRCH),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = ptrace(PTRACE_DETACH, self.tid, self.pending);
    }
}

fn ptrace(request: u16, tid: i32, data: i32) -> Result<(), Errno> {
    let data = libc::c_long::from(data);
    // SAFETY: these requests read and write no memory of ours; the arguments are integers.
    let result = unsafe { libc::ptrace(request.into(), tid, 0 as libc::c_long, data) };
    if result == -1 { Err(crate::last_errno()) } else { Ok(()) }
}
