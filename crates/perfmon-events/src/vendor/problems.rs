use std::fmt::Display;
use std::path::Path;

/// Most problems that are kept; the rest is counted.
const KEPT: usize = 256;
/// Longest text of a problem, without its file.
const CHARS_MAX: usize = 240;

/// What could not be used, and why.
#[derive(Debug, Default)]
pub(super) struct Problems {
    kept: Vec<String>,
    more: usize,
}

impl Problems {
    pub(super) fn add(&mut self, file: &Path, what: impl Display) {
        if self.kept.len() == KEPT {
            self.more += 1;
            return;
        }
        self.kept.push(format!("{}: {}", file.display(), visible(&what.to_string(), CHARS_MAX)));
    }

    pub(super) fn first(&self) -> Option<&str> {
        self.kept.first().map(String::as_str)
    }

    pub(super) fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.kept.push(format!("{} further problems are not shown", self.more));
        }
        self.kept
    }
}

/// A file's text on one line, without control characters, and with at most so many characters.
pub(super) fn visible(text: &str, chars_max: usize) -> String {
    let text = text.trim();
    if text.len() <= chars_max
        && !text.bytes().any(|byte| byte.is_ascii_control())
        && text.is_ascii()
    {
        return text.to_owned();
    }
    let more = if text.chars().nth(chars_max).is_some() { "…" } else { "" };
    let visible = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().take(chars_max).map(visible).chain(more.chars()).collect()
}
