//! What events counted: read, added, settled. All loops have a bound that the verifier sees.

use super::*;

/// The `number`th of `counts`, of which there are `EVENTS_MAX`.
#[inline(always)]
pub(crate) unsafe fn nth(counts: *mut [Count; EVENTS_MAX], number: u32) -> *mut Count {
    unsafe { counts.cast::<Count>().add(number as usize) }
}

/// Reads the events at `first`, `first + step`… into `cpu.now`.
#[inline(always)]
pub(crate) unsafe fn read(cpu: *mut Cpu, first: u32, step: u32, late: u32) {
    let mut number = 0u32;
    while number < EVENTS_MAX as u32 && number < get(&NR_EVENTS) {
        unsafe {
            let now = nth(&raw mut (*cpu).now, number);
            let index = (first + number * step) as u64;
            let result = perf_event_read_value(at(&EVENTS), index, now.cast(), PerfValue::BYTES);
            if result != 0 {
                // What was there last is what nothing is added to.
                now.write(nth(&raw mut (*cpu).last, number).read());
                let control = control();
                if !control.is_null() {
                    bump(&raw mut (*control).read_errors);
                }
            } else if late & (1 << number) != 0 {
                (*now).value += 1;
            }
        }
        number += 1;
    }
}

/// Adds `cpu.now` less `since` to a task and to the totals; either may be null.
#[inline(always)]
pub(crate) unsafe fn account(cpu: *mut Cpu, task: *mut Task, to_totals: bool, uncounted: u32) {
    let mut number = 0u32;
    while number < EVENTS_MAX as u32 && number < get(&NR_EVENTS) {
        unsafe {
            let now = nth(&raw mut (*cpu).now, number);
            let last = nth(&raw mut (*cpu).last, number);
            let value = (*now).value.wrapping_sub((*last).value);
            let enabled_ns = (*now).enabled_ns.wrapping_sub((*last).enabled_ns);
            let running_ns = (*now).running_ns.wrapping_sub((*last).running_ns);
            let late = (uncounted >> number) as u64 & 1;
            if !task.is_null() {
                let count = nth(&raw mut (*task).counts, number);
                (*count).value = (*count).value.wrapping_add(value).wrapping_sub(late);
                (*count).enabled_ns += enabled_ns;
                (*count).running_ns += running_ns;
            }
            if to_totals {
                let total = nth(&raw mut (*cpu).totals, number);
                // Who counts the whole system counts the switch of a dead task, too.
                let late = if get(&SYSTEM) != 0 { 0 } else { late };
                (*total).value = (*total).value.wrapping_add(value).wrapping_sub(late);
                (*total).enabled_ns += enabled_ns;
                (*total).running_ns += running_ns;
            }
        }
        number += 1;
    }
}

/// Adds what the starters say, in `cpu.now`, to a task and to the totals.
#[inline(always)]
pub(crate) unsafe fn account_starters(cpu: *mut Cpu, task: *mut Task, uncounted: u32) {
    let mut number = 0u32;
    while number < EVENTS_MAX as u32 && number < get(&NR_EVENTS) {
        unsafe {
            let now = nth(&raw mut (*cpu).now, number);
            let value = (*now).value.wrapping_sub((uncounted >> number) as u64 & 1);
            let count = nth(&raw mut (*task).counts, number);
            let total = nth(&raw mut (*cpu).totals, number);
            (*count).value += value;
            (*count).enabled_ns += (*now).enabled_ns;
            (*count).running_ns += (*now).running_ns;
            (*total).value += value;
            (*total).enabled_ns += (*now).enabled_ns;
            (*total).running_ns += (*now).running_ns;
        }
        number += 1;
    }
}

/// From now on `cpu.now` is what is accounted already.
#[inline(always)]
pub(crate) unsafe fn settle(cpu: *mut Cpu) {
    let mut number = 0u32;
    while number < EVENTS_MAX as u32 && number < get(&NR_EVENTS) {
        unsafe { nth(&raw mut (*cpu).last, number).write(nth(&raw mut (*cpu).now, number).read()) };
        number += 1;
    }
}

/// Counts `events` (by bit) as accounted once more.
#[inline(always)]
pub(crate) unsafe fn take_back(cpu: *mut Cpu, events: u32) {
    let mut number = 0u32;
    while number < EVENTS_MAX as u32 && number < get(&NR_EVENTS) {
        unsafe { (*nth(&raw mut (*cpu).last, number)).value += (events >> number) as u64 & 1 };
        number += 1;
    }
}
