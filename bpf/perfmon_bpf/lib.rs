//! What eBPF programs in Rust need of the kernel: helper calls, maps, settings, the context, atomics.
//!
//! There are no crates below it but `core`. A program is a file of its own, which the recipe of
//! `cargo xtask bpf` compiles against this library:
//!
//! ```text
//! #![no_std]
//! use core::ffi::c_void;
//! use perfmon_bpf::*;
//!
//! license!();
//! map!(SAMPLES: ARRAY, key u32, value u64, entries 1, flags MMAPABLE);
//! setting!(TGID: u32 = 0);
//!
//! /// Counts the samples of one process.
//! #[unsafe(no_mangle)]
//! #[unsafe(link_section = "perf_event")]
//! pub unsafe extern "C" fn count(_ctx: *mut c_void) -> u32 {
//!     if tgid() == get(&TGID) {
//!         let samples = element(&SAMPLES, 0);
//!         if !samples.is_null() {
//!             unsafe { bump(samples) };
//!         }
//!     }
//!     0
//! }
//! ```
//!
//! # Rules
//!
//! * A program is an `extern "C" fn` with a plain name and the section that says what it attaches to,
//!   written out, so that its return value is what it says: in `perf_event` programs it decides whether
//!   the sample goes on to the event's own output.
//! * It can't panic: no indexing, no slices, no division by what may be zero, no `unwrap`. Nothing of
//!   `core` is linked, so that a call left over has no target; the build refuses it by name.
//! * A pointer from a map is checked for null before it is used, or the verifier refuses the program.
//! * What two CPUs change is changed by [`add`], [`bump`], [`take`] or [`exchange`].
//! * Fields of the context are read by [`context_word`] and [`context_half`].
//! * A function that is to stay a call (`#[inline(never)]`) has no type parameters: their brackets make
//!   a name that the kernel refuses in type information.
//!
//! # Safety
//!
//! The kernel's verifier proves that a program touches only what it may, whatever its source says: the
//! worst that wrong code does is not to load. `unsafe` marks what the Rust compiler can't see.

#![no_std]
#![feature(core_intrinsics, asm_experimental_arch)]
#![allow(internal_features)]
#![warn(missing_docs)]

mod atomics;
mod context;
pub mod helpers;
#[allow(missing_docs)]
mod layout;
pub mod maps;
pub mod pfm;
mod settings;

pub use atomics::{add, bump, exchange, take};
pub use context::{context_half, context_word};
pub use helpers::*;
pub use maps::*;
pub use settings::get;

// The compiler wants one; the build makes sure that nothing gets here.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
