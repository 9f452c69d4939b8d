//! Accounts the events of each CPU to the tasks that run there.
//!
//! Each event is open once per CPU. At a context switch what it counted since the last one goes to the task that
//! leaves the CPU, if that is followed. So the number of descriptors does not depend on the number of tasks.
#![no_std]

#[path = "account/counts.rs"]
mod counts;
#[allow(dead_code)]
#[path = "layout/account.rs"]
mod layout;

use core::ffi::c_void;

use counts::*;
use layout::*;
use perfmon_bpf::*;

license!();

map!(CONTROL: ARRAY, key u32, value Control, entries 1, flags MMAPABLE);
map!(CPUS: ARRAY, key u32, value Cpu, entries 1, flags MMAPABLE);
map!(
    /// At `event * NR_CPUS + cpu` the CPU's event, at `NR_EVENTS * NR_CPUS + event` its starter.
    EVENTS: PERF_EVENT_ARRAY, sizes 4 4, entries 1
);
map!(TASKS: TASK_STORAGE, key i32, value Task, entries 0, flags NO_PREALLOC);
map!(
    /// Processes whose threads are being seeded, by tgid.
    TARGETS: HASH, key u32, value u32, entries 1024, flags 0
);
map!(ENDED: RINGBUF, bytes 4096);

setting!(NR_EVENTS: u32 = 0);
setting!(NR_CPUS: u32 = 1);
setting!(
    /// Bit by event: the kernel counts this event right after the tracepoint of the switch.
    LATE: u32 = 0
);
setting!(
    /// Bit by event: the kernel counts this event at the switch, before the tracepoint's programs.
    AT_SWITCH: u32 = 0
);
setting!(
    /// What tasks create is followed.
    FOLLOW: u32 = 1
);
setting!(
    /// All tasks are followed: totals are all that was counted.
    SYSTEM: u32 = 0
);
setting!(
    /// Rows are wanted.
    ROWS_WANTED: u32 = 0
);
setting!(EXIT_STATE_OFFSET: u32 = 0);
setting!(FLAGS_OFFSET: u32 = 0);
setting!(EVENTS_OFFSET: u32 = 0);
setting!(EVENTS_WORDS: u32 = 1);
setting!(PID_OFFSET: u32 = 0);
setting!(TGID_OFFSET: u32 = 0);
setting!(COMM_OFFSET: u32 = 0);

/// `TASK_DEAD` in `prev_state`.
const DEAD: u64 = 0x80;
/// `PF_EXITING`
const EXITING: u32 = 4;

/// A field of a kernel's struct.
#[inline(always)]
unsafe fn field(object: u64, offset: u32) -> u32 {
    let mut value = 0u32;
    let from = (object + offset as u64) as *const c_void;
    unsafe { probe_read_kernel((&raw mut value).cast(), 4, from) };
    value
}

#[inline(always)]
fn control() -> *mut Control {
    element(&CONTROL, 0)
}

/// Leaves the row of a task that ends.
#[inline(always)]
unsafe fn end(task: u64, counts: *mut Task) {
    if get(&ROWS_WANTED) == 0 {
        return;
    }
    let row: *mut Row = reserve(&ENDED);
    if row.is_null() {
        let control = control();
        if !control.is_null() {
            unsafe { bump(&raw mut (*control).lost) };
        }
        return;
    }
    unsafe {
        fill(row, task, counts);
        ringbuf_submit(row.cast(), NO_WAKEUP);
    }
}

#[inline(always)]
unsafe fn fill(row: *mut Row, task: u64, counts: *mut Task) {
    unsafe {
        (*row).serial = (*counts).serial;
        (*row).tid = field(task, get(&PID_OFFSET));
        (*row).tgid = field(task, get(&TGID_OFFSET));
        let comm = (task + get(&COMM_OFFSET) as u64) as *const c_void;
        probe_read_kernel((&raw mut (*row).comm).cast(), 16, comm);
        let mut number = 0u32;
        while number < EVENTS_MAX as u32 {
            nth(&raw mut (*row).counts, number)
                .write(nth(&raw mut (*counts).counts, number).read());
            number += 1;
        }
    }
}

#[inline(always)]
unsafe fn is_running(counts: *mut Task) -> bool {
    !counts.is_null() && unsafe { (*counts).state } == RUNNING
}

