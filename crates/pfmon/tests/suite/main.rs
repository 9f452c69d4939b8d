//! The command against work whose events are known. What needs a privilege or hardware that is not there
//! prints that it is skipped.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod helper;

mod accounting;
mod answers;
mod attached;
mod cpus;
mod doctor;
mod explain;
mod fit;
mod limits;
mod list;
mod metrics;
mod options;
mod ordinary_user;
mod output;
mod pmu;
mod refused;
mod schema;
mod status;
