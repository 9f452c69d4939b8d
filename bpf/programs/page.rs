//! Keeps the software counts of watched threads in memory that they map, so that reading them takes no system call.
//!
//! Each count changes where the kernel changes its own: see the rules at each program.
#![no_std]

#[allow(dead_code)]
#[path = "layout/page.rs"]
mod layout;

use core::ffi::c_void;

use layout::*;
use perfmon_bpf::*;

license!();

map!(SLOTS: ARRAY, key u32, value Slot, entries 1, flags MMAPABLE);
map!(TASKS: TASK_STORAGE, key i32, value Task, entries 0, flags NO_PREALLOC);

setting!(
    /// Stores of this machine may be seen in another order: the sequence is then changed by exchanges.
    ANY_ORDER: u32 = 0
);
setting!(
    /// Where the kernel's half of the address space begins, as page faults see it.
    USER_END: u64 = 0
);
setting!(STORAGE_OFFSET: u32 = 0);
setting!(FLAGS_OFFSET: u32 = 0);
setting!(EXIT_STATE_OFFSET: u32 = 0);
setting!(EVENTS_OFFSET: u32 = 0);
setting!(
    /// Kernels up to 6.1 keep a task's software events apart; else as `EVENTS_OFFSET`.
    SOFTWARE_EVENTS_OFFSET: u32 = 0
);
setting!(MM_OFFSET: u32 = 0);
setting!(TGID_OFFSET: u32 = 0);
setting!(NO_FAULTS_OFFSET: u32 = 0);
setting!(MOVES_OFFSET: u32 = 0);
setting!(
    /// When a task came to its CPU, by the scheduler's clock; 0 if the kernel does not keep it.
    ARRIVAL_OFFSET: u32 = 0
);

/// `TASK_DEAD` in `prev_state`.
const DEAD: u64 = 0x80;
/// `PF_EXITING`
const EXITING: u32 = 4;
/// Where `flags` lie in x86_64's `pt_regs`, and the flag of interrupts in them.
const REGS_FLAGS: u64 = 144;
const INTERRUPTS: u64 = 0x200;
/// The page of x86_64's old system calls, which faults take for the user's (`is_vsyscall_vaddr`).
const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;
const PAGE_MASK: u64 = !0xfff;

/// A field of a kernel's struct that the verifier knows: one load.
#[inline(always)]
unsafe fn word(object: u64, offset: u32) -> u64 {
    unsafe { *((object + offset as u64) as *const u64) }
}

#[inline(always)]
unsafe fn half(object: u64, offset: u32) -> u32 {
    unsafe { *((object + offset as u64) as *const u32) }
}

/// The slot of a task, or null. Most tasks have no storage at all, which one load tells.
#[inline(always)]
unsafe fn slot_of(task: u64) -> *mut Slot {
    unsafe {
        if word(task, get(&STORAGE_OFFSET)) == 0 {
            return core::ptr::null_mut();
        }
        let known: *mut Task = task_value(&TASKS, task);
        if known.is_null() || (*known).slot == 0 {
            return core::ptr::null_mut();
        }
        element(&SLOTS, (*known).slot as u32 - 1)
    }
}

#[inline(always)]
unsafe fn load(cell: *const u64) -> u64 {
    unsafe { cell.read_volatile() }
}

#[inline(always)]
unsafe fn store(cell: *mut u64, value: u64) {
    unsafe { cell.write_volatile(value) }
}

#[inline(always)]
unsafe fn increase(cell: *mut u64, by: u64) {
    unsafe { store(cell, load(cell) + by) }
}

/// Makes the sequence odd, or even again.
#[inline(always)]
unsafe fn turn(slot: *mut Slot) {
    unsafe {
        let sequence = &raw mut (*slot).sequence;
        let next = load(sequence) + 1;
        if get(&ANY_ORDER) != 0 {
            exchange(sequence, next);
        } else {
            store(sequence, next);
        }
    }
}

