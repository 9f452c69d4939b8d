// guest rows: arm64, x86_64
//! The backend on the running kernel: what is opened where, what is refused and why.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod helper;

mod attach;
mod backend;
mod budget;
mod times;
mod trial;
