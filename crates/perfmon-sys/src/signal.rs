use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{Errno, check};

/// A signal's number, as in signal(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// Hang-up of the terminal.
    pub const HUP: Self = Self(libc::SIGHUP);
    /// Ctrl-C.
    pub const INT: Self = Self(libc::SIGINT);
    /// Ctrl-\\.
    pub const QUIT: Self = Self(libc::SIGQUIT);
    /// Polite request to end.
    pub const TERM: Self = Self(libc::SIGTERM);
    /// End without asking.
    pub const KILL: Self = Self(libc::SIGKILL);
    /// For users.
    pub const USR1: Self = Self(libc::SIGUSR1);
    /// For users.
    pub const USR2: Self = Self(libc::SIGUSR2);
}

/// Sends `signal` to process `pid`.
///
/// # Errors
/// The kernel's, see kill(2); `EINVAL` for a `pid` that is no single process (0 or less).
pub fn send_signal(pid: i32, signal: Signal) -> Result<(), Errno> {
    if pid <= 0 {
        return Err(Errno::INVAL);
    }
    // SAFETY: the call takes integers only.
    check(unsafe { libc::kill(pid, signal.0) }).map(drop)
}

/// The signals that a thread blocks.
#[derive(Clone, Copy)]
pub struct SignalMask(pub(crate) libc::sigset_t);

impl std::fmt::Debug for SignalMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalMask").finish_non_exhaustive()
    }
}

/// Signals as messages: they are blocked in the calling thread and read from a descriptor, until this is
/// dropped.
///
/// # References
/// - signalfd(2)
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
    before: SignalMask,
}

/// One signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalInfo {
    /// Which.
    pub signal: Signal,
    /// Whether a process sent it with kill(2) and the like; a key at the terminal does not.
    pub from_process: bool,
}

impl SignalFd {
    /// Takes over `signals` in the calling thread.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take_over(signals: &[Signal]) -> Result<Self, Errno> {
        let mut set = empty_set();
        for signal in signals {
            // SAFETY: `set` is an initialised signal set; a bad number is answered by EINVAL.
            check(unsafe { libc::sigaddset(&raw mut set, signal.0) })?;
        }
        let mut before = empty_set();
        // SAFETY: both sets are initialised and live during the call.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) } {
            0 => {}
            errno => return Err(Errno::from_raw_os_error(errno)),
        }
        // SAFETY: `set` is an initialised signal set.
        let fd = check(unsafe {
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        })?;
        // SAFETY: the kernel just gave us this descriptor; nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, before: SignalMask(before) })
    }

    /// The signals that were blocked before: what a child should start with.
    pub fn mask_before(&self) -> SignalMask {
        self.before
    }

    /// The next signal that came, if one did. Does not wait.
    pub fn next_signal(&self) -> Option<SignalInfo> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let length = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is writable for `length` bytes.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), length) };
        if usize::try_from(read) != Ok(length) {
            return None;
        }
        // SAFETY: the kernel wrote all of it.
        let info = unsafe { info.assume_init() };
        let signal = Signal(info.ssi_signo.cast_signed());
        Some(SignalInfo { signal, from_process: info.ssi_code <= 0 })
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SignalFd {
    fn drop(&mut self) {
        // SAFETY: the set is initialised; the previous mask is not wanted.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before.0, std::ptr::null_mut())
        };
    }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset writes all of the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: it was just written.
    unsafe { set.assume_init() }
}
