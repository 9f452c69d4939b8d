use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::{Errno, SignalMask, check, last_errno};

/// How a child starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpawnOptions {
    /// The signals that the child blocks; as ours if not given.
    pub signal_mask: Option<SignalMask>,
    /// The child's limit of open descriptors, soft and hard; as ours if not given.
    pub nofile_limit: Option<(u64, u64)>,
}

/// Why a program did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The child could not be made or let go: this call failed.
    Call(&'static str, Errno),
    /// The child's exec failed.
    Exec(Errno),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Status(i32),
    /// This signal ended it.
    Signal(i32),
}

/// What a process and its waited-for descendants used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rusage {
    /// Time in user mode.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
}

/// A child that stands before its exec until it is released, and can be waited for.
///
/// A child that is dropped unreleased exits by itself. It is not waited for then: it was never to be seen.
#[derive(Debug)]
pub struct HeldChild {
    pid: i32,
    socket: Option<OwnedFd>,
    exit: Option<(Exit, Rusage)>,
}

impl HeldChild {
    /// Forks a child that will execute `argv` (searched for in `PATH`) with our environment.
    ///
    /// # Errors
    /// [`SpawnError::Call`]; `EINVAL` if `argv` is empty.
    ///
    /// # References
    /// - fork(2), execvp(3)
    pub fn spawn(argv: &[CString], options: SpawnOptions) -> Result<Self, SpawnError> {
        let mut pointers: Vec<*const libc::c_char> = argv.iter().map(|arg| arg.as_ptr()).collect();
        pointers.push(ptr::null());
        let Some(program) = argv.first() else {
            return Err(SpawnError::Call("execvp", Errno::INVAL));
        };
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| SpawnError::Call("socketpair", errno))?;
        // SAFETY: the child makes async-signal-safe calls only until it execs or exits.
        match unsafe { libc::fork() } {
            -1 => Err(SpawnError::Call("fork", last_errno())),
            0 => run_child(program, &pointers, &theirs, &ours, options),
            pid => Ok(Self { pid, socket: Some(ours), exit: None }),
        }
    }

    /// The child's process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the child exec, and returns once it has or could not.
    ///
    /// # Errors
    /// [`SpawnError::Exec`] if the program can't be executed.
    pub fn release(&mut self) -> Result<(), SpawnError> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        rustix::net::send(&socket, b"g", SendFlags::NOSIGNAL)
            .map_err(|errno| SpawnError::Call("send", errno))?;
        let mut answer = [0; 4];
        loop {
            match rustix::net::recv(&socket, &mut answer, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(SpawnError::Call("recv", errno)),
                // The successful exec closed the child's end.
                Ok((0, _)) => return Ok(()),
                Ok(_) => {
                    let errno = Errno::from_raw_os_error(i32::from_ne_bytes(answer));
                    let _ = self.wait();
                    return Err(SpawnError::Exec(errno));
                }
            }
        }
    }

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// The kernel's, see wait4(2).
    pub fn wait(&mut self) -> Result<(Exit, Rusage), Errno> {
        loop {
            if let Some(end) = self.try_wait_with(0)? {
                return Ok(end);
            }
        }
    }

    /// How the child ended, if it has. Does not wait.
    ///
    /// # Errors
    /// The kernel's, see wait4(2).
    pub fn try_wait(&mut self) -> Result<Option<(Exit, Rusage)>, Errno> {
        self.try_wait_with(libc::WNOHANG)
    }

    fn try_wait_with(&mut self, options: libc::c_int) -> Result<Option<(Exit, Rusage)>, Errno> {
        if self.exit.is_some() {
            return Ok(self.exit);
        }
        let mut status = 0;
        // SAFETY: rusage is made of integers, for which all zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `status` and `usage` are writable; the child is ours and not yet reaped.
        match unsafe { libc::wait4(self.pid, &raw mut status, options, &raw mut usage) } {
            -1 if last_errno() == Errno::INTR => Ok(None),
            -1 => Err(last_errno()),
            0 => Ok(None),
            _ => {
                let exit = if libc::WIFSIGNALED(status) {
                    Exit::Signal(libc::WTERMSIG(status))
                } else {
                    Exit::Status(libc::WEXITSTATUS(status))
                };
                let usage =
                    Rusage { user: duration(usage.ru_utime), system: duration(usage.ru_stime) };
                self.exit = Some((exit, usage));
                Ok(self.exit)
            }
        }
    }
}

impl Drop for HeldChild {
    fn drop(&mut self) {
        // An unreleased child sees the end of its socket and exits at once: leave no zombie.
        if self.socket.take().is_some() {
            let _ = self.wait();
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// The child between fork and exec: waits for the word, then becomes the program. Makes
/// async-signal-safe calls only, allocates nothing.
fn run_child(
    program: &CStr,
    argv: &[*const libc::c_char],
    socket: &OwnedFd,
    parents_end: &OwnedFd,
    options: SpawnOptions,
) -> ! {
    // SAFETY: closes the parent's end in this process only, so that the parent's death is seen; nothing
    // here uses it again, and its owner is never dropped since this function does not return.
    unsafe { libc::close(parents_end.as_raw_fd()) };
    let mut word = [0_u8; 1];
    let released = loop {
        // SAFETY: `word` is writable for one byte.
        match unsafe { libc::read(socket.as_raw_fd(), word.as_mut_ptr().cast(), 1) } {
            1 => break true,
            -1 if last_errno() == Errno::INTR => {}
            _ => break false,
        }
    };
    if released {
        let errno = become_program(program, argv, options).raw_os_error().to_ne_bytes();
        // SAFETY: `errno` is readable for its length.
        unsafe { libc::write(socket.as_raw_fd(), errno.as_ptr().cast(), errno.len()) };
    }
    // SAFETY: ends this process without running our exit handlers.
    unsafe { libc::_exit(127) }
}

/// Returns only if the program can't be executed.
fn become_program(program: &CStr, argv: &[*const libc::c_char], options: SpawnOptions) -> Errno {
    if let Some((soft, hard)) = options.nofile_limit {
        let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
        // SAFETY: `limit` is readable. Failure leaves the limit as it was.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
    // SAFETY: sets a disposition to the default. Rust's runtime ignores SIGPIPE, programs must not.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    if let Some(SignalMask(mask)) = options.signal_mask {
        // SAFETY: `mask` is an initialised set; the previous one is not wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) };
    }
    // SAFETY: `program` and the elements of `argv` are C strings, and `argv` ends with a null pointer.
    if let Err(errno) = check(unsafe { libc::execvp(program.as_ptr(), argv.as_ptr()) }) {
        return errno;
    }
    Errno::NOEXEC
}
