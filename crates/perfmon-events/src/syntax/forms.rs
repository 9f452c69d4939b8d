//! Forms of the grammar with a punctuation of their own: breakpoints, probes, terms.

use super::{Parsed, Parser, Place, Spec, split_at_colon};

/// `HW_BREAKPOINT_R`, `_W`, `_X`.
const ACCESSES: [(char, u32); 3] = [('r', 1), ('w', 2), ('x', 4)];
pub(crate) const ACCESS_EXECUTE: u32 = 4;
const ACCESS_READ_WRITE: u32 = 3;
/// perf's default for data: `HW_BREAKPOINT_LEN_4`.
const DATA_LENGTH: u64 = 4;
/// perf's default for code, and the one length that the kernel takes on x86: `sizeof(long)`.
const CODE_LENGTH: u64 = size_of::<usize>() as u64;
/// `HW_BREAKPOINT_LEN_8`.
const LENGTH_MAX: u64 = 8;

impl<'a> Parser<'a, '_> {
    /// The number of a raw event, if `word` is one.
    pub(super) fn raw(&self, word: &str) -> Parsed<Option<u64>> {
        let digits = word.strip_prefix('r').filter(|it| !it.is_empty());
        match digits.filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            None => Ok(None),
            Some(digits) => u64::from_str_radix(digits, 16)
                .map(Some)
                .map_err(|_| self.error(digits, "a number below 2^64")),
        }
    }

    /// `TYPE:CONFIG`, the numbers of `perf_event_attr`.
    pub(super) fn numeric(
        &self,
        word: &'a str,
        behind: Option<&'a str>,
    ) -> Parsed<Option<(Spec<'a>, Option<&'a str>)>> {
        // A tracepoint's group may begin with a digit: 9p.
        let Some(behind) = behind.filter(|it| it.starts_with(|first: char| first.is_ascii_digit()))
        else {
            return Ok(None);
        };
        if word.is_empty() || self.number(word).is_err() {
            return Ok(None);
        }
        let (config, letters) = split_at_colon(behind);
        let pmu_type = u32::try_from(self.number(word)?)
            .map_err(|_| self.error(word, "a PMU's number, below 2^32"))?;
        Ok(Some((Spec::Numeric { pmu_type, config: self.number(config)? }, letters)))
    }

    /// What follows `mem:`.
    pub(super) fn breakpoint(&self, body: &'a str) -> Parsed<(Spec<'a>, Option<&'a str>)> {
        let (range, behind) = split_at_colon(body);
        let (address, length) = match range.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (range, None),
        };
        let (access, letters) = match behind.map(|behind| (behind, split_at_colon(behind))) {
            None => (ACCESS_READ_WRITE, None),
            Some((_, (accesses, letters))) if accesses.starts_with(['r', 'w', 'x']) => {
                (self.access(accesses)?, letters)
            }
            Some((letters, _)) => (ACCESS_READ_WRITE, Some(letters)),
        };
        let address = self.number(address)?;
        let length = match length {
            Some(digits) => match self.number(digits)? {
                length @ 1..=LENGTH_MAX => length,
                _ => return Err(self.error(digits, "a length of 1 to 8 bytes")),
            },
            None if access == ACCESS_EXECUTE => CODE_LENGTH,
            None => DATA_LENGTH,
        };
        Ok((Spec::Breakpoint { address, length, access }, letters))
    }

    fn access(&self, letters: &str) -> Parsed<u32> {
        let mut access = 0;
        for (offset, letter) in letters.char_indices() {
            let bit = ACCESSES.iter().find(|(known, _)| *known == letter).map(|(_, bit)| *bit);
            match bit.filter(|bit| access & bit == 0) {
                Some(bit) => access |= bit,
                None => {
                    let expected = "an access (r, w and x, each once)";
                    return Err(self.error_at_first(&letters[offset..], expected));
                }
            }
        }
        Ok(access)
    }

    /// What follows `uprobe:` or `uretprobe:`.
    pub(super) fn uprobe(
        &self,
        body: &'a str,
        is_return: bool,
    ) -> Parsed<(Spec<'a>, Option<&'a str>)> {
        let (path, behind) = split_at_colon(body);
        if path.is_empty() {
            return Err(self.error(path, "a file's path"));
        }
        let Some(behind) = behind else {
            return Err(self.error(&path[path.len()..], "':SYMBOL' or ':OFFSET' behind the path"));
        };
        let (place, letters) = split_at_colon(behind);
        Ok((Spec::Uprobe { path, place: self.place(place)?, is_return }, letters))
    }

    /// What follows `kprobe:` or `kretprobe:`.
    pub(super) fn kprobe(
        &self,
        body: &'a str,
        is_return: bool,
    ) -> Parsed<(Spec<'a>, Option<&'a str>)> {
        let (place, letters) = split_at_colon(body);
        match self.place(place)? {
            Place::Symbol { name, offset } => {
                Ok((Spec::Kprobe { function: name, offset, is_return }, letters))
            }
            Place::FileOffset(_) => Err(self.error(place, "a function of the kernel")),
        }
    }

    fn place(&self, text: &'a str) -> Parsed<Place<'a>> {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            return self.number(text).map(Place::FileOffset);
        }
        let (name, offset) = match text.rsplit_once('+') {
            Some((name, offset)) => (name, self.number(offset)?),
            None => (text, 0),
        };
        if name.is_empty() {
            return Err(self.error(text, "a symbol, or an offset in the file"));
        }
        Ok(Place::Symbol { name, offset })
    }
}

/// Where the slash is that ends the terms; what stands in quotes is a term's own.
pub(super) fn closing_slash(body: &str) -> Option<usize> {
    let mut is_quoted = false;
    body.bytes().position(|byte| {
        is_quoted ^= byte == b'\'';
        byte == b'/' && !is_quoted
    })
}

/// The parts between the commas that stand in no quotes.
pub(super) fn split_unquoted(terms: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    terms.split(move |c: char| {
        is_quoted ^= c == '\'';
        c == ',' && !is_quoted
    })
}
