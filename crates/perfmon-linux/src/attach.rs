//! The threads of running processes: all of them, each once.
//!
//! A thread that an attached thread creates inherits its events; one that was created before must be found
//! and attached by itself. Nothing in the kernel's records says which of the two a thread is if it was
//! being created while events were opened on its creator. So events are opened only on a thread that is
//! known not to run meanwhile: one that sleeps, and has not been scheduled when looked at again afterwards;
//! or one that is held still for those microseconds, as a debugger would. This goes on until a look at
//! the whole list of threads finds nothing new and nobody who ran.

use std::collections::BTreeMap;
use std::time::Duration;

use perfmon_core::Refusal;
use perfmon_sys::{Errno, Held, hold_thread};

use crate::proc_file;

/// How long a running thread may take to stop: it may have to wait for a CPU first.
const HOLD_PATIENCE: Duration = Duration::from_millis(500);
/// A sleeping thread that ran in between this often is held from then on.
const DISTURBANCES_MAX: u32 = 2;
/// Looks at the list of threads before giving up: each finds or holds at least one more thread.
const ROUNDS_MAX: u32 = 100_000;

/// Why events could not be opened on a thread.
#[derive(Debug)]
pub enum OpenError {
    /// The thread has ended; that is no error of the whole.
    Gone,
    /// Anything else.
    Refused(Refusal),
}

/// The threads found, with what `open` gave for each.
#[derive(Debug)]
pub struct Attached<L> {
    /// Thread ids in increasing order.
    pub threads: Vec<(u32, L)>,
    /// Threads that could not be held still while their events were opened: those that they created at that
    /// moment may be missed or counted twice.
    pub unheld: Vec<u32>,
}

/// Opens events, by `open`, on every thread of `pids`, such that threads created later inherit them: none is
/// missed and none is attached twice.
///
/// # Errors
/// A process is gone, or `open` refused.
pub fn processes<L: Send>(
    pids: &[u32],
    open: impl FnMut(u32) -> Result<L, OpenError> + Send,
) -> Result<Attached<L>, Refusal> {
    // Held threads belong to the thread that holds them, and are let go at its end at the latest.
    let attach = || Attach { pids, open, known: BTreeMap::new(), unheld: Vec::new() }.run();
    std::thread::scope(|scope| match scope.spawn(attach).join() {
        Ok(attached) => attached,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

struct Attach<'a, L, F> {
    pids: &'a [u32],
    open: F,
    known: BTreeMap<u32, Known<L>>,
    unheld: Vec<u32>,
}

struct Known<L> {
    pid: u32,
    loaded: Option<L>,
    stillness: Stillness,
    disturbances: u32,
}

enum Stillness {
    /// Held until this is dropped.
    Held { _guard: Held },
    /// Asleep, as it was before its events were opened.
    Asleep(Activity),
    /// It could not be held.
    Unknown,
}

impl<L, F: FnMut(u32) -> Result<L, OpenError>> Attach<'_, L, F> {
    fn run(mut self) -> Result<Attached<L>, Refusal> {
        for _ in 0..ROUNDS_MAX {
            let opened = self.open_new()?;
            let disturbed = self.close_disturbed();
            if !opened && !disturbed {
                return self.finish();
            }
        }
        Err(Refusal::new("the process creates threads faster than they can be attached")
            .hint("stop it (kill -STOP), attach, and let it go on (kill -CONT)"))
    }

    /// Opens events on the threads that have none yet; whether there were any.
    fn open_new(&mut self) -> Result<bool, Refusal> {
        let mut any = false;
        for &pid in self.pids {
            let tids = match threads_of(pid) {
                // It ended while it was being attached.
                Err(_) if self.known.values().any(|known| known.pid == pid) => continue,
                tids => tids?,
            };
            for tid in tids {
                let known = self.known.get(&tid);
                if known.is_some_and(|known| known.loaded.is_some()) {
                    continue;
                }
                let disturbances = known.map_or(0, |known| known.disturbances);
                any |= self.open_one(pid, tid, disturbances)?;
            }
        }
        Ok(any)
    }

    fn open_one(&mut self, pid: u32, tid: u32, disturbances: u32) -> Result<bool, Refusal> {
        let Some(activity) = Activity::of(pid, tid) else { return Ok(false) };
        let stillness = if activity.asleep && disturbances <= DISTURBANCES_MAX {
            Stillness::Asleep(activity)
        } else {
            match hold_thread(tid.cast_signed(), HOLD_PATIENCE) {
                Ok(Some(guard)) => Stillness::Held { _guard: guard },
                // It sleeps where nothing may wake it.
                Ok(None) => match Activity::of(pid, tid) {
                    Some(activity) => Stillness::Asleep(activity),
                    None => return Ok(false),
                },
                Err(Errno::SRCH) => return Ok(false),
                Err(_) => {
                    self.unheld.push(tid);
                    Stillness::Unknown
                }
            }
        };
        match (self.open)(tid) {
            Ok(loaded) => {
                let known = Known { pid, loaded: Some(loaded), stillness, disturbances };
                self.known.insert(tid, known);
                Ok(true)
            }
            Err(OpenError::Gone) => Ok(false),
            Err(OpenError::Refused(refusal)) => Err(refusal),
        }
    }

    /// Closes the events of threads that ran while they were opened (and with them what was inherited);
    /// whether there were any.
    fn close_disturbed(&mut self) -> bool {
        let mut any = false;
        for (&tid, known) in &mut self.known {
            let Stillness::Asleep(before) = &known.stillness else { continue };
            if known.loaded.is_none()
                || Activity::of(known.pid, tid).is_none_or(|now| now == *before)
            {
                continue;
            }
            known.loaded = None;
            known.disturbances += 1;
            any = true;
        }
        any
    }

    fn finish(self) -> Result<Attached<L>, Refusal> {
        let threads: Vec<_> =
            self.known.into_iter().filter_map(|(tid, known)| Some((tid, known.loaded?))).collect();
        if threads.is_empty() {
            return Err(no_process(self.pids.first().copied().unwrap_or(0)));
        }
        Ok(Attached { threads, unheld: self.unheld })
    }
}

/// What a thread does, so that one can tell later whether it did anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Activity {
    /// It waits, and not for the creation of a thread or process.
    asleep: bool,
    /// How often it was given a CPU.
    timeslices: u64,
}

