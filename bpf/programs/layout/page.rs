// What the programs of the mapped page and user space share: integers in C layout, no pointers.

/// The first argument of `control`: gives the calling thread the slot of the second, unless it has one. The result is the
/// number of its slot plus 1, or 0 for lack of memory.
pub const WATCH: u64 = 0;
/// Takes its slot away from the calling thread. The result is 1, or 0 if it had none.
pub const UNWATCH: u64 = 1;
/// Puts what the calling thread's slot would say if the thread's coming to its CPU had been seen into `Slot::seen_*`.
/// The result is 1; 0 if the slot changed meanwhile; 2 if the thread has none.
pub const LOOK: u64 = 2;

/// `Slot::ended`: the thread is ending, and the kernel counts nothing more for it.
pub const SETTLED: u64 = 1;
/// It will never run again: the slot may be another's.
pub const GONE: u64 = 2;

/// What one thread has counted since it got the slot (element of `SLOTS`). The kernel writes it with interrupts off, on the
/// CPU that the thread runs on; the first eight words are what is read.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Odd while the rest is written.
    pub sequence: u64,
    /// When the thread came to its CPU, by the monotonic clock; 0 while it has none, or its coming was not seen.
    pub on_since_ns: u64,
    /// Time on CPUs before that.
    pub run_ns: u64,
    /// Times that it left a CPU.
    pub switches: u64,
    /// Times that it came to another CPU than before.
    pub migrations: u64,
    /// Page faults in user mode.
    pub user_faults: u64,
    /// Page faults in the kernel.
    pub kernel_faults: u64,
    /// 0, `SETTLED` or `GONE`.
    pub ended: u64,

    /// The kernel's count of its moves when it left its last CPU.
    pub moves: u64,
    /// The monotonic clock less the scheduler's, when that was last known.
    pub clock_offset_ns: u64,
    /// It had events of its own, which the kernel takes away at its end.
    pub had_events: u64,
    /// Of `LOOK`: `run_ns` with the time since it came to its CPU.
    pub seen_run_ns: u64,
    /// Of `LOOK`: `migrations`.
    pub seen_migrations: u64,
}

/// What is known of a watched task (value of `TASKS`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The number of its slot, plus 1; 0 for none.
    pub slot: u64,
}