/// When the task that is running came to its CPU, if that was not seen: after a task that the kernel hides from programs.
#[inline(always)]
unsafe fn unseen_arrival_ns(slot: *const Slot, task: u64, now_ns: u64) -> u64 {
    unsafe {
        let offset_ns = load(&raw const (*slot).clock_offset_ns);
        if get(&ARRIVAL_OFFSET) == 0 || offset_ns == 0 {
            return now_ns;
        }
        let at_ns = word(task, get(&ARRIVAL_OFFSET)).wrapping_add(offset_ns);
        if at_ns > now_ns { now_ns } else { at_ns }
    }
}

#[inline(always)]
unsafe fn has_events(task: u64) -> bool {
    unsafe { word(task, get(&EVENTS_OFFSET)) != 0 || word(task, get(&SOFTWARE_EVENTS_OFFSET)) != 0 }
}

/// Whether the kernel counts nothing more for a task: it takes away the events of one that ends, if there are any, and
/// may let it run on for a while.
#[inline(always)]
unsafe fn is_past_its_end(slot: *const Slot, task: u64, state: u64) -> bool {
    unsafe {
        state & DEAD != 0
            || half(task, get(&EXIT_STATE_OFFSET)) != 0
            || half(task, get(&FLAGS_OFFSET)) & EXITING != 0
                && load(&raw const (*slot).had_events) != 0
                && !has_events(task)
    }
}

/// A context switch is the count of the task that leaves (`perf_event_task_sched_out`).
#[inline(always)]
unsafe fn leave(slot: *mut Slot, task: u64, state: u64, now_ns: u64) {
    unsafe {
        if load(&raw const (*slot).ended) != 0 {
            if state & DEAD != 0 {
                store(&raw mut (*slot).ended, GONE);
            }
            return;
        }
        turn(slot);
        let mut since_ns = load(&raw const (*slot).on_since_ns);
        if since_ns == 0 {
            since_ns = unseen_arrival_ns(slot, task, now_ns);
            note_move(slot, task);
        } else if get(&ARRIVAL_OFFSET) != 0 {
            let arrival_ns = word(task, get(&ARRIVAL_OFFSET));
            store(&raw mut (*slot).clock_offset_ns, since_ns.wrapping_sub(arrival_ns));
        }
        increase(&raw mut (*slot).run_ns, now_ns.wrapping_sub(since_ns));
        store(&raw mut (*slot).on_since_ns, 0);
        if is_past_its_end(slot, task, state) {
            store(&raw mut (*slot).ended, if state & DEAD != 0 { GONE } else { SETTLED });
        } else {
            increase(&raw mut (*slot).switches, 1);
        }
        store(&raw mut (*slot).moves, word(task, get(&MOVES_OFFSET)));
        if has_events(task) {
            store(&raw mut (*slot).had_events, 1);
        }
        turn(slot);
    }
}

/// However often a task was moved while it had no CPU, that is one migration, counted when it comes to its new one
/// (`perf_event_task_sched_in`).
#[inline(always)]
unsafe fn note_move(slot: *mut Slot, task: u64) {
    unsafe {
        let moved = has_moved(slot, task);
        increase(&raw mut (*slot).migrations, moved);
    }
}

