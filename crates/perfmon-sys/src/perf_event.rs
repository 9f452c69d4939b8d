use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{Errno, last_errno};

/// Flags of [`perf_event_open`] beside `PERF_FLAG_FD_CLOEXEC`, which is always set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// `PERF_FLAG_PID_CGROUP`: `pid` is the descriptor of a cgroup's directory.
    pub pid_cgroup: bool,
}

const PERF_FLAG_PID_CGROUP: libc::c_ulong = 1 << 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
const PERF_EVENT_IOC_ENABLE: libc::Ioctl = 0x2400;
const PERF_EVENT_IOC_DISABLE: libc::Ioctl = 0x2401;
const PERF_EVENT_IOC_SET_OUTPUT: libc::Ioctl = 0x2405;
const PERF_EVENT_IOC_PERIOD: libc::Ioctl = 0x4008_2404;

/// Opens the event that `attr` (the bytes of a `perf_event_attr`) describes.
///
/// # Errors
/// The kernel's, see perf_event_open(2); `EINVAL` also if `attr` is too short to hold its own size.
///
/// # References
/// - perf_event_open(2)
pub fn perf_event_open(
    attr: &[u8],
    pid: i32,
    cpu: i32,
    group: Option<BorrowedFd<'_>>,
    flags: OpenFlags,
) -> Result<OwnedFd, Errno> {
    // The kernel reads as many bytes as the field `size` says.
    let size = attr.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
    if size.is_none_or(|size| size as usize > attr.len()) {
        return Err(Errno::INVAL);
    }
    let group = group.map_or(-1, |fd| fd.as_raw_fd());
    let mut bits = PERF_FLAG_FD_CLOEXEC;
    if flags.pid_cgroup {
        bits |= PERF_FLAG_PID_CGROUP;
    }
    // SAFETY: `attr` is readable for the `size` bytes that it says it has (checked above). An address
    // inside it (a uprobe's path) is copied by the kernel, which answers EFAULT if it is bad.
    let result =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), pid, cpu, group, bits) };
    let Ok(fd @ 0..) = i32::try_from(result) else { return Err(last_errno()) };
    // SAFETY: the kernel just gave us this descriptor; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Enables an event, and the events it was inherited to. Siblings of a leader count from then on.
///
/// # Errors
/// The kernel's.
#[doc(alias = "PERF_EVENT_IOC_ENABLE")]
pub fn enable(event: impl AsFd) -> Result<(), Errno> {
    ioctl(event.as_fd(), PERF_EVENT_IOC_ENABLE, 0)
}

/// Disables an event, and the events it was inherited to.
///
/// # Errors
/// The kernel's.
#[doc(alias = "PERF_EVENT_IOC_DISABLE")]
pub fn disable(event: impl AsFd) -> Result<(), Errno> {
    ioctl(event.as_fd(), PERF_EVENT_IOC_DISABLE, 0)
}

/// Sends the records of `event` to the ring of `owner`, an event on the same CPU.
///
/// # Errors
/// The kernel's.
#[doc(alias = "PERF_EVENT_IOC_SET_OUTPUT")]
pub fn set_output(event: impl AsFd, owner: impl AsFd) -> Result<(), Errno> {
    ioctl(event.as_fd(), PERF_EVENT_IOC_SET_OUTPUT, owner.as_fd().as_raw_fd())
}

/// Lets `event`, which samples, overflow after `period` more occurrences, and each time after as many. What it has counted of
/// the period under way is forgotten.
///
/// # Errors
/// The kernel's: `EINVAL` if the event does not sample, or for a period of 0 or 2⁶³ and up.
#[doc(alias = "PERF_EVENT_IOC_PERIOD")]
pub fn set_period(event: impl AsFd, period: u64) -> Result<(), Errno> {
    let event = event.as_fd().as_raw_fd();
    // SAFETY: the request reads a u64, and `period` lives until it returns.
    let result = unsafe { libc::ioctl(event, PERF_EVENT_IOC_PERIOD, &raw const period) };
    crate::check(result).map(drop)
}

fn ioctl(event: BorrowedFd<'_>, request: libc::Ioctl, argument: i32) -> Result<(), Errno> {
    // SAFETY: all these requests take an integer argument; no memory is involved.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request, argument) };
    crate::check(result).map(drop)
}

/// Reads from `event` into `words` and says how many 64-bit words there were. A part of a word at the
/// end of the data is left out.
///
/// # Errors
/// The kernel's: `ENOSPC` if the buffer is too small, `ECHILD` for an inherited group whose child has
/// another shape.
#[inline]
pub fn read_words(event: impl AsFd, words: &mut [u64]) -> Result<usize, Errno> {
    let length = size_of_val(words);
    let bytes = words.as_mut_ptr().cast();
    // SAFETY: `bytes` are the `length` bytes of `words`, which is borrowed as long; any bytes make words.
    let bytes: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(bytes, length) };
    Ok(rustix::io::read(event, bytes)? / size_of::<u64>())
}
