use std::fmt;

/// Most characters of each part of a message.
const SHOWN_CHARS: usize = 400;

/// Why a file with metrics, or a group of metrics, can't be had: where, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsError {
    /// The file; empty if it is about none.
    pub file: String,
    /// The line, from 1; `None` if it is about the whole file.
    pub line: Option<usize>,
    /// The field, such as `events.cycles` or `metric 'IPC': formula`; empty if it is about none.
    pub field: String,
    /// What is wrong: a clause without a full stop.
    pub why: String,
    /// Names that may have been meant, all equally near.
    pub near: Vec<String>,
}

impl MetricsError {
    pub(super) fn new(file: &str, why: impl Into<String>) -> Self {
        let (file, why) = (visible(file), visible(&why.into()));
        Self { file, line: None, field: String::new(), why, near: Vec::new() }
    }

    pub(super) fn line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub(super) fn field(mut self, field: &str) -> Self {
        self.field = visible(field);
        self
    }

    pub(super) fn near(mut self, near: Vec<String>) -> Self {
        self.near = near;
        self
    }
}

impl fmt::Display for MetricsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, field, why, near } = self;
        let place = match line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        };
        let parts = [&place, field, why].map(String::as_str);
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(": "))?;
        if let Some(question) = crate::near::question(near) {
            write!(f, "\n{question}")?;
        }
        Ok(())
    }
}

/// What a terminal may be given: text from a file may hold anything.
fn visible(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(SHOWN_CHARS).collect()
}

impl std::error::Error for MetricsError {}
