//! Waiting for what ends a measurement, or is due in it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use perfmon::{Ended, Scope, Signal, SignalFd, Workload, send_signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::exit::Failure;

/// How often threads are looked at on kernels that have no descriptor for a thread (before 6.9).
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long a command may take to end after SIGTERM.
const TERM_PATIENCE: Duration = Duration::from_secs(5);
/// `PIDFD_THREAD`, which rustix does not name.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0x80);

/// What came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The time that was waited for.
    Due,
    /// The command ended.
    CommandEnded(Ended),
    /// All targets ended.
    TargetsEnded,
    /// The user wants no more (only without a command: a command decides by itself).
    Interrupted,
}

/// What is watched during a measurement.
pub(crate) struct Watch<'a> {
    signals: &'a SignalFd,
    workload: Option<&'a mut Workload>,
    targets: Vec<OwnedFd>,
    /// Threads without a descriptor.
    polled_tids: Vec<u32>,
    has_targets: bool,
    pub(crate) interrupted: bool,
}

impl<'a> Watch<'a> {
    /// Watches the command, or without one the targets of `scope`.
    pub(crate) fn new(
        signals: &'a SignalFd,
        workload: Option<&'a mut Workload>,
        scope: &Scope,
    ) -> Self {
        let (mut targets, mut polled_tids) = (Vec::new(), Vec::new());
        let (ids, flags): (&[u32], _) = match scope {
            Scope::Processes { pids, .. } => (pids, PidfdFlags::empty()),
            Scope::Threads(tids) => (tids, PIDFD_THREAD),
            _ => (&[], PidfdFlags::empty()),
        };
        let has_targets = workload.is_none() && !ids.is_empty();
        for &id in ids.iter().filter(|_| has_targets) {
            match Pid::from_raw(id.cast_signed()).map(|pid| pidfd_open(pid, flags)) {
                Some(Ok(pidfd)) => targets.push(pidfd),
                Some(Err(rustix::io::Errno::INVAL)) => polled_tids.push(id),
                // It has ended already.
                _ => {}
            }
        }
        Self { signals, workload, targets, polled_tids, has_targets, interrupted: false }
    }

    /// Waits for the next thing to happen, at the latest until `due`.
    pub(crate) fn next(&mut self, due: Option<Instant>) -> Result<Event, Failure> {
        loop {
            self.handle_signals();
            if let Some(workload) = &mut self.workload {
                if let Some(ended) = workload.try_wait()? {
                    return Ok(Event::CommandEnded(ended));
                }
            } else if self.interrupted {
                return Ok(Event::Interrupted);
            }
            self.polled_tids.retain(|tid| std::path::Path::new(&format!("/proc/{tid}")).exists());
            if self.has_targets && self.targets.is_empty() && self.polled_tids.is_empty() {
                return Ok(Event::TargetsEnded);
            }
            let now = Instant::now();
            if due.is_some_and(|due| due <= now) {
                return Ok(Event::Due);
            }
            self.wait(due.map(|due| due - now))?;
        }
    }

    /// Sleeps until something may have happened.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Failure> {
        let timeout = match timeout {
            Some(timeout) if self.polled_tids.is_empty() => Some(timeout),
            Some(timeout) => Some(timeout.min(LOOK_AGAIN)),
            None if self.polled_tids.is_empty() => None,
            None => Some(LOOK_AGAIN),
        };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let workload = self.workload.iter().map(|workload| workload.as_fd());
        let targets = self.targets.iter().map(AsFd::as_fd);
        let fds: Vec<BorrowedFd<'_>> =
            std::iter::once(self.signals.as_fd()).chain(workload).chain(targets).collect();
        let mut polled: Vec<PollFd<'_>> =
            fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Failure::new(format!("can't wait (poll): {errno}"))),
        }
        let first_target = polled.len() - self.targets.len();
        let ended: Vec<bool> =
            polled.iter().skip(first_target).map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        self.targets.retain(|_| !ended.next().unwrap_or(false));
        Ok(())
    }

    /// Passes on to the command what it did not get by itself: the terminal sends its signals to both.
    fn handle_signals(&mut self) {
        while let Some(info) = self.signals.next_signal() {
            let ends = !matches!(info.signal, Signal::USR1 | Signal::USR2);
            self.interrupted |= ends;
            if let Some(workload) = &self.workload
                && info.from_process
            {
                let _ = send_signal(workload.pid().cast_signed(), info.signal);
            }
        }
    }

    /// Ends a command that still runs, and says how it ended.
    pub(crate) fn end_command(&mut self) -> Result<Option<Ended>, Failure> {
        for signal in [Signal::TERM, Signal::KILL] {
            let Some(workload) = &self.workload else { return Ok(None) };
            let _ = send_signal(workload.pid().cast_signed(), signal);
            if let Event::CommandEnded(ended) = self.next(Some(Instant::now() + TERM_PATIENCE))? {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }
}
