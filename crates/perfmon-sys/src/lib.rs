// guest rows: arm64-6.12
//! The system calls that perfmon makes, one safe function each.
//!
//! This crate calls and returns; it has no policy. Calls that rustix wraps already are used from there
//! by whoever needs them; here is what it does not wrap, or wraps as `unsafe`.

#![allow(unsafe_code)]

mod bpf;
mod caller;
mod descriptor;
mod libpfm;
mod perf_event;
mod priority;
mod process;
mod ptrace;
mod ring;
mod signal;
mod user_page;

pub use bpf::{
    BpfInfo, BpfKind, BpfMap, BpfRing, MapSpec, MapTypes, ProgramSpec, SharedMemory, TaskFilter,
    Together, VerifierLog, Word, btf_load, get_pinned, id_of, ids, iterator_create, link_iterator,
    link_perf_event, link_tracing, map_type, pin, program_load, program_run, raw_tracepoint_open,
    recursion_misses,
};
pub use caller::Caller;
pub use descriptor::duplicate;
pub use libpfm::{
    Libpfm, LibpfmAttribute, LibpfmAttributeKind, LibpfmEntry, LibpfmError, LibpfmEvent, LibpfmPmu,
};
pub use perf_event::{
    OpenFlags, disable, enable, perf_event_open, read_words, set_output, set_period,
};
pub use priority::take_precedence;
pub use process::{Exit, HeldChild, Rusage, SpawnError, SpawnOptions};
pub use ptrace::{Held, hold_thread};
pub use ring::Ring;
pub use rustix::io::Errno;
pub use signal::{Signal, SignalFd, SignalInfo, SignalMask, send_signal};
pub use user_page::{PageReading, UserPage};

/// The errno that the calling thread's last libc call left.
fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// The result of a libc call that says -1 for failure.
fn check(result: libc::c_int) -> Result<libc::c_int, Errno> {
    if result == -1 { Err(last_errno()) } else { Ok(result) }
}
