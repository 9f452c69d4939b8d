//! What stands between events and call-backs, and binds tasks to published contexts.
#![no_std]

use core::ffi::c_void;

use perfmon_bpf::pfm::*;
use perfmon_bpf::*;

license!();
contexts!();

map!(
    /// Call-backs by context, of each type of program.
    pfm_callbacks: PROG_ARRAY, sizes 4 4, entries 1
);
map!(pfm_tracepoint_callbacks: PROG_ARRAY, sizes 4 4, entries 1);
map!(pfm_probe_callbacks: PROG_ARRAY, sizes 4 4, entries 1);
map!(
    /// Number plus 1 of the context that the next iteration binds; 0 takes the binding away.
    pfm_bind: ARRAY, key u32, value u64, entries 1, flags MMAPABLE
);

/// The context at `index` if it is started.
#[inline(always)]
unsafe fn started(index: i64) -> *mut Context {
    if index < 0 {
        return core::ptr::null_mut();
    }
    unsafe {
        let context = context(at(&pfm_contexts), index as u32);
        if context.is_null() || (*context).flags & STARTED == 0 {
            return core::ptr::null_mut();
        }
        context
    }
}

/// Goes on with the call-back, which finds the context by the same cookie; comes back only if there is none.
#[inline(always)]
unsafe fn hand_over(ctx: *mut c_void, context: *mut Context, index: u32, callbacks: *const c_void) {
    unsafe {
        bump(&raw mut (*context).samples);
        tail_call(ctx, callbacks, index);
        bump(&raw mut (*context).unplugged);
    }
}

/// At each overflow of a context's sampling event, which carries the context's index as its cookie.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn overflow(ctx: *mut c_void) -> u32 {
    unsafe {
        let index = get_attach_cookie(ctx) as u32;
        let context = started(index as i64);
        if !context.is_null() {
            hand_over(ctx, context, index, at(&pfm_callbacks));
        }
        1
    }
}

/// At each hit: counts it, and says whether it is one to hand over.
#[inline(always)]
unsafe fn is_due(context: *mut Context) -> bool {
    unsafe {
        // Tasks that are preempted in a probe may be here at the same time: one of them takes the last.
        if add(&raw mut (*context).hits_left, u64::MAX) != 1 {
            return false;
        }
        add(&raw mut (*context).hits_left, (*context).hit_period);
        true
    }
}

/// At each hit, in any task, of a tracepoint that a context's call-back is for: the cookie is the context's index.
#[inline(always)]
unsafe fn hit(ctx: *mut c_void, callbacks: *const c_void) -> u32 {
    unsafe {
        let index = get_attach_cookie(ctx) as u32;
        let context = started(index as i64);
        if context.is_null() {
            return 1;
        }
        let mine = if (*context).flags & SYSTEM_WIDE != 0 {
            pfm_context_of_cpu()
        } else {
            pfm_context_of_task()
        };
        if mine == index as i64 && is_due(context) {
            hand_over(ctx, context, index, callbacks);
        }
        1
    }
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "tp")]
pub unsafe extern "C" fn hit_tracepoint(ctx: *mut c_void) -> u32 {
    unsafe { hit(ctx, at(&pfm_tracepoint_callbacks)) }
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "kprobe")]
pub unsafe extern "C" fn hit_probe(ctx: *mut c_void) -> u32 {
    unsafe { hit(ctx, at(&pfm_probe_callbacks)) }
}

/// Run over one task: binds it to the context that `pfm_bind` names.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub unsafe extern "C" fn bind(ctx: *mut c_void) -> u32 {
    unsafe {
        let file = *(context_word::<0>(ctx) as *const u64) as *mut c_void;
        let task = context_word::<1>(ctx);
        let number = element(&pfm_bind, 0);
        if task != 0 && !number.is_null() && bind_task(at(&pfm_tasks), task, *number) == 0 {
            let done = 1u8;
            seq_write(file, (&raw const done).cast(), 1);
        }
        0
    }
}
