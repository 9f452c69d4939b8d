// guest rows: arm64-6.12
//! The Linux backend: one perf event per PMD, one read per group.
//!
//! [`Linux`] carries out a context's steps with `perf_event_open`. Beside it stand the things that only
//! Linux has: [`attach`] finds the threads of running processes, [`cpus`] the online CPUs, [`budget`]
//! the descriptors, and [`explain`] turns an errno into a reason and a hint.

#![forbid(unsafe_code)]

mod accounted;
mod alarm;
pub mod attach;
mod backend;
pub mod budget;
mod by_thread;
pub mod cgroup;
mod counter;
pub mod cpus;
pub mod explain;
mod group;
mod keep;
mod mapped;
mod opening;
mod permissions;
mod proc_file;
mod published;
pub mod times;
mod trial;
mod user_read;

pub use accounted::{Audit, TaskReadings};
pub use alarm::Fired;
pub use backend::{Linux, Loaded};
pub use by_thread::{NotToldApart, ThreadReadings};
pub use group::is_software;
pub use mapped::ReadPath;
pub use perfmon_sys::{
    Errno, Exit, HeldChild, Rusage, Signal, SignalFd, SignalInfo, SignalMask, SpawnError,
    SpawnOptions, duplicate, send_signal, take_precedence,
};
pub use permissions::{Permissions, has_core_pmu};
pub use published::{Attached, ContextInfo, Found, Published, ToPublish};
pub use trial::{Opened, Trial};