/// Accounts to `task`, which is on `cpu`, up to now. `late`: events that the kernel counts only after this. It counts
/// nothing more for a task that is `gone`.
#[inline(always)]
unsafe fn bring_up_to_date(
    cpu: *mut Cpu,
    number: u32,
    task: u64,
    counts: *mut Task,
    late: u32,
    gone: bool,
) {
    unsafe {
        let owner = (*cpu).owner;
        let starting = !counts.is_null() && (*counts).state == STARTING;
        if starting {
            read(cpu, get(&NR_EVENTS) * get(&NR_CPUS), 1, late);
            account_starters(cpu, counts, if gone { late } else { 0 });
            (*counts).state = RUNNING;
        }
        read(cpu, number, get(&NR_CPUS), late);
        let mut owner = owner;
        let uncounted = if gone { late | get(&AT_SWITCH) } else { 0 };
        if owner == 0 && (*cpu).unseen != 0 && !starting && is_running(counts) {
            owner = task;
            // The switch from the hidden task to this one is the other's.
            take_back(cpu, get(&LATE));
            let control = control();
            if !control.is_null() {
                bump(&raw mut (*control).unseen);
            }
        }
        (*cpu).unseen = 0;
        if owner != 0 && owner == task && !counts.is_null() {
            account(cpu, counts, true, uncounted);
        } else if get(&SYSTEM) != 0 && (*cpu).armed != 0 {
            account(cpu, core::ptr::null_mut(), true, 0);
        }
        let missed = if owner != 0 {
            owner != task || counts.is_null()
        } else {
            (*cpu).armed != 0 && !starting && is_running(counts)
        };
        if missed {
            let control = control();
            // Whoever came after the stop, but before this CPU's last flush, is not to be counted.
            if !control.is_null() && (owner != 0 || (*control).active != 0) {
                bump(&raw mut (*control).gaps);
            }
        }
        settle(cpu);
    }
}

/// Whether the kernel has done with the events of a task that ends. It takes away the task's own first, if there are any,
/// and may let others run meanwhile.
#[inline(always)]
unsafe fn has_ended(task: u64, counts: *mut Task) -> bool {
    unsafe {
        if field(task, get(&EXIT_STATE_OFFSET)) != 0 {
            return true;
        }
        (*counts).has_events != 0
            && field(task, get(&FLAGS_OFFSET)) & EXITING != 0
            && !has_events(task)
    }
}

#[inline(always)]
unsafe fn has_events(task: u64) -> bool {
    let at = get(&EVENTS_OFFSET);
    unsafe {
        let first = field(task, at) | field(task, at + 4);
        // Up to Linux 6.1 there is one for hardware and one for software events.
        let second =
            if get(&EVENTS_WORDS) > 1 { field(task, at + 8) | field(task, at + 12) } else { 0 };
        first | second != 0
    }
}

/// Whether `task` is of the process that the kernel hides.
#[inline(always)]
unsafe fn is_hidden(task: u64) -> bool {
    let control = control();
    if control.is_null() {
        return false;
    }
    let hidden = unsafe { (*control).hidden };
    hidden != 0 && unsafe { field(task, get(&TGID_OFFSET)) } as u64 == hidden
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/sched_switch")]
pub unsafe extern "C" fn on_switch(ctx: *mut c_void) -> u32 {
    unsafe {
        let previous = context_word::<1>(ctx);
        let next = context_word::<2>(ctx);
        let state = context_word::<3>(ctx);
        let number = get_smp_processor_id();
        let cpu = element(&CPUS, number);
        let control = control();
        if cpu.is_null() || control.is_null() {
            return 0;
        }
        let leaves: *mut Task = task_value(&TASKS, previous);
        let comes: *mut Task = task_value(&TASKS, next);
        let active = (&raw const (*control).active).read_volatile() != 0;
        let owns_next = active && is_running(comes);
        let comes_hidden = active && is_hidden(next);
        let touches = (*cpu).owner != 0
            || owns_next
            || comes_hidden
            || (*cpu).unseen != 0
            || get(&SYSTEM) != 0
            || !leaves.is_null() && (*leaves).state >= WAITING;
        if !touches {
            return 0;
        }
        let mut gone = false;
        if !leaves.is_null() && (*leaves).state == WAITING && state & DEAD != 0 {
            // Its exec was never seen.
            bump(&raw mut (*control).gaps);
        }
        if !leaves.is_null() && (*leaves).state >= STARTING {
            gone = state & DEAD != 0 || has_ended(previous, leaves);
        }
        let late = get(&LATE);
        (&raw mut (*cpu).sequence).write_volatile((*cpu).sequence + 1);
        bring_up_to_date(cpu, number, previous, leaves, late, gone);
        (*cpu).owner = if owns_next { next } else { 0 };
        (*cpu).unseen = comes_hidden as u64;
        (&raw mut (*cpu).sequence).write_volatile((*cpu).sequence + 1);
        if gone && !leaves.is_null() {
            end(previous, leaves);
            (*leaves).state = IDLE;
        }
        0
    }
}

/// Run on each CPU for one of `FLUSH`, `START`, `STOP`.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn flush(ctx: *mut c_void) -> u32 {
    unsafe {
        let purpose = context_word::<0>(ctx);
        let number = get_smp_processor_id();
        let cpu = element(&CPUS, number);
        if cpu.is_null() {
            return 0;
        }
        let task = get_current_task_btf();
        let counts: *mut Task = task_value(&TASKS, task);
        (&raw mut (*cpu).sequence).write_volatile((*cpu).sequence + 1);
        bring_up_to_date(cpu, number, task, counts, 0, false);
        let is_followed = is_running(counts);
        if purpose == STOP {
            (*cpu).owner = 0;
            (*cpu).armed = 0;
        } else {
            (*cpu).owner = if is_followed { task } else { 0 };
            (*cpu).armed = 1;
            // Whoever comes after it comes unseen, as when a switch brings it.
            (*cpu).unseen = is_hidden(task) as u64;
        }
        (&raw mut (*cpu).sequence).write_volatile((*cpu).sequence + 1);
        1
    }
}

