use std::path::PathBuf;
use std::sync::Arc;

use crate::{Description, Encoding, Group, PmdIndex, Refusal, SetId};

/// What a context monitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The calling thread.
    CurrentThread,
    /// The thread with this id.
    Thread(u32),
    /// All that runs on this CPU.
    Cpu(u32),
    /// What of a cgroup (its directory) runs on a CPU.
    Cgroup {
        /// The cgroup's directory.
        path: Arc<PathBuf>,
        /// The CPU.
        cpu: u32,
    },
    /// Tasks that are followed in the kernel: the events of each CPU are accounted to those that run there.
    Followed(Followed),
}

/// Which tasks are followed. Those that they create are followed with them if the plan [inherits](Inherit::Tree).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// A process, which [`StartOn::Exec`] starts with its exec.
    Command(u32),
    /// All threads of these running processes.
    Processes(Vec<u32>),
    /// These threads.
    Threads(Vec<u32>),
    /// All tasks there are and will be.
    System,
}

/// Whether what the target creates is counted with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inherit {
    /// Only the target: perfmon2's rule.
    #[default]
    None,
    /// The target and all threads and processes that it and its descendants create once loaded.
    Tree,
    /// As [`Tree`](Self::Tree), and what each of its threads counted is told apart when it ends.
    TreeByThread,
}

impl Inherit {
    /// Whether what the target creates is counted with it.
    pub const fn follows(self) -> bool {
        matches!(self, Self::Tree | Self::TreeByThread)
    }
}

/// What starts a loaded context for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartOn {
    /// [`Backend::start`].
    #[default]
    Call,
    /// The target's next exec.
    Exec,
    /// Loading. What is started later is judged by two readings: for a [tree](Inherit::Tree) that grows
    /// meanwhile, since no [`Backend::start`] reaches a thread that is being created.
    Load,
}

/// What a context asks of a backend when it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPlan {
    /// What to monitor.
    pub target: Target,
    /// Whether to follow what the target creates.
    pub inherit: Inherit,
    /// What starts it.
    pub start_on: StartOn,
    /// The set that is active, which an exec starts.
    pub active: SetId,
    /// Sets that count beside the active one: an exec starts them, too.
    pub always: Vec<SetId>,
    /// Sets are left by time: of a thread, by its own, which the backend tells ([`Backend::set_timer`]).
    pub timed: bool,
    /// The events, by set and PMD, in increasing order of both.
    pub events: Vec<PlannedEvent>,
}

/// One PMD in use with the event that its PMC holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// The event set.
    pub set: SetId,
    /// The data register.
    pub pmd: PmdIndex,
    /// The event.
    pub encoding: Arc<Encoding>,
    /// Which events of the set it runs together with.
    pub group: Group,
    /// Occurrences from the start to its first overflow, after which its set is left; 0 if it leaves none.
    pub period: u64,
}

/// Whether one event of a plan could be had.
pub type Outcome = Result<(), Refusal>;

/// What one counter said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The counter: raw from a backend, the 64-bit value of the PMD from a context.
    pub value: u64,
    /// Nanoseconds for which the event was enabled on a running target.
    pub enabled_ns: u64,
    /// Nanoseconds for which it was on the PMU.
    pub running_ns: u64,
    /// The backend gave the event up for good; the numbers mean nothing.
    pub in_error: bool,
}

/// What carries out a context's steps: the kernel, or a simulation. It acts and never decides.
pub trait Backend {
    /// What the backend keeps of one loaded context. Dropping it lets go of everything.
    type Loaded;

    /// The time in nanoseconds since some moment, which is the same for all calls.
    fn now_ns(&self) -> u64;

    /// Which registers its contexts have.
    fn description(&self) -> Description;

    /// Readies the events of `plan` on its target, stopped (unless [`StartOn::Load`]), and says of each event (in the plan's
    /// order) whether it could be had. Events of one [`Group`] are had all or none.
    ///
    /// # Errors
    /// The target can't be monitored at all (it is gone, or may not be touched).
    fn load(&mut self, plan: &LoadPlan) -> Result<(Self::Loaded, Vec<Outcome>), Refusal>;

    /// Lets the events of `set` count.
    ///
    /// # Errors
    /// The backend's own.
    fn start(&mut self, loaded: &mut Self::Loaded, set: SetId) -> Result<(), Refusal>;

    /// Freezes the events of `set`.
    ///
    /// # Errors
    /// The backend's own.
    fn stop(&mut self, loaded: &mut Self::Loaded, set: SetId) -> Result<(), Refusal>;

    /// Reads the events of `sets` alone, into their places, if that is cheaper than all.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_sets(
        &mut self,
        loaded: &mut Self::Loaded,
        sets: &[SetId],
        readings: &mut [Reading],
    ) -> Result<(), Refusal> {
        let _ = sets;
        self.read(loaded, readings)
    }

    /// Lets event number `place` of the plan, which is stopped and has a [period](PlannedEvent::period), overflow after
    /// `after` more occurrences.
    ///
    /// # Errors
    /// The backend's own; it has no overflows.
    fn arm(&mut self, loaded: &mut Self::Loaded, place: usize, after: u64) -> Result<(), Refusal> {
        let _ = (loaded, place, after);
        Err(Refusal::new("events do not overflow here"))
    }

    /// Lets a [timed](LoadPlan::timed) context say when its thread has run for `after_ns` more.
    ///
    /// # Errors
    /// The backend's own; it has no timers.
    fn set_timer(&mut self, loaded: &mut Self::Loaded, after_ns: u64) -> Result<(), Refusal> {
        let _ = (loaded, after_ns);
        Err(Refusal::new("threads have no timers here"))
    }

    /// Reads all events into `readings`, one per event of the plan and in its order. Places of events
    /// that were refused are left alone.
    ///
    /// # Errors
    /// The backend's own; the readings are then not to be used.
    fn read(&mut self, loaded: &mut Self::Loaded, readings: &mut [Reading]) -> Result<(), Refusal>;

    /// Lets go of a loaded context, when more are to come: a backend may keep what makes the next load
    /// cheaper.
    fn unload(&mut self, loaded: Self::Loaded);
}
