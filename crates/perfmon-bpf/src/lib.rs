//! Loads eBPF objects: maps of the sizes wanted, settings before the load, links with cookies to events of our own,
//! pins, and refusals of the verifier in a few lines.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use perfmon_bpf::{Loader, Object};
//! let object = Object::parse("probe.bpf.o", &std::fs::read("probe.bpf.o")?)?;
//! let loaded = Loader::new().set("NR_CPUS", 2u32).entries("RECORDS", 8192).load(&object)?;
//! let link = loaded.program("on_switch")?.attach()?;
//! # drop(link); Ok(()) }
//! ```

#![forbid(unsafe_code)]

mod btf;
mod btf_check;
mod capabilities;
mod check;
mod code;
mod error;
mod kind;
mod layout;
mod loaded;
mod loader;
mod object;
mod prepared;
mod reader;
mod records;
mod refusal;

pub use btf::{Btf, kernel_types};
pub use capabilities::{Abilities, Ability, Lack};
pub use error::Error;
pub use layout::Layout;
pub use loaded::{Link, Loaded, Map, Program};
pub use loader::{Loader, Setting};
pub use object::Object;
pub use perfmon_sys::{
    BpfRing, Errno, MapSpec, SharedMemory, TaskFilter, Together, Word, map_type,
};
pub use prepared::Prepared;
pub use refusal::Refusal;
