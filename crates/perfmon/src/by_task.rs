//! Rows of threads and processes.

use std::collections::BTreeMap;

use perfmon_core::{Followed, Inherit, Reading, StartOn, Target};
use perfmon_linux::{Audit, Loaded, NotToldApart, TaskReadings, attach, cpus};

use crate::Error;
use crate::member::{Member, Part};
use crate::scope::Scope;
use crate::session::Session;

/// How counts come to threads and processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// The kernel's own: an event for each thread, which those that it creates inherit.
    #[default]
    Kernel,
    /// Events of CPUs are accounted to tasks at context switches, by programs in the kernel: any number of threads needs
    /// as many descriptors as there are events times CPUs. It needs root, or `CAP_BPF` and `CAP_PERFMON`.
    Switch,
}

/// What has a row of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Each thread.
    Thread,
    /// Each process: its threads are added up. Only with [`Accounting::Switch`].
    Process,
}

impl Session {
    /// How the next [`load`](Self::load) lets counts come to threads and processes.
    pub fn set_accounting(&mut self, accounting: Accounting) {
        self.accounting = accounting;
    }

    /// Loads what is followed by programs in the kernel.
    pub(crate) fn load_followed(&mut self, scope: &Scope) -> Result<(), Error> {
        let (followed, inherit, start_on) = match scope {
            Scope::Command { pid, inherit, start_on } => {
                (Followed::Command(*pid), *inherit, *start_on)
            }
            Scope::Processes { pids, inherit } => {
                pids.iter().for_each(|&pid| self.note_comm(pid));
                (Followed::Processes(pids.clone()), *inherit, StartOn::Call)
            }
            Scope::Threads(tids) => {
                tids.iter().for_each(|&tid| self.note_comm(tid));
                (Followed::Threads(tids.clone()), Inherit::None, StartOn::Call)
            }
            Scope::System => (Followed::System, Inherit::TreeByThread, StartOn::Call),
            Scope::CurrentThread => {
                let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                (Followed::Threads(vec![tid]), Inherit::None, StartOn::Call)
            }
            Scope::Cpus(_) | Scope::Cgroups { .. } => {
                let why = "events are accounted to tasks, and not to CPUs or cgroups";
                let refusal = perfmon_core::Refusal::new(why)
                    .hint("name a command, processes, threads or the whole system");
                return Err(Error::refused("", refusal));
            }
        };
        let online = cpus::online().map_err(|refusal| Error::refused("", refusal))?.len();
        let starters = usize::from(start_on == StartOn::Exec);
        self.reserve(online + starters, 0)?;
        self.load_target(Part::Whole, Target::Followed(followed), inherit, start_on)
    }

    /// Takes note of the threads of a command that have ended since the last time, if they are told apart
    /// ([`Inherit::TreeByThread`]): to be called several times a second while it runs.
    pub fn drain(&mut self) {
        self.members.iter_mut().for_each(|member| member.loaded.drain());
    }

    /// Reads all counters once more and tells threads or processes apart, where that was asked for
    /// ([`Inherit::TreeByThread`]): [`parts`](Self::parts) then has a row for each.
    pub fn read_by(&mut self, by: By) {
        // Rows before totals, so that no row has what the total lacks; the kernel's own come with the totals.
        self.drain();
        let followed: Vec<_> =
            self.members.iter_mut().map(|member| member.loaded.tasks()).collect();
        self.read();
        for (member, tasks) in self.members.iter_mut().zip(followed) {
            match tasks {
                Ok(Some(tasks)) => member.rows = rows_of(&tasks, by, &mut self.comms),
                Ok(None) => {
                    let threads = member.loaded.ended_threads().into_iter();
                    let row = |thread: perfmon_linux::ThreadReadings| {
                        (Part::Thread(thread.tid), thread.readings)
                    };
                    member.rows = threads.map(row).collect();
                }
                Err(refusal) => member.read_failed = Some(refusal),
            }
            for note in [note_on_rest(member), note_on_unseen(member)].into_iter().flatten() {
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        }
    }

    /// What the programs that account noticed, if they do ([`Accounting::Switch`]).
    pub fn audit(&self) -> Option<Audit> {
        self.members.iter().find_map(|member| member.loaded.audit())
    }

    /// The name of a thread or process whose row this is, where it is known.
    pub fn comm(&self, part: &Part) -> Option<String> {
        let (Part::Thread(id) | Part::Process(id)) = *part else { return None };
        let recorded = |member: &Member<Loaded>| member.loaded.comm(id).map(str::to_owned);
        self.members.iter().find_map(recorded).or_else(|| self.comms.get(&id).cloned())
    }

    pub(crate) fn note_comm(&mut self, tid: u32) {
        self.comms.extend(attach::comm(tid).map(|comm| (tid, comm)));
    }
}

/// One row for each thread or process; those that had one id after another share one.
fn rows_of(
    tasks: &[TaskReadings],
    by: By,
    comms: &mut std::collections::HashMap<u32, String>,
) -> Vec<(Part, Vec<Reading>)> {
    let mut rows: BTreeMap<Part, Vec<Reading>> = BTreeMap::new();
    for task in tasks {
        let (part, id) = match by {
            By::Thread => (Part::Thread(task.tid), task.tid),
            By::Process => (Part::Process(task.pid), task.pid),
        };
        // A process has the name of its first thread.
        if id == task.tid || !comms.contains_key(&id) {
            comms.insert(id, task.comm.clone());
        }
        let sums =
            rows.entry(part).or_insert_with(|| vec![Reading::default(); task.readings.len()]);
        for (sum, reading) in sums.iter_mut().zip(&task.readings) {
            sum.value = sum.value.wrapping_add(reading.value);
            sum.enabled_ns += reading.enabled_ns;
            sum.running_ns += reading.running_ns;
        }
    }
    rows.into_iter().collect()
}

/// What is in the row of the rest, if there is one.
fn note_on_rest(member: &mut Member<Loaded>) -> Option<String> {
    if let Some(audit) = member.loaded.audit() {
        if !member.rows.is_empty() {
            member.part = Part::Rest;
        }
        return (audit.lost > 0).then(|| {
            format!(
                "row 'rest' holds what has no row of its own: {} tasks ended without one, for lack of room",
                audit.lost
            )
        });
    }
    let left = member.loaded.not_told_apart().filter(|left| !left.is_none());
    let NotToldApart { running, silent, lost } = left?;
    member.part = Part::Rest;
    Some(format!(
        "row 'rest' holds the command's first thread and what has no row of its own: {running} threads \
         still running, {silent} ended without a record of their counts (some kernels between 5.13 and \
         6.18 leave none), {lost} records lost"
    ))
}

/// What a hidden process adds to counts.
fn note_on_unseen(member: &Member<Loaded>) -> Option<String> {
    let unseen = member.loaded.audit()?.unseen;
    (unseen > 0).then(|| {
        format!(
            "{unseen} times a task came to a CPU right after process 1, which this kernel hides from events: that \
             time is in the task's clocks, and a migration of process 1 may be in its cpu-migrations"
        )
    })
}
