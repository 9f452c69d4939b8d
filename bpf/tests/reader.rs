//! Programs of every kind that use published contexts, for tests: each notes what it was told.
//!
//! [`command`] does what the argument of a system call asks for, in the thread that makes the call. The others
//! read the registers of the current task wherever it has a context.

#![no_std]

use core::ffi::c_void;

use perfmon_bpf::pfm::*;
use perfmon_bpf::*;

license!();
contexts!();
callback!(on_sample, on_sample_tracepoint, on_sample_probe, body);

/// What a program was told.
#[repr(C)]
pub struct Answer {
    pub runs: u64,
    /// Of the last run: the context, the result, the registers.
    pub context: i64,
    pub result: i64,
    pub pmds: [PerfValue; 4],
    pub cookie: u64,
}

/// What a call-back sends.
#[repr(C)]
pub struct Note {
    pub context: u32,
    pub kind: u32,
    pub result: i64,
    pub value: u64,
    pub thread: u64,
}

map!(ANSWERS: ARRAY, key u32, value Answer, entries 16, flags MMAPABLE);
map!(
    /// The first register at each run of `read_probe`.
    VALUES: ARRAY, key u32, value u64, entries 8192, flags MMAPABLE
);

setting!(
    /// Commands are this and `operation << 4 | answer`.
    COMMANDS: u32 = 0
);
setting!(
    /// The system call at which `read_raw` and `read_typed` read.
    CALL: u64 = u64::MAX
);

const READ_TASK: u32 = 0;
const READ_CPU: u32 = 1;
const READ_FIRST: u32 = 2;
const READ_SECOND: u32 = 3;
const START: u32 = 4;
const STOP: u32 = 5;
const INFO: u32 = 6;
const EMIT: u32 = 7;
const START_FIRST: u32 = 8;
const READ_ALL: u32 = 9;
const INFO_OF_FIRST: u32 = 10;

/// Reads a context's registers into an answer.
#[inline(always)]
unsafe fn note(answer: *mut Answer, context: i64, first: u32) {
    unsafe {
        (*answer).context = context;
        (*answer).result = pfm_read_pmds(context, first, &mut (*answer).pmds);
        // Last, for who waits for it.
        bump(&raw mut (*answer).runs);
    }
}

/// Reads the current task's registers, if it has any, into answer `slot`.
#[inline(always)]
unsafe fn note_task(slot: u32, cookie: u64) {
    let context = pfm_context_of_task();
    let answer = element(&ANSWERS, slot);
    if context >= 0 && !answer.is_null() {
        unsafe {
            (*answer).cookie = cookie;
            note(answer, context, 0);
        }
    }
}

/// At `getpgid(COMMANDS + …)`.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tp")]
pub unsafe extern "C" fn command(ctx: *mut c_void) -> u32 {
    let argument = unsafe { context_half::<4>(ctx) }.wrapping_sub(get(&COMMANDS));
    let answer = element(&ANSWERS, argument & 15);
    if argument >= 256 || answer.is_null() {
        return 1;
    }
    let answer = unsafe { &mut *answer };
    match argument >> 4 {
        READ_TASK => unsafe { note(answer, pfm_context_of_task(), 0) },
        READ_CPU => unsafe { note(answer, pfm_context_of_cpu(), 0) },
        READ_FIRST => unsafe { note(answer, 0, 0) },
        READ_SECOND => unsafe { note(answer, 0, 1) },
        START => answer.result = pfm_start(pfm_context_of_task()),
        STOP => answer.result = pfm_stop(pfm_context_of_task()),
        START_FIRST => answer.result = pfm_start(0),
        EMIT => answer.result = pfm_emit(&argument),
        operation @ (INFO | INFO_OF_FIRST) => {
            let context = if operation == INFO { pfm_context_of_task() } else { 0 };
            let mut info = Info::default();
            answer.context = context;
            answer.result = pfm_context_info(context, &mut info);
            answer.pmds[0].counter = info.flags as u64;
            answer.pmds[0].enabled = info.target as u64;
            answer.pmds[0].running = info.nr_pmds as u64;
            answer.pmds[1].counter = info.active_set as u64;
            answer.pmds[1].enabled = info.generation;
            answer.pmds[1].running = info.samples;
        }
        _ => {}
    }
    1
}

map!(
    /// What `read_all` reads, which is too much for a program's stack.
    ALL: ARRAY, key u32, value [PerfValue; 64], entries 1
);

/// Reads all registers that a context can have at `getpgid(COMMANDS + …)`: the first one is the answer.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tp")]
pub unsafe extern "C" fn read_all(ctx: *mut c_void) -> u32 {
    let argument = unsafe { context_half::<4>(ctx) }.wrapping_sub(get(&COMMANDS));
    let (answer, all) = (element(&ANSWERS, argument & 15), element(&ALL, 0));
    if argument >> 4 == READ_ALL && !answer.is_null() && !all.is_null() {
        unsafe {
            (*answer).result = pfm_read_pmds(pfm_context_of_task(), 0, &mut *all);
            (*answer).pmds[0] = (*all)[0];
            (*answer).pmds[1] = (*all)[63];
        }
    }
    1
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp/sys_enter")]
pub unsafe extern "C" fn read_raw(ctx: *mut c_void) -> u32 {
    if unsafe { context_word::<1>(ctx) } == get(&CALL) {
        unsafe { note_task(8, 0) };
    }
    0
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/sys_enter")]
pub unsafe extern "C" fn read_typed(ctx: *mut c_void) -> u32 {
    if unsafe { context_word::<1>(ctx) } == get(&CALL) {
        unsafe { note_task(9, 0) };
    }
    0
}

/// At a probe of any kind: its cookie says which answer.
#[unsafe(no_mangle)]
#[unsafe(link_section = "kprobe")]
pub unsafe extern "C" fn read_probe(ctx: *mut c_void) -> u32 {
    let cookie = unsafe { get_attach_cookie(ctx) };
    unsafe { note_task(cookie as u32, cookie) };
    let answer = element(&ANSWERS, cookie as u32);
    if !answer.is_null() && pfm_context_of_task() >= 0 {
        let value = element(&VALUES, unsafe { (*answer).runs } as u32 - 1);
        if !value.is_null() {
            unsafe { *value = (*answer).pmds[0].counter };
        }
    }
    1
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub unsafe extern "C" fn read_sample(ctx: *mut c_void) -> u32 {
    unsafe { note_task(11, get_attach_cookie(ctx)) };
    1
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "fentry/vfs_write")]
pub unsafe extern "C" fn read_function(_ctx: *mut c_void) -> u32 {
    unsafe { note_task(12, 0) };
    0
}

/// The call-back: sends the first register.
#[inline(always)]
fn body(sample: &Sample) {
    let mut value = [PerfValue::default()];
    let result = pfm_read_pmds(sample.context as i64, 0, &mut value);
    let thread = sample.pid_tgid & 0xffff_ffff;
    let (context, kind) = (sample.context, sample.kind);
    pfm_emit(&Note { context, kind, result, value: value[0].counter, thread });
}
