//! A program for each kind of place that programs attach to, for the tests of the loader.

#![no_std]

use core::ffi::c_void;

use perfmon_bpf::*;

license!();

map!(
    /// The thread that is looked at, as [`who`] numbers it.
    WANTED: ARRAY, key u32, value u64, entries 1
);
map!(
    /// Runs of [`on_sample`], by cookie.
    RUNS: HASH, key u64, value u64, entries 16
);
map!(
    /// Runs of [`on_call`] and of [`on_switch`] in the thread.
    SEEN: ARRAY, key u32, value u64, entries 2, flags MMAPABLE
);
map!(
    /// Arrays in an array.
    NESTED: ARRAY, key u32, value [[u64; 3]; 5], entries 1
);

setting!(
    /// The number of the system call that is counted.
    CALL: u64 = 0
);
setting!(
    /// Where a `task_struct` has its number, in bytes.
    PID_OFFSET: u32 = 0
);

/// Adds 1 to an element of `SEEN` if this is the thread.
#[inline(always)]
fn see(index: u32) {
    let (wanted, seen) = (element(&WANTED, 0), element(&SEEN, index));
    if !wanted.is_null() && !seen.is_null() && unsafe { *wanted } == tid() as u64 {
        unsafe { bump(seen) };
    }
}

/// Returns the calling thread's number.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn who(_ctx: *mut c_void) -> u32 {
    tid()
}

/// Counts the runs under each cookie.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn on_sample(ctx: *mut c_void) -> u32 {
    let cookie = unsafe { get_attach_cookie(ctx) };
    let runs = lookup(&RUNS, &cookie);
    if runs.is_null() {
        update(&RUNS, &cookie, &1, ANY);
    } else {
        unsafe { bump(runs) };
    }
    0
}

/// Counts a system call of the thread.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp/sys_enter")]
pub unsafe extern "C" fn on_call(ctx: *mut c_void) -> u32 {
    if unsafe { context_word::<1>(ctx) } == get(&CALL) {
        see(0);
    }
    0
}

/// Counts how often the thread leaves a CPU.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/sched_switch")]
pub unsafe extern "C" fn on_switch(_ctx: *mut c_void) -> u32 {
    see(1);
    0
}

/// Writes the number of each task.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub unsafe extern "C" fn on_task(ctx: *mut c_void) -> u32 {
    unsafe {
        let (meta, task) = (context_word::<0>(ctx) as *const u64, context_word::<1>(ctx));
        if task != 0 {
            let mut number = 0u32;
            let from = (task + get(&PID_OFFSET) as u64) as *const c_void;
            probe_read_kernel((&raw mut number).cast(), 4, from);
            seq_write(*meta as *mut c_void, (&raw const number).cast(), 4);
        }
    }
    0
}
