//! Where a description is wrong, in the words of its author: file, line, field.

use std::ops::Range;

use super::error::DescriptionError;
use super::raw::{self, At};

pub(super) type Checked<T> = Result<T, DescriptionError>;

/// A file that is being read.
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    pub(super) fn error(
        &self,
        span: Option<Range<usize>>,
        field: impl Into<String>,
        why: impl Into<String>,
    ) -> DescriptionError {
        let line = span.map(|span| {
            let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        });
        DescriptionError { file: self.file.to_owned(), line, field: field.into(), why: why.into() }
    }

    /// `value` is wrong.
    pub(super) fn at<T>(
        &self,
        value: &At<T>,
        field: impl Into<String>,
        why: impl Into<String>,
    ) -> DescriptionError {
        self.error(Some(value.span()), field, why)
    }

    /// What TOML or a type forbids. Its message names no field, but the line begins with it.
    pub(super) fn toml(&self, error: &toml::de::Error) -> DescriptionError {
        let span = error.span();
        if span.as_ref().is_some_and(|span| span.start == 0)
            && error.message().starts_with("missing field")
        {
            // The whole file lacks it, not its first line.
            return self.error(None, "", error.message());
        }
        let start = span.as_ref().map_or(0, |span| span.start).min(self.text.len());
        let line_start = self.text.as_bytes()[..start].iter().rposition(|byte| *byte == b'\n');
        let line = self.text.get(line_start.map_or(0, |at| at + 1)..).unwrap_or("");
        let line = line.lines().next().unwrap_or("");
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        let is_key =
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c));
        self.error(span, if is_key { key } else { "" }, error.message())
    }

    /// A name of letters, digits and the characters of `more`.
    pub(super) fn name<'n>(
        &self,
        name: &'n At<String>,
        field: &str,
        more: &str,
    ) -> Checked<&'n str> {
        let text = name.get_ref();
        let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.chars().all(fits) {
            let why = format!(
                "'{}' is no name: 1 to {NAME_BYTES_MAX} letters, digits and '{more}'",
                shortened(text)
            );
            return Err(self.at(name, field, why));
        }
        Ok(text)
    }

    /// One line of prose.
    pub(super) fn line(&self, about: &At<String>, field: impl Into<String>) -> Checked<String> {
        let text = about.get_ref().trim();
        let why = match text {
            "" => "is empty",
            text if text.contains(char::is_control) => "is more than one line",
            text if text.len() > LINE_BYTES_MAX => "is longer than 400 bytes",
            text => return Ok(text.to_owned()),
        };
        Err(self.at(about, field, why))
    }

    /// A register number or a range of them.
    pub(super) fn indices(&self, range: &At<raw::Range>, field: &str) -> Checked<Vec<u16>> {
        let parsed = match range.get_ref() {
            raw::Range::One(index) => u16::try_from(*index).ok().map(|index| (index, index)),
            raw::Range::Many(text) => numbers(text),
        };
        match parsed {
            Some((first, last)) if first <= last && last < REGISTERS_MAX => {
                Ok((first..=last).collect())
            }
            _ => Err(self.at(
                range,
                field,
                "expected a register number, 0 to 319, or a range such as \"0-5\"",
            )),
        }
    }

    /// Models or steppings.
    pub(super) fn ranges(&self, texts: &[At<String>], field: &str) -> Checked<Vec<(u32, u32)>> {
        let parse = |text: &At<String>| {
            numbers(text.get_ref()).filter(|(first, last)| first <= last).ok_or_else(|| {
                let why = format!(
                    "'{}' is no number or range such as \"0x00-0x0f\"",
                    shortened(text.get_ref())
                );
                self.at(text, field, why)
            })
        };
        texts.iter().map(parse).collect()
    }
}

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 80;
/// Longest line of prose, in bytes.
const LINE_BYTES_MAX: usize = 400;
/// perfmon2's limit (`PFM_MAX_PMDS`).
const REGISTERS_MAX: u16 = 320;

/// `a` or `a-b`, hexadecimal after `0x`.
fn numbers<N: TryFrom<u64>>(text: &str) -> Option<(N, N)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        let text = text.trim();
        let number = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        N::try_from(number.ok()?).ok()
    };
    Some((number(first)?, number(last)?))
}

/// So much of a text as a message repeats.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
