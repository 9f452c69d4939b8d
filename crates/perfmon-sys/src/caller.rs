use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::Errno;

/// A thread of a process, told from all others, also from its copy in a forked child, without a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    thread: u64,
}

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// A word that is 1 in this process and becomes 0 in a forked child.
struct ForkGuard(NonNull<u64>);

// SAFETY: the word is only ever accessed atomically, and stays mapped.
unsafe impl Send for ForkGuard {}
// SAFETY: as for `Send`.
unsafe impl Sync for ForkGuard {}

static GUARD: OnceLock<Result<ForkGuard, Errno>> = OnceLock::new();

impl Caller {
    /// The calling thread.
    ///
    /// # Errors
    /// `ENOMEM`, or that of a kernel that can't tell a forked child.
    pub fn current() -> Result<Self, Errno> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        GUARD.get_or_init(ForkGuard::new).as_ref().map_err(|errno| *errno)?;
        let thread = THREAD.with(|thread| {
            if thread.get() == 0 {
                thread.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            thread.get()
        });
        Ok(Self { thread })
    }

    /// Whether it is the calling thread.
    #[inline]
    pub fn is_current(self) -> bool {
        let here =
            matches!(GUARD.get(), Some(Ok(guard)) if guard.word().load(Ordering::Relaxed) == 1);
        here && THREAD.with(Cell::get) == self.thread
    }
}

impl ForkGuard {
    fn new() -> Result<Self, Errno> {
        let length = rustix::param::page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let address =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::PRIVATE) }?;
        // SAFETY: the advice is for the page just mapped, which holds nothing yet.
        unsafe { madvise(address, length, Advice::LinuxWipeOnFork) }?;
        let guard = Self(NonNull::new(address.cast()).ok_or(Errno::NOMEM)?);
        guard.word().store(1, Ordering::Relaxed);
        Ok(guard)
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped as long as the process lives, aligned, and accessed by this alone.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a thread is itself, and no other thread.
    #[test]
    fn a_thread_is_itself_alone() {
        let caller = Caller::current().unwrap();
        assert!(caller.is_current());
        assert_eq!(Caller::current(), Ok(caller));
        assert!(!std::thread::spawn(move || caller.is_current()).join().unwrap());
    }

    /// Check that a forked child is not the thread that it is a copy of.
    #[test]
    fn a_forked_child_is_another() {
        let caller = Caller::current().unwrap();
        // SAFETY: the child looks at memory and exits.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let status = i32::from(caller.is_current());
            // SAFETY: ends the child without running exit handlers.
            unsafe { libc::_exit(status) };
        }
        let mut status = -1;
        // SAFETY: `status` is writable, and the child is ours.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
        assert!(caller.is_current());
    }
}
