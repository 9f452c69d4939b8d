//! Contexts that user space has published, for programs anywhere: found by task, CPU or index, read, started, stopped.
//!
//! [`contexts!`](crate::contexts) declares the maps and the functions `pfm_*` of a program; the loader puts the
//! publisher's maps in the place of those. Nothing allocates, and nothing waits.

use core::ffi::c_void;

use crate::helpers::*;
pub use crate::layout::*;
use crate::maps::IF_ABSENT;
use crate::{PerfValue, atomics};

/// There is no such context, register or event: it was freed, or its owner has ended.
pub const ENOENT: i64 = -2;
/// The register's set is not the active one.
pub const EAGAIN: i64 = -11;
/// A program on this CPU is just changing the context.
pub const EBUSY: i64 = -16;
/// The context belongs to another task, or another CPU.
pub const EINVAL: i64 = -22;

/// What [`contexts!`](crate::contexts)'s `pfm_context_info` gives.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Info {
    /// [`STARTED`], [`SYSTEM_WIDE`].
    pub flags: u32,
    /// The thread or CPU.
    pub target: u32,
    /// How many registers it has.
    pub nr_pmds: u32,
    /// The set whose registers count now.
    pub active_set: u32,
    /// Starts and stops so far.
    pub generation: u64,
    /// Overflows and hits that were handed to a call-back.
    pub samples: u64,
}

/// The context at `index`, or null if there is none or it is freed.
///
/// # Safety
///
/// `contexts` is a map of [`Context`]s.
#[inline(always)]
pub unsafe fn context(contexts: *const c_void, index: u32) -> *mut Context {
    let context: *mut Context =
        unsafe { map_lookup_elem(contexts, (&raw const index).cast()) }.cast();
    if context.is_null() || unsafe { (&raw const (*context).state).read_volatile() } != LOADED {
        return core::ptr::null_mut();
    }
    context
}

/// Reads the register at `number` of a context as its event says now.
#[inline(always)]
unsafe fn raw(
    events: *const c_void,
    context: *mut Context,
    number: u32,
    to: *mut PerfValue,
) -> i64 {
    unsafe {
        let index = ((*context).first_event + number) as u64;
        perf_event_read_value(events, index, to.cast(), PerfValue::BYTES)
    }
}

#[inline(always)]
unsafe fn pmd(context: *mut Context, number: u32) -> *mut Pmd {
    unsafe { (&raw mut (*context).pmds).cast::<Pmd>().add(number as usize) }
}

/// Reads the first `wanted` registers (a constant) of a context: says how many, or what went wrong.
///
/// # Safety
///
/// `contexts` and `events` are the publisher's maps; `to` points to `wanted` values.
#[inline(always)]
pub unsafe fn read_pmds(
    contexts: *const c_void,
    events: *const c_void,
    index: u32,
    to: *mut PerfValue,
    wanted: u32,
) -> i64 {
    unsafe {
        let context = context(contexts, index);
        if context.is_null() {
            return ENOENT;
        }
        let started = (*context).flags & STARTED != 0;
        let mut number = 0u32;
        while number < wanted && number < PMDS_MAX as u32 {
            if number >= (*context).nr_pmds {
                break;
            }
            let pmd = pmd(context, number);
            if (*pmd).set != (*context).active_set {
                return EAGAIN;
            }
            let to = to.add(number as usize);
            let frozen = (*pmd).frozen;
            if started {
                let result = raw(events, context, number, to);
                if result != 0 {
                    return result;
                }
                (*to).counter = (*to).counter.wrapping_sub((*pmd).base.value) + frozen.value;
                (*to).enabled =
                    (*to).enabled.wrapping_sub((*pmd).base.enabled_ns) + frozen.enabled_ns;
                (*to).running =
                    (*to).running.wrapping_sub((*pmd).base.running_ns) + frozen.running_ns;
            } else {
                (*to).counter = frozen.value;
                (*to).enabled = frozen.enabled_ns;
                (*to).running = frozen.running_ns;
            }
            number += 1;
        }
        number as i64
    }
}

