//! The grammar (see the crate's documentation): a list of events as text, taken apart without looking
//! anything up. No text may panic, or take memory out of proportion to its length.

use perfmon_core::Group;

use crate::error::ParseError;
use crate::generic::{self, Generic};
use crate::modifiers::{self, Modifiers};
use crate::near;

/// Longest list, in bytes.
const LIST_BYTES_MAX: usize = 64 * 1024;

const EVENT: &str = "an event";
const NUMBER: &str = "a number (decimal, or hexadecimal after 0x)";

/// An event as typed.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// Its text, with what its group adds.
    pub(crate) text: String,
    pub(crate) spec: Spec<'a>,
    pub(crate) modifiers: Modifiers,
    pub(crate) group: Group,
    /// It is not the first of its group, and asks by itself for what only the first may ask.
    pub(crate) claims_leadership: bool,
}

/// What an event names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Spec<'a> {
    Generic(Generic),
    Raw(u64),
    Breakpoint { address: u64, length: u64, access: u32 },
    Sysfs { pmu: &'a str, terms: Vec<Term<'a>> },
    Tracepoint { group: &'a str, name: &'a str },
    Uprobe { path: &'a str, place: Place<'a>, is_return: bool },
}

/// `name` or `name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: Option<u64>,
}

/// Where in a file a probe goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// So many bytes after the start of a function.
    Symbol { name: &'a str, offset: u64 },
    /// So many bytes after the start of the file.
    FileOffset(u64),
}

/// Terms that perf takes for itself and that are about sampling or presentation, not about what is
/// counted. Source: `tools/perf/util/parse-events.l`.
pub(crate) const NOT_COUNTING: [&str; 16] = [
    "name",
    "period",
    "freq",
    "branch_type",
    "time",
    "call-graph",
    "stack-size",
    "max-stack",
    "nr",
    "inherit",
    "no-inherit",
    "overwrite",
    "no-overwrite",
    "percore",
    "aux-output",
    "aux-sample-size",
];

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

type Parsed<T> = Result<T, ParseError>;

/// Takes `list` apart.
pub(crate) fn items(list: &str) -> Parsed<Vec<Item<'_>>> {
    if list.len() > LIST_BYTES_MAX {
        let expected = format!("at most {LIST_BYTES_MAX} bytes");
        return Err(ParseError::new(list, 0, &expected, &format!("{} bytes", list.len())));
    }
    let mut parser = Parser { list, rest: list.trim_start() };
    let mut items = Vec::new();
    let mut groups = 0;
    loop {
        if parser.take('{') {
            parser.group(Group::Together(groups), &mut items)?;
            // A list has room for fewer groups than a u16 counts: each takes at least 4 bytes.
            groups += 1;
        } else {
            items.push(parser.event(Group::Free)?);
        }
        if parser.rest.is_empty() {
            return Ok(items);
        }
        parser.require(',', "',' or the end of the list")?;
    }
}

