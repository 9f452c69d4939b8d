use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Errno;

/// Memory that the kernel or other processes may change at any time, as words that are accessed atomically.
#[derive(Debug)]
pub struct SharedMemory {
    address: NonNull<u8>,
    length: usize,
    writable: bool,
}

// SAFETY: the mapping belongs to the process, and all access is atomic.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps `length` bytes of `file` from `offset` on.
    ///
    /// # Errors
    /// The kernel's: `EPERM` for a map that was not made mappable (`BPF_F_MMAPABLE`) or is frozen, `EINVAL` for an
    /// offset that is no multiple of a page.
    pub fn map(file: impl AsFd, offset: u64, length: usize, writable: bool) -> Result<Self, Errno> {
        let write = if writable { ProtFlags::WRITE } else { ProtFlags::empty() };
        let protection = ProtFlags::READ | write;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, file, offset)
        }?;
        let address = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { address, length, writable })
    }

    /// Bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The 8 bytes at `offset`, a multiple of 8. `None` outside of the mapping.
    #[inline]
    pub fn word(&self, offset: usize) -> Option<Word<'_>> {
        let pointer = self.at(offset, size_of::<u64>())?;
        // SAFETY: inside the mapping, which lives as long as `self`, aligned, and accessed atomically by all.
        let word = unsafe { AtomicU64::from_ptr(pointer.cast()) };
        Some(Word { word, writable: self.writable })
    }

    /// The 4 bytes at `offset`, a multiple of 4. `None` outside of the mapping.
    #[inline]
    pub(super) fn word32(&self, offset: usize) -> Option<&AtomicU32> {
        let pointer = self.at(offset, size_of::<u32>())?;
        // SAFETY: as above.
        Some(unsafe { AtomicU32::from_ptr(pointer.cast()) })
    }

    /// `length` bytes at `offset` that nobody changes any more.
    pub(super) fn settled(&self, offset: usize, length: usize) -> Option<&[u8]> {
        if length > self.length.checked_sub(offset)? {
            return None;
        }
        // SAFETY: inside the mapping, as just checked.
        let pointer = unsafe { self.address.as_ptr().add(offset) };
        // SAFETY: mapped, and the caller knows that its writer is done with it.
        Some(unsafe { std::slice::from_raw_parts(pointer, length) })
    }

    #[inline]
    fn at(&self, offset: usize, size: usize) -> Option<*mut u8> {
        if !offset.is_multiple_of(size) || size > self.length.checked_sub(offset)? {
            return None;
        }
        // SAFETY: inside the mapping, as just checked.
        Some(unsafe { self.address.as_ptr().add(offset) })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}

/// `N` words of [`SharedMemory`] that are written together: the first is a sequence number, which is odd while the others
/// are written.
#[derive(Debug)]
pub struct Together<const N: usize> {
    words: NonNull<[AtomicU64; N]>,
    _memory: Arc<SharedMemory>,
}

// SAFETY: the mapping belongs to the process, and all access is atomic.
unsafe impl<const N: usize> Send for Together<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Together<N> {}

impl<const N: usize> Together<N> {
    /// The words at `offset`, a multiple of 8. `None` outside of the mapping.
    pub fn at(memory: &Arc<SharedMemory>, offset: usize) -> Option<Self> {
        let first = memory.at(offset, size_of::<u64>())?;
        if size_of::<[AtomicU64; N]>() > memory.length - offset {
            return None;
        }
        Some(Self { words: NonNull::new(first.cast())?, _memory: Arc::clone(memory) })
    }

    /// The words as they were together at one moment, and what `meanwhile` gave in that moment. `None` if they stayed odd
    /// or kept changing for so many `tries`.
    #[inline]
    pub fn read<T>(&self, tries: u32, mut meanwhile: impl FnMut() -> T) -> Option<([u64; N], T)> {
        // SAFETY: inside the mapping, which lives as long as `_memory`, aligned, and accessed atomically by all.
        let words = unsafe { self.words.as_ref() };
        let sequence = words.first()?;
        for _ in 0..tries {
            let before = sequence.load(Ordering::Acquire);
            // First, since nothing has to be kept over a call then.
            let value = meanwhile();
            let values = std::array::from_fn(|number| words[number].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && sequence.load(Ordering::Relaxed) == before {
                return Some((values, value));
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// 8 bytes of [`SharedMemory`].
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    word: &'a AtomicU64,
    writable: bool,
}

impl Word<'_> {
    /// Its value; what was written before it (a release store) is seen after this.
    #[inline]
    pub fn load(&self) -> u64 {
        self.word.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Its value, in no order with anything else.
    #[inline]
    pub fn load_relaxed(&self) -> u64 {
        self.word.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Sets it, after all that was written before. Does nothing to a mapping that is read only.
    #[inline]
    pub fn store(&self, value: u64) {
        if self.writable {
            self.word.store(value, std::sync::atomic::Ordering::Release);
        }
    }
}
