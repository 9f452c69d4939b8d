// What the accounting programs and user space share: integers in C layout, no pointers.

/// Events that are accounted, at most.
pub const EVENTS_MAX: usize = 32;

/// `Task::state`: nothing is accounted to it.
pub const IDLE: u32 = 0;
/// It waits for its exec, which starts its own events ("starters").
pub const WAITING: u32 = 1;
/// Its exec has passed: its starters count until it leaves the CPU for the first time.
pub const STARTING: u32 = 2;
/// The events of the CPU that it runs on are accounted to it.
pub const RUNNING: u32 = 3;

/// `Control::mode`: iterators seed tasks that wait for their exec.
pub const SEED_WAITING: u64 = 0;
/// Iterators seed tasks.
pub const SEED: u64 = 1;
/// Iterators seed tasks, and new ones of the same process are followed whoever creates them.
pub const SEED_PROCESS: u64 = 4;
/// Iterators write a `Row` for each task that is followed.
pub const ROWS: u64 = 2;
/// Iterators write the tgid of each task.
pub const PROCESSES: u64 = 3;

/// What `flush` is run for, on each CPU: accounts to the current task up to now.
pub const FLUSH: u64 = 0;
/// Begins with the current task.
pub const START: u64 = 1;
/// Ends with the current task.
pub const STOP: u64 = 2;

/// What one event counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub value: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

/// What is known of a task (value of `TASKS`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub state: u32,
    /// It had events of its own when it was first seen, which the kernel takes away at its end.
    pub has_events: u32,
    /// Tells apart those that have one id after another.
    pub serial: u64,
    pub counts: [Count; EVENTS_MAX],
}

/// What is known of a CPU (element of `CPUS`). Only programs on that CPU write it, with interrupts off.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// Odd while the rest is written.
    pub sequence: u64,
    /// The task that the events are accounted to now, as the address of its struct; 0 for none.
    pub owner: u64,
    /// `flush` has begun here.
    pub armed: u64,
    /// A hidden task came last: whoever leaves next came since, unseen.
    pub unseen: u64,
    /// All that was accounted here, or, if the whole system is followed, all that was counted.
    pub totals: [Count; EVENTS_MAX],
    /// What the events said when they were last accounted.
    pub last: [Count; EVENTS_MAX],
    /// What they say now.
    pub now: [Count; EVENTS_MAX],
}

/// The element of `CONTROL`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Whether anything is accounted.
    pub active: u64,
    pub mode: u64,
    /// A process that the kernel hides, by tgid: no tracepoint has its programs run while its tasks are current, and no
    /// event counts them. So a task that follows one on a CPU comes unseen. 0 for none.
    pub hidden: u64,
    /// The last serial number.
    pub serial: u64,
    /// Tasks that could not be followed for lack of memory.
    pub unfollowed: u64,
    /// Times on a CPU that were not accounted.
    pub gaps: u64,
    /// Events that could not be read.
    pub read_errors: u64,
    /// Rows of ended tasks that found no room in `ENDED`.
    pub lost: u64,
    /// Times that a task came after a hidden one.
    pub unseen: u64,
}

/// What a task has counted, for user space.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub serial: u64,
    pub tid: u32,
    pub tgid: u32,
    pub comm: [u8; 16],
    pub counts: [Count; EVENTS_MAX],
}
