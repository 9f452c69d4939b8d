// What a published context is to programs in the kernel and to user space: integers in C layout, no pointers.

/// Data registers that a context has, at most.
pub const PMDS_MAX: usize = 64;

/// `Context::state`: there is none, or it has been freed.
pub const FREE: u32 = 0;
/// It can be read.
pub const LOADED: u32 = 1;

/// `Context::flags`: it counts; without it values are those of the moment when it was stopped.
pub const STARTED: u32 = 1;
/// It belongs to a CPU, and not to a thread.
pub const SYSTEM_WIDE: u32 = 2;

/// What one event counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Value {
    pub value: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

/// A data register.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Pmd {
    /// Its event set.
    pub set: u32,
    pub padding: u32,
    /// What its event said when it was started: its value is what came since, and `frozen`.
    pub base: Value,
    /// Its value when it was stopped.
    pub frozen: Value,
}

/// A context (element of `pfm_contexts`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub state: u32,
    pub flags: u32,
    /// The thread, as its publisher numbers it, or the CPU.
    pub target: u32,
    pub nr_pmds: u32,
    /// The event of its first register in `pfm_events`; the others follow.
    pub first_event: u32,
    /// The set whose registers count now.
    pub active_set: u32,
    /// Set while a program changes it: one that interrupts it on the same CPU gets `-EBUSY`.
    pub busy: u64,
    /// Each start and stop counts here.
    pub generation: u64,
    /// Overflows and hits that were handed to a call-back,
    pub samples: u64,
    /// and those that found none.
    pub unplugged: u64,
    /// Hits still to come until the next one is handed over, and after that one.
    pub hits_left: u64,
    pub hit_period: u64,
    pub pmds: [Pmd; PMDS_MAX],
}
