use std::fmt;

/// Most characters of a list that a message shows on each side of the place that it points to.
const SHOWN_CHARS: usize = 60;
/// Most characters of the offending text that a message repeats.
const FOUND_CHARS: usize = 40;

/// Why a list of events can't be read: where, what was expected there, and what may have been meant.
///
/// Its text shows the list with a caret below the place:
///
/// ```
/// let error = perfmon_events::Names::system().parse("task-clock,cylces:u").unwrap_err();
/// assert_eq!(error.position(), 11);
/// assert_eq!(
///     error.to_string(),
///     "expected an event, found 'cylces'\n  task-clock,cylces:u\n             ^\ndid you mean 'cycles'?"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The part of the list that a message shows, without control characters.
    shown: String,
    /// Characters of `shown` before the place.
    caret: usize,
    position: usize,
    expected: String,
    found: String,
    near: Vec<String>,
}

impl ParseError {
    /// `expected` is missing at byte `position` of `list`, where `found` is.
    pub(crate) fn new(list: &str, position: usize, expected: &str, found: &str) -> Self {
        let (before, after) = list.split_at_checked(position).unwrap_or((list, ""));
        let skipped = before.chars().count().saturating_sub(SHOWN_CHARS);
        let visible = |char: char| if char.is_control() { ' ' } else { char };
        let mut shown: String = before.chars().skip(skipped).map(visible).collect();
        let caret = shown.chars().count();
        shown.extend(after.chars().take(SHOWN_CHARS).map(visible));
        let found = found.chars().take(FOUND_CHARS).map(visible).collect();
        Self { shown, caret, position, expected: expected.to_owned(), found, near: Vec::new() }
    }

    pub(crate) fn near(mut self, near: Vec<String>) -> Self {
        self.near = near;
        self
    }

    /// Where the list can't be read: a byte offset from its start.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What was expected there.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Names that may have been meant, all equally near.
    pub fn near_matches(&self) -> &[String] {
        &self.near
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shown, caret, position: _, expected, found, near } = self;
        match found.as_str() {
            "" => write!(f, "expected {expected}, found nothing")?,
            found => write!(f, "expected {expected}, found '{found}'")?,
        }
        write!(f, "\n  {shown}\n  {:caret$}^", "")?;
        if let Some(question) = crate::near::question(near) {
            write!(f, "\n{question}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}