#[inline(always)]
unsafe fn follow(task: u64, state: u32, is_new: bool) {
    unsafe {
        let control = control();
        if control.is_null() {
            return;
        }
        let counts: *mut Task = task_value_or_new(&TASKS, task);
        if counts.is_null() {
            if !is_new {
                bump(&raw mut (*control).unfollowed);
            }
        } else if (*counts).serial == 0 {
            (*counts).serial = take(&raw mut (*control).serial) + 1;
            (*counts).has_events = has_events(task) as u32;
            (*counts).state = state;
        }
    }
}

/// Several programs with one body on a tracepoint: newer kernels may switch tasks in the middle of one, and skip it for
/// whoever comes to the tracepoint meanwhile on the same CPU, but not the next. The body does nothing the second time.
macro_rules! copies {
    ($section:literal, $body:ident: $($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(link_section = $section)]
        pub unsafe extern "C" fn $name(ctx: *mut c_void) -> u32 {
            unsafe { $body(ctx) };
            0
        }
    )*};
}

copies!("tp_btf/task_newtask", new_task: on_new_task on_new_task_2 on_new_task_3 on_new_task_4);
copies!("tp_btf/sched_process_exec", exec: on_exec on_exec_2 on_exec_3 on_exec_4);

#[inline(always)]
unsafe fn new_task(ctx: *mut c_void) {
    unsafe {
        let child = context_word::<0>(ctx);
        if follows() {
            follow(child, RUNNING, true);
        }
    }
}

#[inline(always)]
unsafe fn exec(_ctx: *mut c_void) {
    unsafe {
        let counts: *mut Task = task_value(&TASKS, get_current_task_btf());
        if !counts.is_null() && (*counts).state == WAITING {
            (*counts).state = STARTING;
        }
    }
}

/// Whether a task that `current` creates is to be followed.
#[inline(always)]
unsafe fn follows() -> bool {
    if get(&FOLLOW) == 0 {
        return false;
    }
    let parent: *mut Task = unsafe { task_value(&TASKS, get_current_task_btf()) };
    let is_followed = !parent.is_null() && unsafe { (*parent).state } >= STARTING;
    is_followed || get(&SYSTEM) != 0 || !lookup(&TARGETS, &tgid()).is_null()
}

/// Later in a task's creation, where no program can be switched out: notices one that is not followed and should be. It can't
/// follow it here, as memory must not be asked for with the scheduler's locks held.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/sched_wakeup_new")]
pub unsafe extern "C" fn on_wakeup_new(ctx: *mut c_void) -> u32 {
    unsafe {
        let child: *mut Task = task_value(&TASKS, context_word::<0>(ctx));
        if child.is_null() && follows() {
            let control = control();
            if !control.is_null() {
                bump(&raw mut (*control).unfollowed);
            }
        }
        0
    }
}

/// Seeds tasks, or writes their rows, as `Control::mode` says.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub unsafe extern "C" fn each_task(ctx: *mut c_void) -> u32 {
    unsafe {
        let meta = context_word::<0>(ctx);
        let task = context_word::<1>(ctx);
        let control = control();
        if task == 0 || control.is_null() {
            return 0;
        }
        let mode = (*control).mode;
        let file = *(meta as *const u64) as *mut c_void;
        if mode == PROCESSES {
            let process = field(task, get(&TGID_OFFSET));
            seq_write(file, (&raw const process).cast(), 4);
            return 0;
        }
        if mode == ROWS {
            let counts: *mut Task = task_value(&TASKS, task);
            if counts.is_null() || (*counts).state < STARTING {
                return 0;
            }
            let row = element(&SCRATCH, 0);
            if row.is_null() {
                return 0;
            }
            fill(row, task, counts);
            seq_write(file, row.cast(), size_of::<Row>() as u32);
            return 0;
        }
        if get(&FOLLOW) != 0 && mode == SEED_PROCESS {
            let process = field(task, get(&TGID_OFFSET));
            update(&TARGETS, &process, &1, ANY);
        }
        follow(task, if mode == SEED_WAITING { WAITING } else { RUNNING }, false);
        0
    }
}

map!(SCRATCH: PERCPU_ARRAY, key u32, value Row, entries 1, flags 0);
