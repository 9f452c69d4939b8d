use std::fmt;

/// Why a description is refused: where, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    /// The file.
    pub file: String,
    /// The line, from 1; `None` if it is about the whole file.
    pub line: Option<usize>,
    /// The field, such as `event.CYCLES.set`; empty if it is about none.
    pub field: String,
    /// What is wrong: a clause without a full stop.
    pub why: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for DescriptionError {}
