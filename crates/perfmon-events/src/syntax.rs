//! The grammar (see the crate's documentation): a list of events as text, taken apart. Only plain words are
//! looked up on the way, since what stands behind them depends on what they are. No text may panic, or take
//! memory out of proportion to its length.

mod forms;

use perfmon_core::{Group, Refusal};

use crate::described::BadPart;
use crate::error::ParseError;
use crate::hit::{End, Hits, Word};
use crate::modifiers::{self, Modifiers};
use crate::resolve::Lookup;
use crate::{generic, near, registry, tracepoint};

/// Longest list, in bytes.
const LIST_BYTES_MAX: usize = 64 * 1024;

const EVENT: &str = "an event";
const NUMBER: &str = "a number (decimal, or hexadecimal after 0x)";

/// An event as typed.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub(crate) typed: &'a str,
    pub(crate) spec: Spec<'a>,
    pub(crate) modifiers: Modifiers,
    /// The letters among them that its group adds.
    pub(crate) added: String,
    /// The text ends in letters, or could: what is not so is a word of a description with its own modifiers.
    pub(crate) ends_in_letters: bool,
    pub(crate) group: Group,
    /// It is not the first of its group, and asks by itself for what only the first may ask.
    pub(crate) claims_leadership: bool,
}

/// What an event names.
#[derive(Debug)]
pub(crate) enum Spec<'a> {
    /// A plain word that is looked up already.
    Word(Hits),
    Raw(u64),
    /// `TYPE:CONFIG`.
    Numeric {
        pmu_type: u32,
        config: u64,
    },
    Breakpoint {
        address: u64,
        length: u64,
        access: u32,
    },
    Sysfs {
        pmu: &'a str,
        terms: Vec<Term<'a>>,
    },
    Tracepoint {
        group: &'a str,
        name: &'a str,
    },
    Uprobe {
        path: &'a str,
        place: Place<'a>,
        is_return: bool,
    },
    /// A probe of a function of the kernel.
    Kprobe {
        function: &'a str,
        /// Behind the function's begin, in bytes.
        offset: u64,
        /// The return from it.
        is_return: bool,
    },
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

pub(crate) use forms::ACCESS_EXECUTE;
use forms::{closing_slash, split_unquoted};

type Parsed<T> = Result<T, ParseError>;

/// Takes `list` apart.
pub(crate) fn items<'a>(list: &'a str, lookup: &Lookup<'_>) -> Parsed<Vec<Item<'a>>> {
    let mut parser = Parser::new(list, lookup)?;
    let mut items = Vec::new();
    let mut groups = 0;
    loop {
        parser.take_group_name();
        if parser.take('{') {
            parser.group(Group::Together(groups), &mut items)?;
            // A list has room for fewer groups than a u16 counts: each takes at least 4 bytes.
            groups += 1;
        } else {
            items.push(parser.event(Group::Free)?);
        }
        lookup.begin(items.len());
        if parser.rest.is_empty() {
            return Ok(items);
        }
        parser.require(',', "',' or the end of the list")?;
    }
}

/// Takes the first event of `list` apart.
pub(crate) fn first<'a>(list: &'a str, lookup: &Lookup<'_>) -> Parsed<(Spec<'a>, Modifiers)> {
    let mut parser = Parser::new(list, lookup)?;
    let item = parser.event(Group::Free)?;
    Ok((item.spec, item.modifiers))
}

/// A list, and what of it is left to read, which starts with no white space.
struct Parser<'a, 'l> {
    list: &'a str,
    rest: &'a str,
    lookup: &'l Lookup<'l>,
}

impl<'a, 'l> Parser<'a, 'l> {
    fn new(list: &'a str, lookup: &'l Lookup<'l>) -> Parsed<Self> {
        if list.len() > LIST_BYTES_MAX {
            let expected = format!("at most {LIST_BYTES_MAX} bytes");
            return Err(ParseError::new(list, 0, &expected, &format!("{} bytes", list.len())));
        }
        Ok(Self { list, rest: list.trim_start(), lookup })
    }

    /// perf lets a group have a name in front of its brace; it is for display only.
    fn take_group_name(&mut self) {
        if let Some(at) = self.rest.find(['{', ',', '}'])
            && at > 0
            && self.rest[at..].starts_with('{')
            && self.rest[..at].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            // An event in front of a brace lacks its comma.
            && self.lookup.kernel_word(&self.rest[..at], None).is_none()
        {
            self.rest = &self.rest[at..];
        }
    }

