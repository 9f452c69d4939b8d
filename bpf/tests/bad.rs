//! Programs that the verifier must refuse, to see how a refusal is told.

#![no_std]

use core::ffi::c_void;

use perfmon_bpf::*;

license!();

map!(SOME: ARRAY, key u32, value u64, entries 8);

/// Forgets to check a pointer. (The index is no constant: newer kernels know that an element with a constant
/// index inside the array exists, and load such a program.)
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn unchecked(_ctx: *mut c_void) -> u32 {
    let value = element(&SOME, ktime_get_ns() as u32 & 7);
    unsafe { *value += 1 };
    0
}

/// The same after a long way, so that the verifier's log does not fit into a small buffer.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn unchecked_late(_ctx: *mut c_void) -> u32 {
    let mut index = 0;
    for _ in 0..4000 {
        index ^= ktime_get_ns() as u32;
    }
    let value = element(&SOME, index & 7);
    unsafe { *value += 1 };
    0
}

/// Reads behind the end of its context.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn wrong_context(ctx: *mut c_void) -> u32 {
    unsafe { context_word::<1000>(ctx) as u32 }
}
