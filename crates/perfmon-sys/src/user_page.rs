use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, compiler_fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Errno;
use crate::caller::Caller;

/// The first page of a self-monitoring event's mapping, from which a thread reads its own counter
/// without a system call, where the kernel and the PMU allow it.
///
/// # References
/// - `include/uapi/linux/perf_event.h`, `struct perf_event_mmap_page`
#[doc(alias = "perf_event_mmap_page")]
#[derive(Debug)]
pub struct UserPage {
    address: NonNull<u8>,
    length: usize,
    owner: Caller,
}

// SAFETY: the mapping belongs to the process; a thread that did not map it finds nothing (`owner`).
unsafe impl Send for UserPage {}

/// What the page and the counter said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageReading {
    /// Occurrences so far.
    pub value: u64,
    /// Nanoseconds for which the event was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds for which it ran, likewise.
    pub running_ns: u64,
}

const LOCK: usize = 8;
const INDEX: usize = 12;
const OFFSET: usize = 16;
const TIME_ENABLED: usize = 24;
const TIME_RUNNING: usize = 32;
const CAPABILITIES: usize = 40;
const PMC_WIDTH: usize = 48;
const TIME_SHIFT: usize = 50;
const TIME_MULT: usize = 52;
const TIME_OFFSET: usize = 56;
const TIME_CYCLES: usize = 80;
const TIME_MASK: usize = 88;
const CAP_USER_RDPMC: u64 = 1 << 2;
const CAP_USER_TIME: u64 = 1 << 3;
const CAP_USER_TIME_SHORT: u64 = 1 << 5;

impl UserPage {
    /// Maps the page of `event`, an event of the calling thread.
    ///
    /// # Errors
    /// The kernel's: `EPERM` if locked memory is used up, `EINVAL` for an event that can't be mapped.
    pub fn map(event: impl AsFd) -> Result<Self, Errno> {
        let length = rustix::param::page_size();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, event, 0)
        }?;
        let address = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { address, length, owner: Caller::current()? })
    }

    /// The hardware counter that holds the event now, as the instruction that reads it names it (on x86
    /// `rdpmc`; on arm64 31 is the cycle counter): perfmon2's ring-3 reads. `None` if there is none, or
    /// user mode may not read it.
    pub fn hardware_index(&self) -> Option<u32> {
        if !self.owner.is_current() || self.u64_at(CAPABILITIES) & CAP_USER_RDPMC == 0 {
            return None;
        }
        self.u32_at(INDEX).checked_sub(1)
    }

    /// Reads the counter without a system call; `None` if that is not possible at this moment, so that the
    /// event has to be read by system call: the event has no counter now, user mode may not read it or has
    /// no clock, or the caller is not the thread that mapped the page (also in a forked child).
    ///
    /// On arm64 the process ends by `SIGILL` if root takes the right away (`kernel.perf_user_access`)
    /// while it reads; there the right must also be asked for with the event (`rdpmc=1`).
    pub fn read(&self) -> Option<PageReading> {
        if !self.owner.is_current() {
            return None;
        }
        loop {
            let sequence = self.u32_at(LOCK);
            compiler_fence(Ordering::SeqCst);
            let index = self.hardware_index()?;
            let offset = self.u64_at(OFFSET);
            let width = self.u16_at(PMC_WIDTH);
            // The event runs: both times have gone on since the page was written.
            let since_ns = self.clock_ns(read_clock()?)?;
            let enabled_ns = self.u64_at(TIME_ENABLED).wrapping_add(since_ns);
            let running_ns = self.u64_at(TIME_RUNNING).wrapping_add(since_ns);
            let raw = read_hardware_counter(index)?;
            compiler_fence(Ordering::SeqCst);
            if self.u32_at(LOCK) == sequence {
                let value = offset.wrapping_add(sign_extend(raw, width));
                return Some(PageReading { value, enabled_ns, running_ns });
            }
        }
    }

    /// Nanoseconds from when the page's times were written to when the clock stood at `cycles`.
    fn clock_ns(&self, cycles: u64) -> Option<u64> {
        let capabilities = self.u64_at(CAPABILITIES);
        let shift = u32::from(self.u16_at(TIME_SHIFT));
        if capabilities & CAP_USER_TIME == 0 || shift >= 64 {
            return None;
        }
        let cycles = if capabilities & CAP_USER_TIME_SHORT == 0 {
            cycles
        } else {
            let begin = self.u64_at(TIME_CYCLES);
            begin.wrapping_add(cycles.wrapping_sub(begin) & self.u64_at(TIME_MASK))
        };
        let mult = u64::from(self.u32_at(TIME_MULT));
        let whole = (cycles >> shift).wrapping_mul(mult);
        let part = (cycles & ((1 << shift) - 1)).wrapping_mul(mult) >> shift;
        Some(self.u64_at(TIME_OFFSET).wrapping_add(whole).wrapping_add(part))
    }

    fn u16_at(&self, offset: usize) -> u16 {
        // SAFETY: the offsets used are inside the mapped page and aligned; the kernel writes it at any
        // time, so it is read volatile and never through a reference.
        unsafe { self.field::<u16>(offset).read_volatile() }
    }

    fn u32_at(&self, offset: usize) -> u32 {
        // SAFETY: as in `u16_at`.
        unsafe { self.field::<u32>(offset).read_volatile() }
    }

    fn u64_at(&self, offset: usize) -> u64 {
        // SAFETY: as in `u16_at`.
        unsafe { self.field::<u64>(offset).read_volatile() }
    }

    fn field<T>(&self, offset: usize) -> *const T {
        // SAFETY: `offset` is one of the constants above, all inside the first page.
        unsafe { self.address.as_ptr().add(offset) }.cast()
    }
}

