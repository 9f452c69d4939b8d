//! Programs for the tests of the loader: every kind of map, settings, a tail call, a ring buffer, a call.
//!
//! Those in `raw_tp` are also run without a tracepoint (`BPF_PROG_TEST_RUN`), with arguments of the test's
//! own, and their answers are known.

#![no_std]

use core::ffi::c_void;

use perfmon_bpf::*;

license!();

/// Counters that [`read_all`] tries at most.
const COUNTERS_MAX: u32 = 24;

map!(STATE: ARRAY, key u32, value [u64; 8], entries 8, flags MMAPABLE);
map!(ANSWERS: ARRAY, key u32, value [i64; 4], entries 96, flags MMAPABLE);
map!(NAMED: HASH, key u64, value u64, entries 4, flags NO_PREALLOC);
map!(PER_CPU: PERCPU_ARRAY, key u32, value u64, entries 2);
map!(NAMED_PER_CPU: PERCPU_HASH, key u32, value u64, entries 4);
map!(NEXT: PROG_ARRAY, sizes 4 4, entries 2);
map!(COUNTERS: PERF_EVENT_ARRAY, sizes 4 4, entries 64);
map!(STREAM: RINGBUF, bytes 65536);
map!(TASKS: TASK_STORAGE, key i32, value TaskState, entries 0, flags NO_PREALLOC);

setting!(RETURN: u32 = 0);
setting!(CAPACITY: u64 = 0);
setting!(SIGNAL: u32 = 0);
setting!(TGID: u32 = 0);

helper!(
    /// Sends a signal to the current process.
    ///
    /// # Safety
    ///
    /// None: it takes no pointer.
    send_signal = 109(signal: u32) -> i64
);

/// What the lab keeps for a task.
#[repr(C)]
pub struct TaskState {
    pub switches_out: u64,
    pub last_switch_ns: u64,
}

/// What the lab sends through its ring buffer.
#[repr(C)]
pub struct Note {
    pub number: u64,
    pub value: u64,
}

/// The first word of an element of `STATE`, or null.
#[inline(always)]
fn state(slot: u32) -> *mut u64 {
    element(&STATE, slot).cast()
}

/// Counts in an element of `STATE` and gives the new number.
#[inline(always)]
fn count(slot: u32) -> u64 {
    let state = state(slot);
    if state.is_null() { 0 } else { unsafe { take(state) + 1 } }
}

/// Counts its runs in `STATE[0]` and returns `RETURN`.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn sample_return(_ctx: *mut c_void) -> u32 {
    count(0);
    get(&RETURN)
}

/// Counts its runs in `STATE[1]` and returns `RETURN`.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tp")]
pub unsafe extern "C" fn tracepoint_return(_ctx: *mut c_void) -> u32 {
    count(1);
    get(&RETURN)
}

/// Counts in `STATE[2]`; with the `CAPACITY`-th sample it sends `SIGNAL` to the process and returns 1.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn stop_when_full(_ctx: *mut c_void) -> u32 {
    let is_full = count(2) == get(&CAPACITY);
    if is_full {
        unsafe { send_signal(get(&SIGNAL)) };
    }
    is_full as u32
}

/// In the process `TGID`, reads the first counters, and notes of each what it was told: result, units,
/// enabled, running.
#[inline(always)]
fn read_all(base: u32) {
    if tgid() != get(&TGID) {
        return;
    }
    let mut index = 0;
    while index < COUNTERS_MAX {
        let answer: *mut i64 = element(&ANSWERS, base + index).cast();
        if answer.is_null() {
            return;
        }
        let mut value = PerfValue::default();
        let to = (&raw mut value).cast();
        unsafe {
            *answer = perf_event_read_value(at(&COUNTERS), index as u64, to, PerfValue::BYTES);
            *answer.add(1) = value.counter as i64;
            *answer.add(2) = value.enabled as i64;
            *answer.add(3) = value.running as i64;
        }
        index += 1;
    }
}

/// Reads counters into `ANSWERS` from element 0 on.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn read_in_sample(_ctx: *mut c_void) -> u32 {
    read_all(0);
    0
}

/// Reads counters into `ANSWERS` from element 24 on.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn read_in_raw_tracepoint(_ctx: *mut c_void) -> u32 {
    read_all(COUNTERS_MAX);
    0
}

/// Reads counters into `ANSWERS` from element 48 on.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tp")]
pub unsafe extern "C" fn read_in_tracepoint(_ctx: *mut c_void) -> u32 {
    read_all(2 * COUNTERS_MAX);
    1 // 0 would stop everybody's events on this tracepoint
}

/// 3 × `number` + 1, by a call.
#[inline(never)]
extern "C" fn three_and_one(number: u64) -> u64 {
    number.wrapping_mul(3).wrapping_add(1)
}

/// Returns 3 × (3 × its first argument + 1) + 1, by two calls.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn calls(ctx: *mut c_void) -> u32 {
    three_and_one(three_and_one(unsafe { context_word::<0>(ctx) })) as u32
}

/// Goes on with the program in `NEXT` that the first argument says; returns 7 if there is none.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn goes_on(ctx: *mut c_void) -> u32 {
    unsafe { tail_call(ctx, at(&NEXT), context_word::<0>(ctx) as u32) };
    7
}

/// What `NEXT` is for: counts in `STATE[3]` and returns 11.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn gone_on(_ctx: *mut c_void) -> u32 {
    count(3);
    11
}

/// Adds the second argument to what `NAMED` has for the first one, adds 1 in both maps of values per CPU,
/// and returns the sum; a value of 0 is removed. It returns 1000 if the map is full.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn adds(ctx: *mut c_void) -> u32 {
    let (key, number) = unsafe { (context_word::<0>(ctx), context_word::<1>(ctx)) };
    let own = element(&PER_CPU, 1);
    if !own.is_null() {
        unsafe { *own += 1 };
    }
    let named = lookup(&NAMED_PER_CPU, &5);
    if named.is_null() {
        update(&NAMED_PER_CPU, &5, &1, ANY);
    } else {
        unsafe { *named += 1 };
    }
    let value = lookup(&NAMED, &key);
    if value.is_null() {
        let is_full = update(&NAMED, &key, &number, IF_ABSENT) != 0;
        return if is_full { 1000 } else { number as u32 };
    }
    let sum = unsafe { add(value, number) }.wrapping_add(number);
    if sum == 0 {
        delete(&NAMED, &key);
    }
    sum as u32
}

/// Sends the first argument, numbered, through the ring buffer. What is odd it reserves and discards.
/// Returns 1 if there was room.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn notes(ctx: *mut c_void) -> u32 {
    let value = unsafe { context_word::<0>(ctx) };
    let note: *mut Note = reserve(&STREAM);
    if note.is_null() {
        return 0;
    }
    unsafe {
        note.write(Note { number: count(4), value });
        if value & 1 == 1 {
            ringbuf_discard(note.cast(), NO_WAKEUP);
        } else {
            ringbuf_submit(note.cast(), 0);
        }
    }
    1
}

/// Counts how often a task that user space entered into `TASKS` leaves a CPU.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/sched_switch")]
pub unsafe extern "C" fn on_switch(ctx: *mut c_void) -> u32 {
    unsafe {
        let previous = context_word::<1>(ctx); // (preempt, prev, next, …)
        let task = task_value(&TASKS, previous);
        if !task.is_null() {
            (*task).switches_out += 1;
            (*task).last_switch_ns = ktime_get_ns();
        }
    }
    0
}
