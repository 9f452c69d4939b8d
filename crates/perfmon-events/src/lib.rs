//! Event names to register values: event strings in, [`Encoding`](perfmon_core::Encoding)s out.
//!
//! ```
//! use perfmon_events::Names;
//!
//! let events = Names::system().parse("task-clock, {page-faults,minor-faults}:u, mem:0x1000/8:w")?;
//! let faults = events[1].encoding.as_ref().unwrap();
//! assert_eq!((faults.pmu_type, faults.config), (1, 2));
//! assert_eq!(events[1].text, "page-faults:u");
//! # Ok::<(), perfmon_events::ParseError>(())
//! ```
//!
//! # Grammar
//!
//! ```text
//! list      = item { ',' item }                      white space around commas and braces is free
//! item      = event | [ NAME ] '{' event { ',' event } '}' [ ':' modifiers ]    the NAME says nothing
//! event     = [ DESCRIPTION '::' ] NAME { ':' part } an event of a PMU description, or of libpfm4
//!           | NAME '.' MASK { ':' part }             as vendors write it
//!           | NAME [ ':' modifiers ]                 the kernel's events, as `perf list` names them; an alias
//!                                                    of the core PMU; an event of a vendor's file
//!           | 'r' HEX [ ':' modifiers ]              a raw event of the core PMU
//!           | TYPE ':' NUMBER [ ':' modifiers ]      `type` and `config` of `perf_event_attr`
//!           | PMU '/' term { ',' term } '/' [ [ ':' ] modifiers ]    `*` in PMU stands for any text
//!           | 'mem:' ADDRESS [ '/' LENGTH ] [ ':' access ] [ ':' modifiers ]
//!           | GROUP ':' NAME [ ':' modifiers ]       a tracepoint
//!           | ( 'uprobe:' | 'uretprobe:' ) PATH ':' place [ ':' modifiers ]
//!           | ( 'kprobe:' | 'kretprobe:' ) SYMBOL [ '+' NUMBER ] [ ':' modifiers ]    a function of the kernel
//! part      = MASK | NAME [ '=' NUMBER ] | modifiers a unit mask, or a modifier of the description (`c=2`)
//! term      = NAME [ '=' NUMBER ]                    an alias of the PMU, a field of its format, or an event
//!                                                    of its description
//! access    = letters of "rwx"                       default: rw
//! place     = SYMBOL [ '+' NUMBER ] | NUMBER         a NUMBER alone is an offset in the file
//! modifiers = letters of "ukhIGHpDe"                 p up to three times
//! ```
//!
//! Numbers are decimal, or hexadecimal after `0x`. A PATH or SYMBOL holds no `:`, `,`, `{` and `}`.
//!
//! | modifier | meaning |
//! | --- | --- |
//! | `u`, `k`, `h` | count in user mode, in the kernel, in the hypervisor, and not at the levels left out |
//! | `I` | not while the CPU is idle |
//! | `G`, `H` | count in guests, on the host, and not where left out |
//! | `p` | how precise the instruction address of a sample is to be (`precise_ip`); a group's adds to an event's |
//! | `D` | always on the PMU, or in error (`pinned`); in a group, the first event's |
//! | `e` | alone on the PMU (`exclusive`); in a group, the first event's |
//!
//! # Sources
//!
//! Names are looked up in PMU [descriptions](description) (built in, of directories, given), sysfs, the
//! kernel's generic events, tracefs, libpfm4's library if the machine has it, and vendors' JSON files, in
//! this order ([`Source`]). [`Names::explain`] says what each had, [`Names::catalog`] lists all. On machines
//! with several types of cores a name stands for one event for each of them. [`metrics`] are formulas over
//! events.
//!
//! # What is an error, and what a refusal
//!
//! What can't be read is a [`ParseError`] and fails the list. What is read, but not to be had on this
//! machine (a tracepoint, a PMU, a symbol) or never true (`context-switches:u`) is that event's
//! [`Refusal`](perfmon_core::Refusal); the other events of the list stay.
//!
//! # References
//! - perf-list(1); perf_event_open(2), "Arguments"
//! - Linux, `Documentation/ABI/testing/sysfs-bus-event_source-devices-events` and `-format`

#![forbid(unsafe_code)]

mod blind;
mod catalog;
mod defaults;
mod described;
pub mod description;
mod elf;
mod error;
mod event;
mod explain;
mod found;
mod generic;
mod hit;
mod kprobe;
mod machine;
pub mod metrics;
mod modifiers;
mod names;
mod near;
mod read;
mod registry;
mod resolve;
mod syntax;
mod sysfs;
mod tracepoint;
mod uprobe;
mod vendor;

pub use catalog::{Entry, Wanted};
pub use defaults::default_events;
pub use error::ParseError;
pub use event::Event;
pub use explain::{Detail, Explained, Explanation, Source, Step};
pub use machine::CpuId;
pub use names::{Names, configuration_folders};
pub use registry::PmuDescription;
