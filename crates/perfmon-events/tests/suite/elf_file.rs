//! ELF files made for the tests, so that each offset in them is known.

use std::path::PathBuf;

/// A symbol: name, `st_info`, section (0 is undefined), address, length.
pub(crate) type Symbol<'a> = (&'a str, u8, u16, u64, u64);

/// `st_info` of a global function.
pub(crate) const FUNCTION: u8 = 0x12;
/// `st_info` of a global function that is chosen at link time.
pub(crate) const INDIRECT: u8 = 0x1a;
/// `st_info` of a global variable.
pub(crate) const OBJECT: u8 = 0x11;

/// Where the code is in the file, where it is mapped, and how long it is.
pub(crate) const CODE_OFFSET: u64 = 0x400;
pub(crate) const CODE_ADDRESS: u64 = 0x40_1000;
pub(crate) const CODE_LENGTH: u64 = 0x100;

/// The kinds of ELF file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) is_64: bool,
    pub(crate) is_big_endian: bool,
}

pub(crate) const USUAL: Kind = Kind { is_64: true, is_big_endian: false };

/// A program of one executable segment, with its symbols in `.symtab`.
pub(crate) fn build(kind: Kind, symbols: &[Symbol<'_>]) -> Vec<u8> {
    let (header, program_header, section_header) =
        if kind.is_64 { (64, 56, 64) } else { (52, 32, 40) };
    let mut strings = vec![0];
    let mut table = Bytes::new(kind);
    for symbol in [("", 0, 0, 0, 0)].iter().chain(symbols) {
        table.symbol(symbol, strings.len());
        strings.extend(symbol.0.bytes().chain([0]));
    }
    let symbols_at = CODE_OFFSET + CODE_LENGTH;
    let strings_at = symbols_at + table.bytes.len() as u64;
    let sections_at = (strings_at + strings.len() as u64).next_multiple_of(8);

    let mut file = Bytes::new(kind);
    file.bytes.extend(b"\x7fELF");
    file.bytes.extend([1 + u8::from(kind.is_64), 1 + u8::from(kind.is_big_endian), 1]);
    file.bytes.resize(16, 0);
    file.halves(&[2, 62]);
    file.number(1, 4);
    file.words(&[CODE_ADDRESS, header, sections_at]);
    file.number(0, 4);
    file.halves(&[header, program_header, 1, section_header, 3, 0]);
    file.segment();
    file.bytes.resize(to_usize(symbols_at), 0x90);
    file.bytes.extend(&table.bytes);
    file.bytes.extend(&strings);
    file.bytes.resize(to_usize(sections_at), 0);
    file.section(0, 0, 0, 0);
    file.section(2, symbols_at, table.bytes.len() as u64, 2);
    file.section(3, strings_at, strings.len() as u64, 0);
    file.bytes
}

fn to_usize(offset: u64) -> usize {
    usize::try_from(offset).expect("the files are small")
}

/// Bytes in the making.
struct Bytes {
    kind: Kind,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new(kind: Kind) -> Self {
        Self { kind, bytes: Vec::new() }
    }

    fn number(&mut self, value: u64, length: usize) {
        let bytes = value.to_le_bytes();
        let bytes = &bytes[..length];
        if self.kind.is_big_endian {
            self.bytes.extend(bytes.iter().rev());
        } else {
            self.bytes.extend(bytes);
        }
    }

    fn halves(&mut self, values: &[u64]) {
        values.iter().for_each(|&value| self.number(value, 2));
    }

    fn words(&mut self, values: &[u64]) {
        let length = if self.kind.is_64 { 8 } else { 4 };
        values.iter().for_each(|&value| self.number(value, length));
    }

    /// The program header: PT_LOAD, readable and executable.
    fn segment(&mut self) {
        self.number(1, 4);
        if self.kind.is_64 {
            self.number(5, 4);
        }
        self.words(&[CODE_OFFSET, CODE_ADDRESS, CODE_ADDRESS, CODE_LENGTH, CODE_LENGTH]);
        if !self.kind.is_64 {
            self.number(5, 4);
        }
        self.words(&[0x400]);
    }

    fn section(&mut self, section_type: u64, offset: u64, size: u64, link: u64) {
        self.number(0, 4);
        self.number(section_type, 4);
        self.words(&[0, 0, offset, size]);
        self.number(link, 4);
        self.number(0, 4);
        self.words(&[8, 0]);
    }

    fn symbol(&mut self, &(_, info, section, address, length): &Symbol<'_>, name: usize) {
        self.number(name as u64, 4);
        let kind = [info, 0];
        if self.kind.is_64 {
            self.bytes.extend(kind);
            self.number(section.into(), 2);
            self.words(&[address, length]);
        } else {
            self.words(&[address, length]);
            self.bytes.extend(kind);
            self.number(section.into(), 2);
        }
    }
}

/// A file that is gone when the test is over.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str, bytes: &[u8]) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).expect("the directory for tests is writable");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("the directory for tests has a UTF-8 name")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
