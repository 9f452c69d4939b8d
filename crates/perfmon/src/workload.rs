use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use perfmon_linux::times::{self, CpuTimes};
use perfmon_linux::{Errno, Exit, HeldChild, SignalMask, SpawnOptions, budget};
use rustix::fs::Access;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Error;
use perfmon_core::Refusal;

/// CPU time that no event sees of any command, after its end.
const UNSEEN_MIN: Duration = Duration::from_millis(2);
/// An exec takes no longer, even on an emulated machine: what a command used when its exec was seen is its own work
/// otherwise.
const EXEC_MAX: Duration = Duration::from_millis(20);

/// A command that waits before its exec until it is released, so that events can be opened on it first.
#[derive(Debug)]
pub struct Workload {
    name: String,
    child: HeldChild,
    pidfd: OwnedFd,
    gains_rights: bool,
    /// CPU time that it had used when it executed its program.
    before_exec: Duration,
}

/// How a workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, or the signal that ended it.
    pub exit: Exit,
    /// What it and those of its descendants that were waited for used.
    pub times: CpuTimes,
}

/// Why a command did not start.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    #[error("can't run '{0}': not found; check the name and PATH")]
    NotFound(String),
    /// The program is there but can't be executed.
    #[error("can't run '{0}': {1}")]
    CantExecute(String, String),
    /// No process could be made.
    #[error("can't make a process for '{0}': {1}")]
    Call(String, String),
}

impl Workload {
    /// Makes the child that will execute `argv`: a program, searched for in `PATH`, and its arguments. The
    /// child blocks the signals of `mask`, or those we block.
    ///
    /// # Errors
    /// [`SpawnError::Call`].
    pub fn spawn<A: AsRef<OsStr>>(
        argv: &[A],
        mask: Option<SignalMask>,
    ) -> Result<Self, SpawnError> {
        let name = argv.first().map(|arg| arg.as_ref().to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let arguments: Result<Vec<CString>, _> =
            argv.iter().map(|arg| CString::new(arg.as_ref().as_bytes())).collect();
        let arguments = arguments.map_err(|_| {
            SpawnError::CantExecute(name.clone(), "an argument contains a NUL byte".into())
        })?;
        let options = SpawnOptions { signal_mask: mask, nofile_limit: budget::limit_before() };
        let child =
            HeldChild::spawn(&arguments, options).map_err(|error| spawn_error(&name, error))?;
        let call_failed =
            |errno: Errno| SpawnError::Call(name.clone(), format!("pidfd_open: {errno}"));
        let pid = Pid::from_raw(child.pid()).ok_or_else(|| call_failed(Errno::SRCH))?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(call_failed)?;
        let gains_rights = argv.first().is_some_and(|program| gains_rights(program.as_ref()));
        Ok(Self { name, child, pidfd, gains_rights, before_exec: Duration::ZERO })
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.child.pid().unsigned_abs()
    }

    /// Why what was counted of this command is not all, once it has `ended`: the kernel stops counting when an
    /// ordinary user's program executes one that gains rights (set-user-ID and the like). `enabled_ns` is how
    /// long events were enabled that count the command and all its descendants from its exec on.
    ///
    /// That the command itself is such a program is always seen; that a descendant was is inferred from the CPU
    /// time that it used and that no event saw, if that is most of the command's.
    pub fn cut_short(&self, ended: &Ended, enabled_ns: u64) -> Option<Refusal> {
        if rustix::process::geteuid().is_root() {
            return None;
        }
        let used = ended.times.user + ended.times.system;
        let unseen = used.saturating_sub(Duration::from_nanos(enabled_ns) + self.before_exec);
        let hint = "count it as root";
        if self.gains_rights {
            let why = "the program gains rights when it is executed (set-user-ID, set-group-ID or not readable), and \
                       the kernel then stops counting for ordinary users";
            Some(Refusal::new(why).hint(hint))
        } else if unseen > UNSEEN_MIN && unseen > used / 2 {
            let why = format!(
                "{unseen:?} of the {used:?} of CPU time were not seen: the kernel stops counting for ordinary users \
                 where a descendant executes a program that gains rights (set-user-ID and the like)"
            );
            Some(Refusal::new(why).hint(hint))
        } else {
            None
        }
    }

    /// Lets the child execute its program; returns once it has.
    ///
    /// # Errors
    /// [`SpawnError::NotFound`], [`SpawnError::CantExecute`].
    pub fn release(&mut self) -> Result<(), SpawnError> {
        self.child.release().map_err(|error| spawn_error(&self.name, error))?;
        if !rustix::process::geteuid().is_root() {
            self.before_exec = times::on_cpu(self.pid()).unwrap_or_default().min(EXEC_MAX);
        }
        Ok(())
    }

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn wait(&mut self) -> Result<Ended, Error> {
        self.child.wait().map(ended).map_err(wait_failed)
    }

    /// How the child ended, if it has. Does not wait.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn try_wait(&mut self) -> Result<Option<Ended>, Error> {
        self.child.try_wait().map(|end| end.map(ended)).map_err(wait_failed)
    }
}

impl AsFd for Workload {
    /// A descriptor that is readable once the child has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Whether executing `program`, searched for in `PATH`, changes the rights of the process, or hides it from its
/// user.
fn gains_rights(program: &OsStr) -> bool {
    if rustix::process::geteuid().is_root() {
        return false;
    }
    let path = if program.as_bytes().contains(&b'/') {
        Some(PathBuf::from(program))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|place| place.join(program));
        places.find(|place| rustix::fs::access(place, Access::EXEC_OK).is_ok())
    };
    let Some((path, file)) = path.and_then(|path| Some((path.clone(), path.metadata().ok()?)))
    else {
        return false;
    };
    let others = |bit, differs| file.mode() & bit != 0 && differs;
    others(0o4000, file.uid() != rustix::process::geteuid().as_raw())
        || others(0o2000, file.gid() != rustix::process::getegid().as_raw())
        || rustix::fs::access(&path, Access::READ_OK).is_err()
}

fn ended((exit, usage): (Exit, perfmon_linux::Rusage)) -> Ended {
    Ended { exit, times: CpuTimes { user: usage.user, system: usage.system } }
}

fn wait_failed(errno: Errno) -> Error {
    Error::refused("wait for the command", Refusal::new(errno.to_string()))
}

fn spawn_error(name: &str, error: perfmon_linux::SpawnError) -> SpawnError {
    use perfmon_linux::SpawnError as Low;
    let name = name.to_owned();
    match error {
        Low::Exec(Errno::NOENT | Errno::NOTDIR) => SpawnError::NotFound(name),
        Low::Exec(Errno::ACCESS) => {
            SpawnError::CantExecute(name, "permission denied; is it executable?".into())
        }
        Low::Exec(errno) => SpawnError::CantExecute(name, errno.to_string()),
        Low::Call(call, errno) => SpawnError::Call(name, format!("{call}: {errno}")),
    }
}