impl Activity {
    /// `None` if the thread is gone.
    fn of(pid: u32, tid: u32) -> Option<Self> {
        let file = |name: &str| proc_file::read(format!("/proc/{pid}/task/{tid}/{name}"));
        let stat = file("stat")?;
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        if matches!(state, 'Z' | 'X') {
            return None;
        }
        // Without schedstat (CONFIG_SCHED_INFO) a thread can't be known to sleep on.
        let timeslices =
            file("schedstat").and_then(|text| text.split_whitespace().nth(2)?.parse().ok());
        let waits = matches!(state, 'S' | 'D' | 'I' | 'T' | 't');
        let creates = || file("syscall").is_some_and(|text| is_creation(&text));
        Some(Self {
            asleep: waits && timeslices.is_some() && !creates(),
            timeslices: timeslices.unwrap_or(0),
        })
    }
}

/// Whether a line of /proc/TID/syscall is of a call that creates a thread or process. (The table is that
/// of the machine; a 32-bit program's numbers are others, and it then counts as asleep.)
fn is_creation(syscall: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    const CREATIONS: [u32; 4] = [56, 57, 58, 435]; // clone, fork, vfork, clone3
    #[cfg(not(target_arch = "x86_64"))]
    const CREATIONS: [u32; 2] = [220, 435]; // clone, clone3
    let number = syscall.split_whitespace().next().and_then(|word| word.parse().ok());
    number.is_some_and(|number| CREATIONS.contains(&number))
}

/// The name of a thread; `None` if it is gone.
pub fn comm(tid: u32) -> Option<String> {
    Some(proc_file::read(format!("/proc/{tid}/comm"))?.trim_end_matches('\n').to_owned())
}

/// How many threads process `pid` has now; 0 if it is gone.
pub fn thread_count(pid: u32) -> usize {
    threads_of(pid).map_or(0, |tids| tids.len())
}

/// The ids of the threads of process `pid`, in increasing order.
fn threads_of(pid: u32) -> Result<Vec<u32>, Refusal> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| no_process(pid))?;
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut tids: Vec<u32> = entries.filter_map(|entry| name(entry)?.parse().ok()).collect();
    tids.sort_unstable();
    Ok(tids)
}

fn no_process(pid: u32) -> Refusal {
    Refusal::new(format!("there is no running process {pid}"))
        .hint("name a process that is running (ps -e)")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that creation calls are told from others, and "running" from both.
    #[test]
    fn creation_calls() {
        assert!(is_creation("435 0x7ffe 0x58 0x0"));
        assert!(!is_creation("0 0x3 0x7f52 0x20000"));
        assert!(!is_creation("running"));
        assert!(!is_creation(""));
    }

    /// Check that our own threads are found, and that a number without a process is refused.
    #[test]
    fn threads_are_listed() {
        let tids = threads_of(std::process::id()).unwrap();
        assert!(tids.contains(&std::process::id()));
        assert!(tids.is_sorted());
        let refusal = threads_of(u32::MAX).unwrap_err();
        assert_eq!(refusal.why(), "there is no running process 4294967295");
    }
}
