//! What each call of a function counted: a probe at its begin and one at its end read the registers of the task's
//! published context.
//!
//! `crates/perfmon/examples/kernel_api.rs` loads and attaches it. The same in C is `faults_per_call_c.bpf.c`.

#![no_std]

use core::ffi::c_void;

use perfmon_bpf::*;

license!();
contexts!();

/// What is sent for each call.
#[repr(C)]
pub struct Call {
    /// What user space gave with the probe: which function it is.
    pub function: u64,
    /// How much the first register grew.
    pub count: u64,
}

/// Of all calls.
#[repr(C)]
pub struct Totals {
    pub calls: u64,
    pub count: u64,
    /// The last result that was no success.
    pub error: i64,
}

map!(
    /// The first register when the task's call began.
    BEGUN: TASK_STORAGE, key i32, value u64, entries 0, flags NO_PREALLOC
);
map!(TOTALS: ARRAY, key u32, value Totals, entries 1, flags MMAPABLE);

/// The current task's first register; `None` if it has no context, or it can't be read now.
#[inline(always)]
fn first_register() -> Option<u64> {
    let context = pfm_context_of_task();
    let mut values = [PerfValue::default()];
    let result = pfm_read_pmds(context, 0, &mut values);
    if result == 1 {
        return Some(values[0].counter);
    }
    let totals = element(&TOTALS, 0);
    if context >= 0 && !totals.is_null() {
        unsafe { (*totals).error = result };
    }
    None
}

/// At the function's first instruction.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub unsafe extern "C" fn call_begins(_ctx: *mut c_void) -> u32 {
    if let Some(count) = first_register() {
        let begun = unsafe { task_value_or_new(&BEGUN, get_current_task_btf()) };
        if !begun.is_null() {
            unsafe { *begun = count };
        }
    }
    1
}

/// Where it returns to.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uretprobe")]
pub unsafe extern "C" fn call_ends(ctx: *mut c_void) -> u32 {
    let begun = unsafe { task_value(&BEGUN, get_current_task_btf()) };
    let totals = element(&TOTALS, 0);
    if let Some(count) = first_register()
        && !begun.is_null()
        && !totals.is_null()
    {
        let count = count.wrapping_sub(unsafe { *begun });
        unsafe {
            bump(&raw mut (*totals).calls);
            add(&raw mut (*totals).count, count);
        }
        pfm_emit(&Call { function: unsafe { get_attach_cookie(ctx) }, count });
    }
    1
}
