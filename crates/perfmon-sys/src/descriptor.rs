use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::{Errno, check};

/// A new descriptor, closed on exec, for the open file that descriptor number `fd` refers to: for numbers that
/// a user names.
///
/// # Errors
/// The kernel's: `EBADF` if nothing is open under that number.
#[doc(alias = "F_DUPFD_CLOEXEC")]
pub fn duplicate(fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: the call takes integers only, and changes nothing about `fd` itself.
    let new = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })?;
    // SAFETY: the kernel just gave us this descriptor; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}