/// A list, and what of it is left to read, which starts with no white space.
struct Parser<'a> {
    list: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// `expected` is missing where `part` is, which is a part of the list.
    fn error(&self, part: &str, expected: &str) -> ParseError {
        let position = part.as_ptr().addr().wrapping_sub(self.list.as_ptr().addr());
        ParseError::new(self.list, position, expected, part)
    }

    /// As [`error`](Self::error), of which `part` the first character is at fault.
    fn error_at_first(&self, part: &str, expected: &str) -> ParseError {
        let length = part.chars().next().map_or(0, char::len_utf8);
        self.error(&part[..length], expected)
    }

    /// Takes `mark` and the white space behind it, if it comes next.
    fn take(&mut self, mark: char) -> bool {
        let behind = self.rest.strip_prefix(mark);
        self.rest = behind.map_or(self.rest, str::trim_start);
        behind.is_some()
    }

    fn require(&mut self, mark: char, expected: &str) -> Parsed<()> {
        if self.take(mark) { Ok(()) } else { Err(self.error_at_first(self.rest, expected)) }
    }

    /// Takes `length` bytes and the white space behind them; answers them without it.
    fn advance(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest.trim_start();
        taken.trim_end()
    }

    /// The events of a group, from behind its opening brace to behind its modifiers.
    fn group(&mut self, group: Group, items: &mut Vec<Item<'a>>) -> Parsed<()> {
        let first = items.len();
        loop {
            if self.rest.starts_with('{') {
                return Err(self.error_at_first(self.rest, "an event: groups don't nest"));
            }
            let mut item = self.event(group)?;
            let own = item.modifiers;
            item.claims_leadership = items.len() > first && own != own.of_followers();
            items.push(item);
            if self.take('}') {
                break;
            }
            self.require(',', "',' or '}'")?;
        }
        if self.take(':') {
            let letters = self.advance(self.rest.find([',', '{', '}']).unwrap_or(self.rest.len()));
            let mut added = self.modifiers(letters)?;
            for item in &mut items[first..] {
                item.add(added);
                added = added.of_followers();
            }
        }
        Ok(())
    }

    /// One event, up to the comma or brace behind it.
    fn event(&mut self, group: Group) -> Parsed<Item<'a>> {
        let text = self.advance(self.event_length()?);
        if text.is_empty() {
            return Err(self.error_at_first(self.rest, EVENT));
        }
        let (spec, letters) = self.spec(text)?;
        let modifiers = letters.map_or(Ok(Modifiers::default()), |it| self.modifiers(it))?;
        Ok(Item { text: text.to_owned(), spec, modifiers, group, claims_leadership: false })
    }

    /// How many bytes the next event has; commas between two slashes are the event's own.
    fn event_length(&self) -> Parsed<usize> {
        let rest = self.rest;
        let end =
            |from: usize| rest[from..].find([',', '{', '}']).map_or(rest.len(), |at| from + at);
        let has_own_slashes =
            ["mem:", "uprobe:", "uretprobe:"].iter().any(|it| rest.starts_with(it));
        match rest.find('/') {
            Some(opening) if opening < end(0) && !has_own_slashes => {
                let Some(closing) = rest[opening + 1..].find('/') else {
                    return Err(self.error(&rest[rest.len()..], "the closing '/' of a PMU's terms"));
                };
                Ok(end(opening + 1 + closing))
            }
            _ => Ok(end(0)),
        }
    }

    /// What `text` names, and the letters of its modifiers.
    fn spec(&self, text: &'a str) -> Parsed<(Spec<'a>, Option<&'a str>)> {
        if let Some(body) = text.strip_prefix("mem:") {
            return self.breakpoint(body);
        }
        if let Some(body) = text.strip_prefix("uprobe:") {
            return self.uprobe(body, false);
        }
        if let Some(body) = text.strip_prefix("uretprobe:") {
            return self.uprobe(body, true);
        }
        if let Some((pmu, body)) = text.split_once('/') {
            return self.sysfs(pmu, body);
        }
        let (word, behind) = split_at_colon(text);
        if let Some(generic) = generic::find(word) {
            return Ok((Spec::Generic(generic), behind));
        }
        if let Some(config) = self.raw(word)? {
            return Ok((Spec::Raw(config), behind));
        }
        match behind.map(split_at_colon) {
            // No tracepoint is called like a list of modifiers, so the event is misspelt.
            Some((name, letters)) if Modifiers::parse(name).is_err() => {
                let group = self.file_name(word, "a tracepoint's group")?;
                let name = self.file_name(name, "a tracepoint's name")?;
                Ok((Spec::Tracepoint { group, name }, letters))
            }
            _ => Err(self.error(word, EVENT).near(near::matches(word, generic::names()))),
        }
    }

    /// The number of a raw event, if `word` is one.
    fn raw(&self, word: &str) -> Parsed<Option<u64>> {
        let digits = word.strip_prefix('r').filter(|it| !it.is_empty());
        match digits.filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            None => Ok(None),
            Some(digits) => u64::from_str_radix(digits, 16)
                .map(Some)
                .map_err(|_| self.error(digits, "a number below 2^64")),
        }
    }

    /// What follows `mem:`.
    fn breakpoint(&self, body: &'a str) -> Parsed<(Spec<'a>, Option<&'a str>)> {
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
    fn uprobe(&self, body: &'a str, is_return: bool) -> Parsed<(Spec<'a>, Option<&'a str>)> {
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

    /// `pmu`, and what follows its slash.
    fn sysfs(&self, pmu: &'a str, body: &'a str) -> Parsed<(Spec<'a>, Option<&'a str>)> {
        let pmu = self.file_name(pmu, "a PMU's name")?;
        let (terms, letters) = body.split_once('/').unwrap_or((body, ""));
        let terms = terms.split(',').map(|term| self.term(term)).collect::<Parsed<_>>()?;
        let letters = match letters.strip_prefix(':') {
            None if letters.is_empty() => None,
            behind_colon => Some(behind_colon.unwrap_or(letters)),
        };
        Ok((Spec::Sysfs { pmu, terms }, letters))
    }

    fn term(&self, term: &'a str) -> Parsed<Term<'a>> {
        let (name, value) = match term.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (term, None),
        };
        let name = self.file_name(name.trim(), "a term")?;
        let value = match value {
            // Its value may be anything; the term is refused by its name.
            Some(_) if NOT_COUNTING.contains(&name) => None,
            value => value.map(|value| self.number(value.trim())).transpose()?,
        };
        Ok(Term { name, value })
    }

    /// A name under which something is looked up, so it must be no path.
    fn file_name(&self, name: &'a str, expected: &str) -> Parsed<&'a str> {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
        if name.is_empty() || name.starts_with('.') {
            return Err(self.error(name, expected));
        }
        match name.find(|char| !is_plain(char)) {
            Some(at) => {
                let expected = format!("{expected} of letters, digits, '_', '-' and '.'");
                Err(self.error_at_first(&name[at..], &expected))
            }
            None => Ok(name),
        }
    }

    fn number(&self, digits: &str) -> Parsed<u64> {
        let (significant, radix) = match digits.strip_prefix("0x") {
            Some(hex) => (hex, 16),
            None => (digits, 10),
        };
        let is_number =
            !significant.is_empty() && significant.chars().all(|digit| digit.is_digit(radix));
        if !is_number {
            return Err(self.error(digits, NUMBER));
        }
        let number = u64::from_str_radix(significant, radix);
        number.map_err(|_| self.error(digits, "a number below 2^64"))
    }

    fn modifiers(&self, letters: &str) -> Parsed<Modifiers> {
        Modifiers::parse(letters)
            .map_err(|at| self.error_at_first(&letters[at..], modifiers::EXPECTED))
    }
}

impl Item<'_> {
    /// Adds what the group asks for to the modifiers and to the text.
    fn add(&mut self, added: Modifiers) {
        let before = self.modifiers.letters();
        self.modifiers = self.modifiers.union(added);
        let mut new = self.modifiers.letters();
        for letter in before.chars() {
            new = new.replacen(letter, "", 1);
        }
        let needs_colon = before.is_empty() && !matches!(self.spec, Spec::Sysfs { .. });
        if needs_colon && !new.is_empty() {
            self.text.push(':');
        }
        self.text.push_str(&new);
    }
}

/// What is before and behind the first colon.
fn split_at_colon(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}
