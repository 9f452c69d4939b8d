//! Exit codes: the command's own, except these.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use perfmon::{Error, Exit, SpawnError};

/// The answer is no: nothing was found, or does not open, or does not fit.
pub(crate) const NO: u8 = 1;
/// pfmon could not measure, or did not understand its arguments.
pub(crate) const FAILED: u8 = 125;
/// With `--strict`: an event has no count.
pub(crate) const NOT_ALL_COUNTED: u8 = 124;
/// With `--max-error`: an estimate is not as sure.
pub(crate) const NOT_SURE: u8 = 123;
const CANT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The status of a command as a shell says it: of a signal, 128 and its number.
pub(crate) fn status(exit: Exit) -> u8 {
    let status = match exit {
        Exit::Status(status) => status,
        Exit::Signal(signal) => 128 + signal,
    };
    u8::try_from(status).unwrap_or(u8::MAX)
}

/// Says `message` on standard error, without what would move a terminal's cursor.
pub(crate) fn say(message: &str) {
    let visible = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    let message: String = message.chars().map(visible).collect();
    let _ = writeln!(std::io::stderr(), "pfmon: {message}");
}

/// Why pfmon ends without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { code: FAILED, message: message.to_string() }
    }

    /// Nothing was found.
    pub(crate) fn not_found(message: impl fmt::Display) -> Self {
        Self { code: NO, message: message.to_string() }
    }

    /// Says why on standard error, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        say(&self.message);
        self.code.into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error)
    }
}

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Self {
        let code = match error {
            SpawnError::NotFound(_) => NOT_FOUND,
            SpawnError::CantExecute(..) => CANT_EXECUTE,
            _ => FAILED,
        };
        Self { code, message: error.to_string() }
    }
}
