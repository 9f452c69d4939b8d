use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Errno;

/// The ring that the kernel writes an event's records to.
///
/// # References
/// - perf_event_open(2), "MMAP layout"
#[doc(alias = "perf_event_mmap_page")]
#[derive(Debug)]
pub struct Ring {
    address: NonNull<u8>,
    length: usize,
    page_bytes: usize,
}

// SAFETY: the mapping belongs to the process, and only `&mut self` moves its tail.
unsafe impl Send for Ring {}

const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

impl Ring {
    /// Maps a ring of `data_pages` (a power of 2) for `event`.
    ///
    /// # Errors
    /// The kernel's: `EPERM` or `ENOMEM` if it is more locked memory than allowed, `EINVAL` for a number of
    /// pages that is no power of 2.
    pub fn map(event: impl AsFd, data_pages: usize) -> Result<Self, Errno> {
        let page_bytes = rustix::param::page_size();
        if !data_pages.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let length = data_pages
            .checked_add(1)
            .and_then(|pages| pages.checked_mul(page_bytes))
            .ok_or(Errno::NOMEM)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address =
            unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, event, 0) }?;
        let address = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { address, length, page_bytes })
    }

    /// Moves all records that are there to the end of `bytes`.
    pub fn drain(&mut self, bytes: &mut Vec<u8>) {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let size = self.length - self.page_bytes;
        let available = usize::try_from(head.wrapping_sub(tail)).unwrap_or(size).min(size);
        let begin = usize::try_from(tail).unwrap_or(0) & (size - 1);
        let to_end = available.min(size - begin);
        bytes.reserve(available);
        self.copy(begin, to_end, bytes);
        self.copy(0, available - to_end, bytes);
        self.position(DATA_TAIL).store(head, Ordering::Release);
    }

    fn copy(&self, offset: usize, length: usize, bytes: &mut Vec<u8>) {
        // SAFETY: `offset` is inside the data that follows the first page.
        let data = unsafe { self.address.as_ptr().add(self.page_bytes + offset) };
        // SAFETY: `offset + length` is at most the size of the data, which is mapped; the kernel does not write
        // between tail and head until the tail has moved.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(data, length) });
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `offset` is inside the first page, which is mapped as long as `self` lives.
        let position = unsafe { self.address.as_ptr().add(offset) };
        // SAFETY: it is a naturally aligned u64, which both sides access atomically.
        unsafe { AtomicU64::from_ptr(position.cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}
