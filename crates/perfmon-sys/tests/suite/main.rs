//! What the crate's functions promise.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod helper;

mod bpf;
mod libpfm;
