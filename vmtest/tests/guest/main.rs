//! perfmon on a hardware PMU: the emulated ones of `cargo xtask vm`, or this machine's own.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod helper;
mod raw;

mod accounted;
mod commands;
mod cpus;
mod fit;
mod groups;
mod kprobes;
mod list;
mod own_thread;
mod perf_oracle;
mod pinned;
mod sentinel;
mod shared;
mod threads;
mod user_reads;
mod wrap;