impl Drop for UserPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}

/// `raw`, a counter of `width` bits, as a signed 64-bit number: the kernel's offset expects it so.
fn sign_extend(raw: u64, width: u16) -> u64 {
    match 64_u32.checked_sub(u32::from(width)) {
        Some(shift @ 1..64) => ((raw << shift).cast_signed() >> shift).cast_unsigned(),
        _ => raw,
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "other architectures can't read every index")]
fn read_hardware_counter(index: u32) -> Option<u64> {
    let (low, high): (u32, u32);
    // SAFETY: it writes two registers. The page says that user mode may read this counter now; should the
    // right be taken away in between, the instruction raises a signal.
    unsafe {
        std::arch::asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high,
            options(nostack, preserves_flags));
    }
    Some(u64::from(high) << 32 | u64::from(low))
}

#[cfg(target_arch = "aarch64")]
fn read_hardware_counter(index: u32) -> Option<u64> {
    macro_rules! counter {
        ($register:literal) => {{
            let value: u64;
            // SAFETY: it writes one register. The page says that user mode may read this counter now; should
            // the right be taken away in between, the instruction raises a signal.
            unsafe {
                std::arch::asm!(concat!("mrs {}, ", $register), out(reg) value,
                    options(nostack, preserves_flags));
            }
            Some(value)
        }};
    }
    match index {
        0 => counter!("pmevcntr0_el0"),
        1 => counter!("pmevcntr1_el0"),
        2 => counter!("pmevcntr2_el0"),
        3 => counter!("pmevcntr3_el0"),
        4 => counter!("pmevcntr4_el0"),
        5 => counter!("pmevcntr5_el0"),
        6 => counter!("pmevcntr6_el0"),
        7 => counter!("pmevcntr7_el0"),
        31 => counter!("pmccntr_el0"),
        _ => None,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read_hardware_counter(_index: u32) -> Option<u64> {
    None
}

/// The clock that the page's times are in.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "other architectures have none")]
fn read_clock() -> Option<u64> {
    // SAFETY: the instruction is there on every x86_64 and writes two registers; the page's capabilities say
    // afterwards whether its answer may be used.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(target_arch = "aarch64")]
fn read_clock() -> Option<u64> {
    let value: u64;
    // SAFETY: it writes one register; Linux lets user mode read this one.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) value, options(nostack, preserves_flags));
    }
    Some(value)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read_clock() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_with(fields: &[(usize, u64, usize)]) -> UserPage {
        let length = rustix::param::page_size();
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let address = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .unwrap();
        let owner = Caller::current().unwrap();
        let page = UserPage { address: NonNull::new(address.cast()).unwrap(), length, owner };
        for &(offset, value, size) in fields {
            let bytes = value.to_le_bytes();
            let field = page.field::<u8>(offset).cast_mut();
            // SAFETY: the field is inside the mapping just made, which is writable.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), field, size) };
        }
        page
    }

    /// Check that a page without the right, or without a counter, is left to the system call.
    #[test]
    fn page_without_counter_reads_nothing() {
        assert_eq!(page_with(&[(INDEX, 3, 4), (OFFSET, 7, 8)]).read(), None);
        assert_eq!(page_with(&[(CAPABILITIES, CAP_USER_RDPMC, 8)]).read(), None);
        let readable = page_with(&[(CAPABILITIES, CAP_USER_RDPMC, 8), (INDEX, 3, 4)]);
        assert_eq!(readable.hardware_index(), Some(2));
    }

    /// Check that only the thread that mapped a page finds a counter in it.
    #[test]
    fn another_thread_finds_no_counter() {
        let page = page_with(&[(CAPABILITIES, CAP_USER_RDPMC, 8), (INDEX, 3, 4)]);
        assert_eq!(page.hardware_index(), Some(2));
        let page = std::thread::spawn(move || {
            assert_eq!((page.hardware_index(), page.read()), (None, None));
            page
        });
        assert_eq!(page.join().unwrap().hardware_index(), Some(2));
    }

    /// Check the page's clock against the header's formula, also where the clock is short, and that a page without
    /// a clock is left to the system call.
    #[test]
    fn times_go_on_by_the_pages_clock() {
        let time = [(TIME_SHIFT, 4, 2), (TIME_MULT, 40, 4), (TIME_OFFSET, 7, 8)];
        let with = |more: &[(usize, u64, usize)]| page_with(&[&time[..], more].concat());
        // 7 + (100 / 16) * 40 + (100 % 16) * 40 / 16
        assert_eq!(with(&[(CAPABILITIES, CAP_USER_TIME, 8)]).clock_ns(100), Some(7 + 240 + 10));
        let short = CAP_USER_TIME | CAP_USER_TIME_SHORT;
        let short = with(&[(CAPABILITIES, short, 8), (TIME_CYCLES, 250, 8), (TIME_MASK, 0xff, 8)]);
        // The short clock wrapped: 4 stands for 260.
        assert_eq!(short.clock_ns(4), Some(7 + 640 + 10));
        assert_eq!(with(&[(CAPABILITIES, CAP_USER_RDPMC, 8)]).clock_ns(100), None);
    }

    /// Check the sign extension at the widths that counters have.
    #[test]
    fn raw_counters_are_sign_extended() {
        assert_eq!(sign_extend(0xffff_ffff_ffff, 48), u64::MAX);
        assert_eq!(sign_extend(0x7fff_ffff_ffff, 48), 0x7fff_ffff_ffff);
        assert_eq!(sign_extend(0x8000_0000, 32), 0xffff_ffff_8000_0000);
        assert_eq!(sign_extend(u64::MAX, 64), u64::MAX);
        assert_eq!(sign_extend(5, 0), 5);
    }
}