/// Starts (`start`) or stops a context by its flag: 0, also if it was so already.
///
/// # Safety
///
/// As for [`read_pmds`].
#[inline(always)]
pub unsafe fn switch(
    contexts: *const c_void,
    events: *const c_void,
    index: u32,
    start: bool,
) -> i64 {
    unsafe {
        let context = context(contexts, index);
        if context.is_null() {
            return ENOENT;
        }
        if atomics::exchange(&raw mut (*context).busy, 1) != 0 {
            return EBUSY;
        }
        let is_started = (*context).flags & STARTED != 0;
        let mut result = 0;
        if is_started != start {
            let mut number = 0u32;
            while number < PMDS_MAX as u32 {
                if number >= (*context).nr_pmds {
                    break;
                }
                let mut now = PerfValue { counter: 0, enabled: 0, running: 0 };
                let pmd = pmd(context, number);
                // The first register shows whether this is the place; the others then can be read, too.
                result = raw(events, context, number, &raw mut now);
                if result != 0 {
                    break;
                }
                if start {
                    (*pmd).base.value = now.counter;
                    (*pmd).base.enabled_ns = now.enabled;
                    (*pmd).base.running_ns = now.running;
                } else {
                    (*pmd).frozen.value += now.counter.wrapping_sub((*pmd).base.value);
                    (*pmd).frozen.enabled_ns += now.enabled.wrapping_sub((*pmd).base.enabled_ns);
                    (*pmd).frozen.running_ns += now.running.wrapping_sub((*pmd).base.running_ns);
                }
                number += 1;
            }
            if result == 0 {
                (*context).flags ^= STARTED;
                (*context).generation += 1;
            }
        }
        atomics::exchange(&raw mut (*context).busy, 0);
        result
    }
}

/// What a context is and how it stands.
///
/// # Safety
///
/// As for [`read_pmds`]; `to` points to an [`Info`].
#[inline(always)]
pub unsafe fn context_info(contexts: *const c_void, index: u32, to: *mut Info) -> i64 {
    unsafe {
        let context = context(contexts, index);
        if context.is_null() {
            return ENOENT;
        }
        (*to).flags = (*context).flags;
        (*to).target = (*context).target;
        (*to).nr_pmds = (*context).nr_pmds;
        (*to).active_set = (*context).active_set;
        (*to).generation = (*context).generation;
        (*to).samples = (*context).samples;
        0
    }
}

/// The index of the current task's context.
///
/// # Safety
///
/// `tasks` is the publisher's map.
#[inline(always)]
pub unsafe fn context_of_task(tasks: *const c_void) -> i64 {
    unsafe {
        let task = get_current_task_btf();
        let number: *const u64 = task_storage_get(tasks, task, core::ptr::null(), 0).cast();
        if number.is_null() || *number == 0 {
            return ENOENT;
        }
        *number as i64 - 1
    }
}

/// The index of this CPU's context.
///
/// # Safety
///
/// `cpus` is the publisher's map.
#[inline(always)]
pub unsafe fn context_of_cpu(cpus: *const c_void) -> i64 {
    unsafe {
        let cpu = get_smp_processor_id();
        let number: *const u64 = map_lookup_elem(cpus, (&raw const cpu).cast()).cast();
        if number.is_null() || *number == 0 {
            return ENOENT;
        }
        *number as i64 - 1
    }
}

/// Notes for whom a task's context is, for an iterator that user space runs.
///
/// # Safety
///
/// `tasks` is the publisher's map, `task` a trusted pointer to a `task_struct`.
#[inline(always)]
pub unsafe fn bind_task(tasks: *const c_void, task: u64, number: u64) -> i64 {
    unsafe {
        let slot: *mut u64 = task_storage_get(tasks, task, core::ptr::null(), IF_ABSENT).cast();
        if slot.is_null() {
            return ENOENT;
        }
        *slot = number;
        0
    }
}

