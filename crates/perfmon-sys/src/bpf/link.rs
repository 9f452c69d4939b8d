use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use super::{Attributes, Command, address, bpf_fd, raw};
use crate::Errno;

/// Which tasks an iterator over tasks visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskFilter {
    /// All of them.
    #[default]
    All,
    /// This thread, by id.
    Thread(u32),
    /// The threads of this process, by id.
    Process(u32),
}

const TRACE_FENTRY: u32 = 24;
const TRACE_ITERATOR: u32 = 28;
const PERF_EVENT: u32 = 41;

#[repr(C)]
#[derive(Default)]
struct Create {
    program_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    /// The cookie of a perf event, or the address of an iterator's parameters.
    argument: u64,
    argument_bytes: u32,
    padding: u32,
}

// SAFETY: only made here: the argument is a cookie, or the address of a struct that outlives the call.
unsafe impl Attributes for Create {}

/// Attaches a program to a perf event, which hands it `cookie` each time. Both live as long as the link.
///
/// # Errors
/// The kernel's: `EINVAL` for an event that takes no program of this type; `EEXIST` if it has one already.
pub fn link_perf_event(
    program: impl AsFd,
    event: impl AsFd,
    cookie: u64,
) -> Result<OwnedFd, Errno> {
    let mut attributes = Create {
        program_fd: raw(program.as_fd()),
        target_fd: raw(event.as_fd()),
        attach_type: PERF_EVENT,
        argument: cookie,
        ..Create::default()
    };
    bpf_fd(Command::LinkCreate, &mut attributes)
}

/// Attaches a program to the kernel function that it was loaded for (fentry, fexit).
///
/// # Errors
/// The kernel's.
pub fn link_tracing(program: impl AsFd) -> Result<OwnedFd, Errno> {
    // The kernel takes the attach type from the program, and this command for all of them.
    let mut attributes =
        Create { program_fd: raw(program.as_fd()), attach_type: TRACE_FENTRY, ..Create::default() };
    bpf_fd(Command::LinkCreate, &mut attributes).or_else(|errno| match errno {
        Errno::INVAL => raw_tracepoint_open(program, None),
        errno => Err(errno),
    })
}

/// `union bpf_iter_link_info`, as far as tasks need it.
#[repr(C)]
#[derive(Default)]
struct TaskParameters {
    tid: u32,
    pid: u32,
    pid_fd: u32,
    padding: u32,
}

/// Readies an iterator over tasks.
///
/// # Errors
/// The kernel's: `EINVAL` before Linux 6.1 with a filter. A task that is not there is none: nobody is visited.
pub fn link_iterator(program: impl AsFd, filter: TaskFilter) -> Result<OwnedFd, Errno> {
    let parameters = match filter {
        TaskFilter::All => TaskParameters::default(),
        TaskFilter::Thread(tid) => TaskParameters { tid, ..TaskParameters::default() },
        TaskFilter::Process(pid) => TaskParameters { pid, ..TaskParameters::default() },
    };
    let mut attributes = Create {
        program_fd: raw(program.as_fd()),
        attach_type: TRACE_ITERATOR,
        ..Create::default()
    };
    if filter != TaskFilter::All {
        attributes.argument = address(&raw const parameters);
        attributes.argument_bytes = 16;
    }
    bpf_fd(Command::LinkCreate, &mut attributes)
}

#[repr(C)]
struct IteratorCreate {
    link_fd: u32,
    flags: u32,
}

// SAFETY: no addresses.
unsafe impl Attributes for IteratorCreate {}

/// A file whose reading runs the iterator of `link`; what its program writes is what is read.
///
/// # Errors
/// The kernel's.
pub fn iterator_create(link: impl AsFd) -> Result<OwnedFd, Errno> {
    let mut attributes = IteratorCreate { link_fd: raw(link.as_fd()), flags: 0 };
    bpf_fd(Command::IteratorCreate, &mut attributes)
}

#[repr(C)]
struct RawTracepointOpen {
    name: u64,
    program_fd: u32,
    padding: u32,
}

// SAFETY: only made by `raw_tracepoint_open`, whose name outlives the call.
unsafe impl Attributes for RawTracepointOpen {}

/// Attaches a program to a raw tracepoint. One that was loaded for a tracepoint of its own (`tp_btf`) needs no `name`.
///
/// # Errors
/// The kernel's: `ENOENT` if there is no such tracepoint.
pub fn raw_tracepoint_open(program: impl AsFd, name: Option<&str>) -> Result<OwnedFd, Errno> {
    let name = name.map(CString::new).transpose().map_err(|_| Errno::INVAL)?;
    let pointer = name.as_ref().map_or(0, |name| address(name.as_ptr()));
    let program_fd = raw(program.as_fd());
    let mut attributes = RawTracepointOpen { name: pointer, program_fd, padding: 0 };
    bpf_fd(Command::RawTracepointOpen, &mut attributes)
}
