//! bpf(2). Each command has a struct of its own with the fields that we pass; the kernel takes its size and treats
//! what is missing as zero.

mod link;
mod map;
mod object;
mod program;
mod ring;
mod shared;

use std::ffi::CString;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use link::{
    TaskFilter, iterator_create, link_iterator, link_perf_event, link_tracing, raw_tracepoint_open,
};
pub use map::{BpfMap, MapSpec, MapTypes, map_type};
pub use object::{BpfKind, get_pinned, id_of, ids, pin, recursion_misses};
pub use program::{BpfInfo, ProgramSpec, VerifierLog, btf_load, program_load, program_run};
pub use ring::BpfRing;
pub use shared::{SharedMemory, Together, Word};

use crate::{Errno, last_errno};

/// A command of bpf(2).
#[derive(Clone, Copy)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgramLoad = 5,
    Pin = 6,
    GetPinned = 7,
    TestRun = 10,
    ProgramNextId = 11,
    MapNextId = 12,
    Info = 15,
    RawTracepointOpen = 17,
    BtfLoad = 18,
    MapFreeze = 22,
    LinkCreate = 28,
    LinkNextId = 31,
    IteratorCreate = 33,
}

/// A struct that bpf(2) takes: plain integers without padding in between.
///
/// # Safety
/// Every address in it is 0, or that of memory which lives across the call and is as large as the command and the
/// fields beside it say, and writable where the kernel writes to it.
unsafe trait Attributes {}

fn bpf(command: Command, attributes: &mut impl Attributes) -> Result<i32, Errno> {
    let size = size_of_val(attributes);
    // SAFETY: the struct lives across the call and has the size given; `Attributes` vouches for what it points to.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command as i32, &raw mut *attributes, size) };
    match i32::try_from(result) {
        Ok(result @ 0..) => Ok(result),
        _ => Err(last_errno()),
    }
}

/// As [`bpf`], for commands that give a new descriptor.
fn bpf_fd(command: Command, attributes: &mut impl Attributes) -> Result<OwnedFd, Errno> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the kernel just gave us this descriptor; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A name as the kernel takes it: at most 15 letters, digits, `_` and `.`.
fn kernel_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().take(15).zip(name.bytes()) {
        let allowed = from.is_ascii_alphanumeric() || from == b'_' || from == b'.';
        *to = if allowed { from } else { b'_' };
    }
    bytes
}

fn c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}

/// A descriptor as the structs hold it.
fn raw(fd: std::os::fd::BorrowedFd<'_>) -> u32 {
    use std::os::fd::AsRawFd;
    fd.as_raw_fd().cast_unsigned()
}

/// An address as the structs hold it.
fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// A length as the structs hold it.
fn length(length: usize) -> Result<u32, Errno> {
    u32::try_from(length).map_err(|_| Errno::TOOBIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a name is cut and cleaned as the kernel wants it.
    #[test]
    fn names_fit_the_kernel() {
        assert_eq!(&kernel_name("a-long.name_of_a_map"), b"a_long.name_of_\0");
        assert_eq!(&kernel_name("x")[..2], b"x\0");
    }
}