/// Declares the maps of published contexts and these functions:
///
/// * `pfm_context_of_task() -> i64`, `pfm_context_of_cpu() -> i64`: the index of the current task's or CPU's context;
/// * `pfm_read_pmds::<N>(context, &mut [PerfValue; N]) -> i64`: reads the first N registers, says how many;
/// * `pfm_context_info(context, &mut Info) -> i64`;
/// * `pfm_start(context) -> i64`, `pfm_stop(context) -> i64`;
/// * `pfm_emit(&T) -> i64`: sends a record to the publisher.
///
/// All give a negative errno if they can't: [`ENOENT`] for no such context, [`EINVAL`] in another task or on another CPU
/// than the context's, [`EAGAIN`] for a register of an inactive set, [`EBUSY`] in the middle of a change.
#[macro_export]
macro_rules! contexts {
    () => {
        $crate::map!(pfm_contexts: ARRAY, key u32, value $crate::pfm::Context, entries 1, flags $crate::MMAPABLE);
        $crate::map!(pfm_events: PERF_EVENT_ARRAY, sizes 4 4, entries 1);
        $crate::map!(pfm_tasks: TASK_STORAGE, key i32, value u64, entries 0, flags $crate::NO_PREALLOC);
        $crate::map!(pfm_cpus: ARRAY, key u32, value u64, entries 1, flags $crate::MMAPABLE);
        $crate::map!(pfm_samples: PERCPU_ARRAY, key u32, value $crate::pfm::Sample, entries 3);
        $crate::map!(pfm_ring: RINGBUF, bytes 4096);

        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_context_of_task() -> i64 {
            unsafe { $crate::pfm::context_of_task($crate::at(&pfm_tasks)) }
        }
        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_context_of_cpu() -> i64 {
            unsafe { $crate::pfm::context_of_cpu($crate::at(&pfm_cpus)) }
        }
        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_read_pmds<const N: usize>(context: i64, to: &mut [$crate::PerfValue; N]) -> i64 {
            let to: *mut [$crate::PerfValue; N] = to;
            let (contexts, events) = ($crate::at(&pfm_contexts), $crate::at(&pfm_events));
            unsafe { $crate::pfm::read_pmds(contexts, events, context as u32, to.cast(), N as u32) }
        }
        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_context_info(context: i64, to: &mut $crate::pfm::Info) -> i64 {
            unsafe { $crate::pfm::context_info($crate::at(&pfm_contexts), context as u32, to) }
        }
        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_start(context: i64) -> i64 {
            let (contexts, events) = ($crate::at(&pfm_contexts), $crate::at(&pfm_events));
            unsafe { $crate::pfm::switch(contexts, events, context as u32, true) }
        }
        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_stop(context: i64) -> i64 {
            let (contexts, events) = ($crate::at(&pfm_contexts), $crate::at(&pfm_events));
            unsafe { $crate::pfm::switch(contexts, events, context as u32, false) }
        }
        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_emit<T>(record: &T) -> i64 {
            let record: *const T = record;
            let bytes = size_of::<T>() as u64;
            unsafe { $crate::ringbuf_output($crate::at(&pfm_ring), record.cast(), bytes, 0) }
        }
    };
}

/// Makes `body`, a function of a `&Sample`, a call-back: programs `NAME`, `NAME_tracepoint` and `NAME_probe`, which the
/// publisher's stubs go on with at overflows, and at hits of tracepoints and probes. It needs [`contexts!`](crate::contexts).
///
/// ```text
/// contexts!();
/// callback!(on_sample, body);
/// fn body(sample: &pfm::Sample) { ... }
/// ```
#[macro_export]
macro_rules! callback {
    ($name:ident, $name_tracepoint:ident, $name_probe:ident, $body:path) => {
        $crate::callback!(@entry $name, "perf_event", $crate::pfm::OVERFLOW, $body);
        $crate::callback!(@entry $name_tracepoint, "tp", $crate::pfm::HIT_OF_TRACEPOINT, $body);
        $crate::callback!(@entry $name_probe, "kprobe", $crate::pfm::HIT_OF_PROBE, $body);
    };
    (@entry $name:ident, $section:literal, $kind:expr, $body:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(link_section = $section)]
        pub unsafe extern "C" fn $name(_ctx: *mut core::ffi::c_void) -> u32 {
            let sample: *const $crate::pfm::Sample = $crate::element(&pfm_samples, $kind);
            if !sample.is_null() {
                $body(unsafe { &*sample });
            }
            // What a tracepoint's program returns decides whether its events count.
            1
        }
    };
}
