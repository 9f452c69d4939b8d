//! Contexts that user space has published, for programs anywhere: found by task, CPU or index, read, started, stopped.
//!
//! [`contexts!`](crate::contexts) declares the maps and the functions `pfm_*` of a program; the loader puts the
//! publisher's maps in the place of those. Nothing allocates, and nothing waits.
//!
//! What they promise is in docs/kernel-api.md. The same in C is in perfmon.bpf.h.

use core::ffi::c_void;

use crate::helpers::*;
pub use crate::layout::*;
use crate::{PerfValue, atomics};

/// There is no such context, register or event: it was freed, or its owner has ended.
pub const ENOENT: i64 = -2;
/// The register's set is not the active one.
pub const EAGAIN: i64 = -11;
/// A program on this CPU is just changing the context.
pub const EBUSY: i64 = -16;
/// The context belongs to another task, or another CPU.
pub const EINVAL: i64 = -22;

/// The kinds of a [`Sample`].
pub const OVERFLOW: u32 = 0;
/// A hit of a tracepoint.
pub const HIT_OF_TRACEPOINT: u32 = 1;
/// A hit of a uprobe or kprobe.
pub const HIT_OF_PROBE: u32 = 2;

/// What a call-back is called for.
#[repr(C)]
pub struct Sample {
    /// The context's index.
    pub context: u32,
    /// [`OVERFLOW`] or one of the hits.
    pub kind: u32,
    /// Process and thread: upper and lower half.
    pub pid_tgid: u64,
    /// `CLOCK_MONOTONIC`
    pub time_ns: u64,
}

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

/// Of `task_storage_get`: makes what is not there.
const CREATE: u64 = 1;

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

/// Reads up to `wanted` registers (a constant) of a context from `first` on: says how many, or what went wrong.
///
/// # Safety
///
/// `contexts` and `events` are the publisher's maps; `to` points to `wanted` values.
#[inline(always)]
pub unsafe fn read_pmds(
    contexts: *const c_void,
    events: *const c_void,
    index: u32,
    first: u32,
    to: *mut PerfValue,
    wanted: u32,
) -> i64 {
    unsafe {
        let context = context(contexts, index);
        if context.is_null() {
            return ENOENT;
        }
        if (&raw const (*context).busy).read_volatile() != 0 {
            return EBUSY;
        }
        let is_started = (*context).flags & STARTED != 0;
        let mut done = 0u32;
        while done < wanted && done < PMDS_MAX as u32 {
            let number = first.wrapping_add(done);
            if number >= (*context).nr_pmds || number >= PMDS_MAX as u32 {
                break;
            }
            let pmd = pmd(context, number);
            if (*pmd).set != (*context).active_set {
                return if done == 0 { EAGAIN } else { done as i64 };
            }
            let to = to.add(done as usize);
            // Also when it is stopped: it says whether this is the place, and whether its owner lives.
            let result = raw(events, context, number, to);
            if result != 0 {
                return result;
            }
            add_since(&mut *to, &(*pmd).base, &(*pmd).frozen, is_started);
            done += 1;
        }
        if done == 0 { ENOENT } else { done as i64 }
    }
}

/// Makes what an event says `now` the value of its register.
#[inline(always)]
fn add_since(now: &mut PerfValue, base: &Value, frozen: &Value, is_started: bool) {
    let counts = is_started as u64;
    now.counter = now.counter.wrapping_sub(base.value) * counts + frozen.value;
    now.enabled = now.enabled.wrapping_sub(base.enabled_ns) * counts + frozen.enabled_ns;
    now.running = now.running.wrapping_sub(base.running_ns) * counts + frozen.running_ns;
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
        // Who is in the wrong place must not keep others off.
        let mut now = PerfValue::default();
        let result = raw(events, context, 0, &raw mut now);
        if result != 0 {
            return result;
        }
        if atomics::exchange(&raw mut (*context).busy, 1) != 0 {
            return EBUSY;
        }
        let result = if ((*context).flags & STARTED != 0) == start {
            0
        } else {
            switch_pmds(events, context, start)
        };
        atomics::exchange(&raw mut (*context).busy, 0);
        result
    }
}

/// The part of [`switch`] that is done by one at a time.
#[inline(always)]
unsafe fn switch_pmds(events: *const c_void, context: *mut Context, start: bool) -> i64 {
    unsafe {
        let mut number = 0u32;
        while number < PMDS_MAX as u32 {
            if number >= (*context).nr_pmds {
                break;
            }
            let mut now = PerfValue::default();
            let result = raw(events, context, number, &raw mut now);
            if result != 0 {
                // Those before it have the same value as ever.
                return result;
            }
            let pmd = pmd(context, number);
            if !start {
                (*pmd).frozen.value += now.counter.wrapping_sub((*pmd).base.value);
                (*pmd).frozen.enabled_ns += now.enabled.wrapping_sub((*pmd).base.enabled_ns);
                (*pmd).frozen.running_ns += now.running.wrapping_sub((*pmd).base.running_ns);
            }
            (*pmd).base =
                Value { value: now.counter, enabled_ns: now.enabled, running_ns: now.running };
            number += 1;
        }
        (*context).flags ^= STARTED;
        (*context).generation += 1;
        0
    }
}

/// What a context is and how it stands.
///
/// # Safety
///
/// As for [`read_pmds`]; `to` points to an [`Info`].
#[inline(always)]
pub unsafe fn context_info(
    contexts: *const c_void,
    events: *const c_void,
    index: u32,
    to: *mut Info,
) -> i64 {
    unsafe {
        let context = context(contexts, index);
        let mut now = PerfValue::default();
        // The events go with their owner, whoever still has the maps.
        if context.is_null() || raw(events, context, 0, &raw mut now) == ENOENT {
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
        let slot: *mut u64 = task_storage_get(tasks, task, core::ptr::null(), CREATE).cast();
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
/// * `pfm_read_pmds(context, first, &mut [PerfValue; N]) -> i64`: reads up to N registers from `first` on, says how many;
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
        fn pfm_read_pmds<const N: usize>(
            context: i64,
            first: u32,
            to: &mut [$crate::PerfValue; N],
        ) -> i64 {
            let (index, to): (u32, *mut [$crate::PerfValue; N]) = (context as u32, to);
            let (contexts, events) = ($crate::at(&pfm_contexts), $crate::at(&pfm_events));
            unsafe {
                $crate::pfm::read_pmds(contexts, events, index, first, to.cast(), N as u32)
            }
        }
        #[allow(dead_code)]
        #[inline(always)]
        fn pfm_context_info(context: i64, to: &mut $crate::pfm::Info) -> i64 {
            let (contexts, events) = ($crate::at(&pfm_contexts), $crate::at(&pfm_events));
            unsafe { $crate::pfm::context_info(contexts, events, context as u32, to) }
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
/// callback!(on_sample, on_sample_tracepoint, on_sample_probe, body);
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
        pub unsafe extern "C" fn $name(ctx: *mut core::ffi::c_void) -> u32 {
            // The cookie is still that of the stub's attachment.
            let context = unsafe { $crate::get_attach_cookie(ctx) } as u32;
            $body(&$crate::pfm::Sample {
                context,
                kind: $kind,
                pid_tgid: $crate::get_current_pid_tgid(),
                time_ns: $crate::ktime_get_ns(),
            });
            // What a tracepoint's program returns decides whether its events count.
            1
        }
    };
}
