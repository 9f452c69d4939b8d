//! The loader: damaged files anywhere, and on the running kernel what objects do there, with known answers.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod helper;

mod abilities;
mod damage;
mod lab;
mod objects;
mod pins;
mod places;
mod refused;
