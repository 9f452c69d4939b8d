//! Performance monitoring for Linux: counts that say how far to trust them.
//!
//! A [`Session`] counts named events in a [`Scope`]: the calling thread, a command with all its
//! descendants, running processes, CPUs, cgroups. What it says of each event is a [`Tally`]: a [`Count`]
//! that is exact, estimated, not counted or unsupported, each with its reason, and the times behind it.
//! Nothing is scaled silently, replaced by another event, or shown as 0 when it is unknown.
//!
//! ```
//! use perfmon::{Scope, Session};
//!
//! let mut session = Session::new("task-clock,page-faults:u,minor-faults:u")?;
//! session.load(&Scope::CurrentThread)?;
//! session.start()?;
//! let pages: Vec<u8> = vec![1; 100 * 4096];
//! session.stop()?;
//! session.read();
//! for row in session.counts().iter() {
//!     println!("{row}");
//! }
//! # drop(pages);
//! # Ok::<(), perfmon::Error>(())
//! ```
//!
//! Counting a closure is one call: [`measure()`].

#![forbid(unsafe_code)]

mod by_task;
mod counts;
mod error;
mod fast;
mod fit;
mod measure;
mod member;
mod published;
mod scope;
mod session;
mod sets;
mod workload;

pub use by_task::{Accounting, By};
pub use counts::{CountRow, Counts};
pub use error::Error;
pub use fit::{Fit, fit};
pub use measure::measure;
pub use member::Part;
/// The loader of eBPF objects.
pub use perfmon_bpf as bpf;
pub use perfmon_bpf::{Abilities, Ability, Lack};
pub use perfmon_core::{
    Backend, Caution, Count, Encoding, Estimate, Group, Inherit, Method, Privilege, Reading,
    Reason, Refusal, SetId, StartOn, Tally, Target,
};
pub use perfmon_events::{
    CpuId, Detail, Entry, Event, Explained, Explanation, Names, ParseError, PmuDescription, Source,
    Step, Wanted, configuration_folders, default_events, description, metrics,
};
pub use perfmon_linux::times::CpuTimes;
pub use perfmon_linux::{
    Audit, ContextInfo, Exit, Linux, Opened, Permissions, ReadPath, Signal, SignalFd, SignalInfo,
    SignalMask, Trial, cgroup, cpus, duplicate, has_core_pmu, is_software, send_signal,
};
pub use published::{Attached, Found, Published};
pub use scope::Scope;
pub use session::{Session, Snapshot};
pub use sets::{DWELL_MAX, DWELL_MIN, Leave, PlannedSet, SetStats, SetsFile, SetsFileError};
pub use workload::{Ended, SpawnError, Workload};
