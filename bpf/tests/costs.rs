//! Programs whose cost is measured: reads of a published context, in a loop and at each system call.
#![no_std]

use core::ffi::c_void;

use perfmon_bpf::*;

license!();
contexts!();

setting!(
    /// Reads of all registers in one run of `loops`.
    ROUNDS: u32 = 1000
);

#[inline(always)]
fn read<const N: usize>() -> i64 {
    let mut values = [PerfValue { counter: 0, enabled: 0, running: 0 }; N];
    pfm_read_pmds(pfm_context_of_task(), 0, &mut values)
}

#[inline(always)]
fn repeat(body: impl Fn() -> i64) -> u32 {
    let mut round = 0u32;
    let mut done = 0u32;
    while round < 1000 && round < get(&ROUNDS) {
        if body() > 0 {
            done += 1;
        }
        round += 1;
    }
    done
}

/// Declares a program that reads so many registers, often (`raw_tp`, to be run) and once (at system calls).
macro_rules! reads {
    ($($name:ident $at_call:ident $number:literal)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "raw_tp")]
        pub unsafe extern "C" fn $name(_ctx: *mut c_void) -> u32 {
            repeat(|| read::<$number>())
        }

        #[unsafe(no_mangle)]
        #[unsafe(link_section = "tp_btf/sys_enter")]
        pub unsafe extern "C" fn $at_call(_ctx: *mut c_void) -> u32 {
            read::<$number>();
            0
        }
    )*};
}

reads!(reads_1 call_1 1 reads_4 call_4 4 reads_8 call_8 8);

#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/sys_enter")]
pub unsafe extern "C" fn call_empty(_ctx: *mut c_void) -> u32 {
    0
}