    fn bad(&self, bad: BadPart<'a>) -> ParseError {
        self.error(bad.part, &bad.expected).near(bad.near)
    }

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
            self.lookup.begin(items.len());
            if self.take('}') {
                break;
            }
            self.require(',', "',' or '}'")?;
        }
        if self.take(':') {
            let letters = self.advance(self.rest.find([',', '{', '}']).unwrap_or(self.rest.len()));
            let mut added = self.modifiers(letters)?;
            for item in &mut items[first..] {
                if !item.add(added) {
                    return Err(self.error(letters, "at most three 'p', with those of each member"));
                }
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
        let (spec, end) = self.spec(text)?;
        let (modifiers, ends_in_letters) = match end {
            End::Letters(letters) => (letters.map(|it| self.modifiers(it)).transpose()?, true),
            End::Read(modifiers) => (Some(modifiers), false),
        };
        Ok(Item {
            typed: text,
            spec,
            modifiers: modifiers.unwrap_or_default(),
            added: String::new(),
            ends_in_letters,
            group,
            claims_leadership: false,
        })
    }

    /// How many bytes the next event has; commas between two slashes are the event's own.
    fn event_length(&self) -> Parsed<usize> {
        let rest = self.rest;
        let bytes = rest.as_bytes();
        let is_end = |byte: &u8| matches!(byte, b',' | b'{' | b'}');
        let end =
            |from: usize| bytes[from..].iter().position(is_end).map_or(bytes.len(), |at| from + at);
        let Some(mark) = bytes.iter().position(|byte| is_end(byte) || *byte == b'/') else {
            return Ok(bytes.len());
        };
        if bytes[mark] != b'/' {
            return Ok(mark);
        }
        if ["mem:", "uprobe:", "uretprobe:"].iter().any(|it| rest.starts_with(it)) {
            return Ok(end(mark));
        }
        let Some(closing) = closing_slash(&rest[mark + 1..]) else {
            return Err(self.error(&rest[rest.len()..], "the closing '/' of a PMU's terms"));
        };
        Ok(end(mark + 1 + closing))
    }

    /// What `text` names, and what stands behind it.
    fn spec(&self, text: &'a str) -> Parsed<(Spec<'a>, End<'a>)> {
        let form = if let Some(body) = text.strip_prefix("mem:") {
            self.breakpoint(body)
        } else if let Some(body) = text.strip_prefix("uprobe:") {
            self.uprobe(body, false)
        } else if let Some(body) = text.strip_prefix("uretprobe:") {
            self.uprobe(body, true)
        } else if let Some(body) = text.strip_prefix("kprobe:") {
            self.kprobe(body, false)
        } else if let Some(body) = text.strip_prefix("kretprobe:") {
            self.kprobe(body, true)
        } else if let Some(slash) = text.bytes().position(|byte| byte == b'/') {
            self.with_terms(&text[..slash], &text[slash + 1..])
        } else {
            return self.word(text);
        };
        form.map(|(spec, letters)| (spec, End::Letters(letters)))
    }

    /// A name without terms.
    fn word(&self, text: &'a str) -> Parsed<(Spec<'a>, End<'a>)> {
        let (word, behind) = split_at_colon(text);
        if let Some(config) = self.raw(word)? {
            return Ok((Spec::Raw(config), End::Letters(behind)));
        }
        if let Some((spec, letters)) = self.numeric(word, behind)? {
            return Ok((spec, End::Letters(letters)));
        }
        let found = |Word { hits, end }: Word<'a>| (Spec::Word(hits), end);
        let unknown = match self.lookup.word(text) {
            Ok(Some(word)) => return Ok(found(word)),
            Err(bad) if !bad.is_unknown => return Err(self.bad(bad)),
            not_found => not_found.err(),
        };
        let is_qualified = behind.is_some_and(|behind| behind.starts_with(':'));
        let tracepoint = match behind.map(split_at_colon) {
            // No tracepoint is called like a list of modifiers, so the event is misspelt.
            Some((name, letters)) if !is_qualified && Modifiers::parse(name).is_err() => {
                Some((name, letters))
            }
            _ => None,
        };
        if let Some((name, _)) = tracepoint
            && tracepoint::exists(self.lookup.names.tracefs(), word, name)
        {
            let (name, letters) = tracepoint.unwrap_or_default();
            return Ok((Spec::Tracepoint { group: word, name }, End::Letters(letters)));
        }
        // A path is no name, and an empty one is nobody's.
        let is_name = !word.is_empty() && !word.contains(char::is_whitespace);
        if is_name && let Some(word) = self.lookup.libpfm(text) {
            return Ok(found(word));
        }
        // What a description has with other unit masks may stand with its dots in a vendor's file.
        let is_whole = behind.is_none_or(|behind| Modifiers::parse(behind).is_ok());
        if is_name
            && (unknown.is_none() || is_whole)
            && let Some(word) = self.lookup.vendor(word, behind)
        {
            return Ok(found(word));
        }
        if let Some(unknown) = unknown {
            return Err(self.bad(unknown));
        }
        match tracepoint {
            Some((name, letters)) => {
                let group = self.file_name(word, "a tracepoint's group")?;
                let near = near::matches(word, self.lookup.names.described_names());
                if !near.is_empty() {
                    return Err(self.error(word, EVENT).near(near));
                }
                let name = self.file_name(name, "a tracepoint's name")?;
                Ok((Spec::Tracepoint { group, name }, End::Letters(letters)))
            }
            None => {
                let near = near::matches(word, self.lookup.names.plain_names());
                Err(self.error(word, EVENT).near(near))
            }
        }
    }

    /// `NAME/terms/`: an event of a PMU of sysfs, or one of the kernel's events with terms.
    fn with_terms(&self, name: &'a str, body: &'a str) -> Parsed<(Spec<'a>, Option<&'a str>)> {
        let is_numeric = name.split_once(':').is_some_and(|(pmu_type, config)| {
            [pmu_type, config].iter().all(|it| it.starts_with(|c: char| c.is_ascii_digit()))
        });
        let is_kernels =
            generic::find(name).is_some() || registry::software().event(name).is_some();
        let raw = self.raw(name)?;
        if !is_numeric && !is_kernels && raw.is_none() {
            return self.sysfs(name, body);
        }
        let (terms, letters) = self.terms(body)?;
        if !terms.is_empty() {
            let refusal = crate::sysfs::refuse_not_counting(&terms).err().unwrap_or_else(|| {
                Refusal::new(format!("'{name}' is a whole event and takes no terms"))
                    .hint("leave them out, or write PMU/term=value,…/")
            });
            return Ok((Spec::Word(Hits::one(Err(refusal))), letters));
        }
        let spec = match (raw, name.split_once(':')) {
            (Some(config), _) => Spec::Raw(config),
            (None, Some((word, config))) => self
                .numeric(word, Some(config))?
                .map_or_else(|| Spec::Word(Hits::default()), |(spec, _)| spec),
            (None, None) => match self.lookup.kernel_word(name, None) {
                Some(word) => Spec::Word(word.hits),
                None => return self.sysfs(name, body),
            },
        };
        Ok((spec, letters))
    }

    /// `pmu`, and what follows its slash.
    fn sysfs(&self, pmu: &'a str, body: &'a str) -> Parsed<(Spec<'a>, Option<&'a str>)> {
        // `*` stands for any text; what is between the stars are parts of a name.
        let parts = pmu.split('*').filter(|part| !part.is_empty() || !pmu.contains('*'));
        for part in parts {
            self.file_name(part, "a PMU's name")?;
        }
        let (terms, letters) = self.terms(body)?;
        if terms.is_empty() {
            return Err(self.error(&body[..0], "a term"));
        }
        Ok((Spec::Sysfs { pmu, terms }, letters))
    }

    /// The terms before the closing slash, none if there is nothing, and the letters behind it.
    fn terms(&self, body: &'a str) -> Parsed<(Vec<Term<'a>>, Option<&'a str>)> {
        let end = closing_slash(body).unwrap_or(body.len());
        let (terms, letters) = (&body[..end], body.get(end + 1..).unwrap_or(""));
        let terms = match terms.trim() {
            "" => Vec::new(),
            _ => split_unquoted(terms).map(|term| self.term(term)).collect::<Parsed<_>>()?,
        };
        let letters = match letters.strip_prefix(':') {
            None if letters.is_empty() => None,
            behind_colon => Some(behind_colon.unwrap_or(letters)),
        };
        Ok((terms, letters))
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
    /// Adds what the group asks for to the modifiers and to the text; `false` if it is too much.
    fn add(&mut self, added: Modifiers) -> bool {
        let before = self.modifiers.letters();
        let Some(both) = self.modifiers.in_group(added) else { return false };
        self.modifiers = both;
        let mut new = self.modifiers.letters();
        for letter in before.chars() {
            new = new.replacen(letter, "", 1);
        }
        self.added = new;
        true
    }
}

/// What is before and behind the first colon.
pub(crate) fn split_at_colon(text: &str) -> (&str, Option<&str>) {
    match text.bytes().position(|byte| byte == b':') {
        Some(colon) => (&text[..colon], Some(&text[colon + 1..])),
        None => (text, None),
    }
}
