//! PMU descriptions: TOML files to tables. The format is documented in `docs/pmu-descriptions.md`.
//!
//! The build script includes this module to turn the descriptions that are built in into tables, so it
//! uses nothing of the rest of the crate.

mod bits;
mod check;
mod error;
mod file;
mod raw;
mod registers;
mod table;
mod text;

pub use bits::Bits;
pub use error::DescriptionError;
pub use file::{DESCRIPTION_BYTES_MAX, parse};
pub use table::{
    EventEntry, Field, Identity, Layout, Level, Machine, Mask, Modifier, Place, PmcEntry, PmdEntry,
    Tables,
};
pub use text::Text;
