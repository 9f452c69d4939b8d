use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::{Attributes, Command, address, bpf, bpf_fd, c_path, raw};
use crate::Errno;

/// What bpf(2) makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpfKind {
    /// A program.
    Program,
    /// A map.
    Map,
    /// A link.
    Link,
}

#[repr(C)]
struct Pin {
    path: u64,
    fd: u32,
    flags: u32,
}

// SAFETY: only made here, with the address of a string that outlives the call.
unsafe impl Attributes for Pin {}

/// Gives a map, program or link a name in a BPF file system; it lives as long as the name.
///
/// # Errors
/// The kernel's: `EPERM` outside of a BPF file system, `EEXIST`.
pub fn pin(object: impl AsFd, at: &Path) -> Result<(), Errno> {
    let path = c_path(at)?;
    let mut attributes = Pin { path: address(path.as_ptr()), fd: raw(object.as_fd()), flags: 0 };
    bpf(Command::Pin, &mut attributes).map(|_| ())
}

/// Opens what is pinned at a path.
///
/// # Errors
/// The kernel's: `ENOENT`, `EPERM`, `EACCES`.
pub fn get_pinned(at: &Path) -> Result<OwnedFd, Errno> {
    let path = c_path(at)?;
    let mut attributes = Pin { path: address(path.as_ptr()), fd: 0, flags: 0 };
    bpf_fd(Command::GetPinned, &mut attributes)
}

#[repr(C)]
struct Info {
    fd: u32,
    size: u32,
    info: u64,
}

// SAFETY: only made by `info`, with the address and size of an array that outlives the call.
unsafe impl Attributes for Info {}

/// The first words of the kernel's struct on an object.
fn info<const N: usize>(object: BorrowedFd<'_>) -> Result<[u32; N], Errno> {
    let mut words = [0; N];
    let size = super::length(size_of_val(&words))?;
    let mut attributes = Info { fd: raw(object), size, info: address(words.as_mut_ptr()) };
    bpf(Command::Info, &mut attributes)?;
    Ok(words)
}

/// `struct bpf_map_info`: type, id, key and value bytes, entries, flags.
pub(super) fn map_info(map: BorrowedFd<'_>) -> Result<[u32; 6], Errno> {
    info(map)
}

/// The kernel's number of a map, program or link.
///
/// # Errors
/// The kernel's: `EINVAL` if it is none of these.
pub fn id_of(object: impl AsFd) -> Result<u32, Errno> {
    info::<2>(object.as_fd()).map(|[_, id]| id)
}

/// How often a program was not run because it was already running on the CPU.
///
/// # Errors
/// The kernel's: `EINVAL` if it is no program.
pub fn recursion_misses(program: impl AsFd) -> Result<u64, Errno> {
    // `struct bpf_prog_info` up to that field, which is its 27th word of 8 bytes.
    let words = info::<54>(program.as_fd())?;
    Ok(u64::from(words[52]) | u64::from(words[53]) << 32)
}

#[repr(C)]
struct NextId {
    start: u32,
    next: u32,
    flags: u32,
}

// SAFETY: no addresses.
unsafe impl Attributes for NextId {}

/// The numbers of all that exists of a kind.
///
/// # Errors
/// The kernel's: `EPERM` without `CAP_SYS_ADMIN`.
pub fn ids(kind: BpfKind) -> Result<Vec<u32>, Errno> {
    let command = match kind {
        BpfKind::Program => Command::ProgramNextId,
        BpfKind::Map => Command::MapNextId,
        BpfKind::Link => Command::LinkNextId,
    };
    let mut ids = Vec::new();
    loop {
        let start = ids.last().copied().unwrap_or(0);
        let mut attributes = NextId { start, next: 0, flags: 0 };
        match bpf(command, &mut attributes) {
            Ok(_) => ids.push(attributes.next),
            Err(Errno::NOENT) => return Ok(ids),
            Err(errno) => return Err(errno),
        }
    }
}
