// guest rows: arm64-6.1, arm64-newest, arm64-2cpus, x86_64
//! Sessions on the running kernel, against work whose events are known. What needs a privilege that the
//! user lacks prints that it is skipped.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod helper;

mod accounted;
mod calling_thread;
mod commands;
mod cpus;
mod descriptors;
mod lifecycle;
mod mapped;
mod processes;
mod published;
mod published_calls;
mod published_helper;
mod published_owner;
mod published_reads;
mod published_states;
mod simulated;