#[inline(always)]
unsafe fn has_moved(slot: *const Slot, task: u64) -> u64 {
    unsafe { (word(task, get(&MOVES_OFFSET)) != load(&raw const (*slot).moves)) as u64 }
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/sched_switch")]
pub unsafe extern "C" fn on_switch(ctx: *mut c_void) -> u32 {
    unsafe {
        let previous = context_word::<1>(ctx);
        let next = context_word::<2>(ctx);
        let leaves = slot_of(previous);
        if !leaves.is_null() {
            leave(leaves, previous, context_word::<3>(ctx), ktime_get_ns());
        }
        let comes = slot_of(next);
        if !comes.is_null() && load(&raw const (*comes).ended) == 0 {
            turn(comes);
            store(&raw mut (*comes).on_since_ns, ktime_get_ns());
            note_move(comes, next);
            turn(comes);
        }
        0
    }
}

/// The slot that a page fault of x86_64 belongs to, or null if the kernel does not count it: the rules of
/// `do_user_addr_fault`. That preemption alone is disabled can't be seen from here, as it is by now; who does so before
/// touching user memory disables faults, too.
#[inline(always)]
unsafe fn faults_of(ctx: *mut c_void) -> *mut Slot {
    unsafe {
        let address = context_word::<0>(ctx);
        let regs = context_word::<1>(ctx);
        let task = get_current_task_btf();
        let slot = slot_of(task);
        let is_users = address < get(&USER_END) || address & PAGE_MASK == VSYSCALL;
        if slot.is_null()
            || !is_users
            || half(task, get(&NO_FAULTS_OFFSET)) != 0
            || word(task, get(&MM_OFFSET)) == 0
            || word(regs, REGS_FLAGS as u32) & INTERRUPTS == 0
        {
            return core::ptr::null_mut();
        }
        slot
    }
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/page_fault_user")]
pub unsafe extern "C" fn on_user_fault(ctx: *mut c_void) -> u32 {
    unsafe {
        let slot = faults_of(ctx);
        if !slot.is_null() {
            turn(slot);
            increase(&raw mut (*slot).user_faults, 1);
            turn(slot);
        }
        0
    }
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "tp_btf/page_fault_kernel")]
pub unsafe extern "C" fn on_kernel_fault(ctx: *mut c_void) -> u32 {
    unsafe {
        let slot = faults_of(ctx);
        if !slot.is_null() {
            turn(slot);
            increase(&raw mut (*slot).kernel_faults, 1);
            turn(slot);
        }
        0
    }
}

/// Gives the calling thread a slot that no program knows yet, so that nobody writes it at the same time.
#[inline(always)]
unsafe fn watch(task: u64, number: u64) -> u32 {
    unsafe {
        let known: *mut Task = task_value_or_new(&TASKS, task);
        if known.is_null() {
            return 0;
        }
        if (*known).slot != 0 {
            return (*known).slot as u32;
        }
        let slot = element(&SLOTS, number as u32);
        if slot.is_null() {
            return 0;
        }
        store(&raw mut (*slot).ended, 0);
        store(&raw mut (*slot).clock_offset_ns, 0);
        store(&raw mut (*slot).had_events, has_events(task) as u64);
        store(&raw mut (*slot).moves, word(task, get(&MOVES_OFFSET)));
        store(&raw mut (*slot).on_since_ns, ktime_get_ns());
        store(&raw mut (*known).slot, number + 1);
        number as u32 + 1
    }
}

#[inline(always)]
unsafe fn look(task: u64) -> u32 {
    unsafe {
        let slot = slot_of(task);
        if slot.is_null() {
            return 2;
        }
        let sequence = load(&raw const (*slot).sequence);
        let now_ns = ktime_get_ns();
        let mut since_ns = load(&raw const (*slot).on_since_ns);
        let mut moved = 0;
        if since_ns == 0 {
            since_ns = unseen_arrival_ns(slot, task, now_ns);
            moved = has_moved(slot, task);
        }
        let run_ns = load(&raw const (*slot).run_ns) + now_ns.wrapping_sub(since_ns);
        store(&raw mut (*slot).seen_run_ns, run_ns);
        store(&raw mut (*slot).seen_migrations, load(&raw const (*slot).migrations) + moved);
        (load(&raw const (*slot).sequence) == sequence) as u32
    }
}

/// Run by the thread that it is about, for one of `WATCH`, `UNWATCH`, `LOOK`.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub unsafe extern "C" fn control(ctx: *mut c_void) -> u32 {
    unsafe {
        let purpose = context_word::<0>(ctx);
        let number = context_word::<1>(ctx);
        let task = get_current_task_btf();
        if purpose == WATCH {
            return watch(task, number);
        }
        if purpose == UNWATCH {
            return (task_storage_delete(at(&TASKS), task) == 0) as u32;
        }
        look(task)
    }
}

/// Writes the tgid of each task that programs see.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub unsafe extern "C" fn each_task(ctx: *mut c_void) -> u32 {
    unsafe {
        let meta = context_word::<0>(ctx);
        let task = context_word::<1>(ctx);
        if task != 0 {
            let process = half(task, get(&TGID_OFFSET));
            let file = *(meta as *const u64) as *mut c_void;
            seq_write(file, (&raw const process).cast(), 4);
        }
        0
    }
}
