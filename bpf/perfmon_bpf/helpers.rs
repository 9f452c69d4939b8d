//! The kernel's helper functions, under their names without `bpf_`.
//!
//! Where nothing else is said a helper gives 0, or a negative errno. `flags` are 0 where none are named.

use core::ffi::c_void;

/// Declares a helper of the kernel that this library does not have: its number is its address.
///
/// ```text
/// helper!(/// Sends a signal to the current process.
///     send_signal = 109(signal: u32) -> i64);
/// ```
///
/// `helper!(safe …)` declares one that can be called without `unsafe`: it takes no pointers.
#[macro_export]
macro_rules! helper {
    ($(#[$attribute:meta])* safe $name:ident = $number:literal() -> $result:ty) => {
        $(#[$attribute])*
        #[inline(always)]
        pub fn $name() -> $result {
            let helper: unsafe extern "C" fn() -> $result =
                unsafe { core::mem::transmute::<usize, _>($number) };
            unsafe { helper() }
        }
    };
    ($(#[$attribute:meta])* $name:ident = $number:literal($($argument:ident: $type:ty),* $(,)?)
        -> $result:ty) => {
        $(#[$attribute])*
        #[inline(always)]
        pub unsafe fn $name($($argument: $type),*) -> $result {
            let helper: unsafe extern "C" fn($($type),*) -> $result =
                unsafe { core::mem::transmute::<usize, _>($number) };
            unsafe { helper($($argument),*) }
        }
    };
}

/// An event's count, as the kernel's helpers give it.
#[doc(alias = "bpf_perf_event_value")]
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct PerfValue {
    /// Units of the event.
    pub counter: u64,
    /// Nanoseconds for which the event was enabled.
    pub enabled: u64,
    /// Nanoseconds for which it counted.
    pub running: u64,
}

impl PerfValue {
    /// Its size as helpers want it told.
    pub const BYTES: u32 = size_of::<Self>() as u32;
}

// Maps. Take `lookup`, `update` and the like for maps with types.

helper!(
    /// The value of `key`, or null.
    ///
    /// # Safety
    ///
    /// `key` points to as many bytes as the map's keys have.
    map_lookup_elem = 1(map: *const c_void, key: *const c_void) -> *mut c_void
);
helper!(
    /// Sets the value of `key`; flags: [`ANY`](crate::ANY), [`IF_ABSENT`](crate::IF_ABSENT),
    /// [`IF_PRESENT`](crate::IF_PRESENT).
    ///
    /// # Safety
    ///
    /// `key` and `value` point to as many bytes as the map's keys and values have.
    map_update_elem = 2(map: *const c_void, key: *const c_void, value: *const c_void, flags: u64) -> i64
);
helper!(
    /// Removes `key` and its value; -2 (ENOENT) if there is none.
    ///
    /// # Safety
    ///
    /// `key` points to as many bytes as the map's keys have.
    map_delete_elem = 3(map: *const c_void, key: *const c_void) -> i64
);
helper!(
    /// What a `TASK_STORAGE` map has for a task; with flags 1 it makes it if there is none, of `value` or, if
    /// that is null, of zeros.
    ///
    /// # Safety
    ///
    /// `task` is a trusted pointer to a `task_struct`; `value` is null or points to a value.
    task_storage_get = 156(map: *const c_void, task: u64, value: *const c_void, flags: u64) -> *mut c_void
);
helper!(
    /// Removes what a `TASK_STORAGE` map has for a task; -2 (ENOENT) if that is nothing.
    ///
    /// # Safety
    ///
    /// `task` is a trusted pointer to a `task_struct`.
    task_storage_delete = 157(map: *const c_void, task: u64) -> i64
);

// Ring buffers.

helper!(
    /// Copies `size` bytes into a ring buffer; -11 (EAGAIN) if it has no room. Flags:
    /// [`NO_WAKEUP`](crate::NO_WAKEUP), [`FORCE_WAKEUP`](crate::FORCE_WAKEUP).
    ///
    /// # Safety
    ///
    /// `data` points to `size` bytes.
    ringbuf_output = 130(ring: *const c_void, data: *const c_void, size: u64, flags: u64) -> i64
);
helper!(
    /// Room for `size` bytes, a constant, or null. [`reserve`](crate::reserve) has a type.
    ///
    /// # Safety
    ///
    /// Every way out of the program submits or discards it.
    ringbuf_reserve = 131(ring: *const c_void, size: u64, flags: u64) -> *mut c_void
);
helper!(
    /// Hands what was reserved to the reader. Flags as for [`ringbuf_output`]. It can't fail.
    ///
    /// # Safety
    ///
    /// `data` was reserved, is not null, and is not used afterwards.
    ringbuf_submit = 132(data: *mut c_void, flags: u64) -> ()
);
helper!(
    /// Gives up what was reserved: the reader does not see it. Flags as for [`ringbuf_output`].
    ///
    /// # Safety
    ///
    /// As for [`ringbuf_submit`].
    ringbuf_discard = 133(data: *mut c_void, flags: u64) -> ()
);

// Where and when.

helper!(
    /// Nanoseconds since boot without suspended time: `CLOCK_MONOTONIC`.
    safe ktime_get_ns = 5() -> u64
);
helper!(
    /// The number of the CPU that the program runs on.
    safe get_smp_processor_id = 8() -> u32
);
helper!(
    /// The current process (its tgid) in the upper 32 bits and the current thread in the lower ones, as the
    /// initial PID namespace numbers them.
    safe get_current_pid_tgid = 14() -> u64
);
helper!(
    /// The current thread's name, ended by zeros. `size` is in bytes, 16 hold any name.
    ///
    /// # Safety
    ///
    /// `buffer` points to `size` bytes.
    get_current_comm = 16(buffer: *mut c_void, size: u32) -> i64
);
helper!(
    /// The current thread's `task_struct` as a trusted pointer.
    safe get_current_task_btf = 158() -> u64
);
helper!(
    /// The registers that a task had when it entered the kernel, as a pointer to `pt_regs`.
    ///
    /// # Safety
    ///
    /// `task` is a trusted pointer to a `task_struct`.
    task_pt_regs = 175(task: u64) -> u64
);

/// The current process: its tgid, as the initial PID namespace numbers it.
#[inline(always)]
pub fn tgid() -> u32 {
    (get_current_pid_tgid() >> 32) as u32
}

/// The current thread, as the initial PID namespace numbers it.
#[inline(always)]
pub fn tid() -> u32 {
    get_current_pid_tgid() as u32
}

// What the program was called for.

helper!(
    /// The number that user space gave with this attachment of the program; 0 if it gave none.
    ///
    /// # Safety
    ///
    /// `ctx` is the program's context.
    get_attach_cookie = 174(ctx: *mut c_void) -> u64
);
helper!(
    /// The address of the function that a probe or an `fentry` program was called for; 0 if it is none.
    ///
    /// # Safety
    ///
    /// `ctx` is the program's context.
    get_func_ip = 173(ctx: *mut c_void) -> u64
);

// Events.

helper!(
    /// Reads an event of a `PERF_EVENT_ARRAY`. The lower 32 bits of `flags` are its index. An event counts for
    /// one task or one CPU, and can be read only there: -22 (EINVAL) elsewhere, -2 (ENOENT) if there is none.
    ///
    /// # Safety
    ///
    /// `value` points to `size` bytes, which are [`PerfValue::BYTES`].
    perf_event_read_value = 55(map: *const c_void, flags: u64, value: *mut c_void, size: u32) -> i64
);
helper!(
    /// Reads the event that this `perf_event` program is called for.
    ///
    /// # Safety
    ///
    /// `ctx` is the program's context; `value` points to `size` bytes, which are [`PerfValue::BYTES`].
    perf_prog_read_value = 56(ctx: *mut c_void, value: *mut c_void, size: u32) -> i64
);

// Memory of others.

helper!(
    /// Copies `size` bytes of user memory of the current process; -14 (EFAULT) if they are not there now, and
    /// the target is zeros.
    ///
    /// # Safety
    ///
    /// `to` points to `size` bytes; `from` may be any number.
    probe_read_user = 112(to: *mut c_void, size: u32, from: *const c_void) -> i64
);
helper!(
    /// Copies `size` bytes of kernel memory; -14 (EFAULT) if they are not there, and the target is zeros.
    ///
    /// # Safety
    ///
    /// `to` points to `size` bytes; `from` may be any number.
    probe_read_kernel = 113(to: *mut c_void, size: u32, from: *const c_void) -> i64
);

// Control.

helper!(
    /// Goes on with another program of the same kind and does not come back; comes back with a negative errno
    /// if there is none at `index`, or after 33 such steps.
    ///
    /// # Safety
    ///
    /// `ctx` is the program's context; `programs` is a `PROG_ARRAY`.
    tail_call = 12(ctx: *mut c_void, programs: *const c_void, index: u32) -> i64
);

/// What [`bpf_loop`] calls with the number of the round, from 0, and its `data`; 1 ends the loop, 0 goes on.
pub type LoopBody = unsafe extern "C" fn(round: u32, data: *mut c_void) -> i64;

helper!(
    /// Calls `body` for `rounds` times at most (2^23 is the limit) and gives how often. The verifier looks at
    /// the body only once, so it takes loops that are long. Since Linux 5.17.
    ///
    /// # Safety
    ///
    /// `data` is what `body` takes it for.
    bpf_loop = 181(rounds: u32, body: LoopBody, data: *mut c_void, flags: u64) -> i64
);
helper!(
    /// Writes bytes out of an iterator program; -75 (EOVERFLOW) if they don't fit, after which the kernel
    /// repeats the step with more room.
    ///
    /// # Safety
    ///
    /// `seq` is the `seq_file` of the program's context; `data` points to `size` bytes.
    seq_write = 127(seq: *mut c_void, data: *const c_void, size: u32) -> i64
);
