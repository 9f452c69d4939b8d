//! Changes of what other CPUs change too.
//!
//! All have the ordering "acquire and release": LLVM 22 miscompiles a relaxed addition whose result is used.

use core::intrinsics::{AtomicOrdering, atomic_xadd, atomic_xchg};

/// Adds `number` and gives the old value. It wraps.
///
/// # Safety
///
/// `counter` lies in a map's value or a reserved record, and is aligned to 8 bytes.
#[inline(always)]
pub unsafe fn add(counter: *mut u64, number: u64) -> u64 {
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::AcqRel }>(counter, number) }
}

/// Adds 1 and gives the old value: takes the next number of a sequence, such as a slot.
///
/// # Safety
///
/// As for [`add`].
#[inline(always)]
pub unsafe fn take(counter: *mut u64) -> u64 {
    unsafe { add(counter, 1) }
}

/// Adds 1.
///
/// # Safety
///
/// As for [`add`].
#[inline(always)]
pub unsafe fn bump(counter: *mut u64) {
    unsafe { add(counter, 1) };
}

/// Stores `value` and gives the old one. Who reads `value` in user space with acquire also sees what was
/// written before: so a record is made public by its last field.
///
/// # Safety
///
/// As for [`add`].
#[inline(always)]
pub unsafe fn exchange(cell: *mut u64, value: u64) -> u64 {
    unsafe { atomic_xchg::<u64, { AtomicOrdering::AcqRel }>(cell, value) }
}
