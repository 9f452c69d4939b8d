//! Where in an ELF file a function is.
//!
//! The file may be damaged or hostile: nothing in it may panic, or take memory beyond the file's length
//! and [`TABLE_BYTES_MAX`] for each table. Only headers and symbol tables are read, each once.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::pod::{self, Pod};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use perfmon_core::Refusal;

use crate::read;
use crate::syntax::Place;

/// Longest table that is read, in bytes: about five million symbols.
const TABLE_BYTES_MAX: u64 = 128 << 20;
/// Most places of one symbol that a message names.
const NAMED_PLACES: usize = 4;
/// Most functions of one name that are looked at: the work is their number times that of the segments.
const SAME_NAME_MAX: usize = 1024;

const OFFSET_INSTEAD: &str = "give the offset in the file instead of the name";

/// The offset of `place` in the file `path`, checked to lie in code.
pub(crate) fn file_offset(path: &Path, place: &Place<'_>) -> Result<u64, Refusal> {
    let about = |why: String| Refusal::new(format!("'{}' {why}", path.display()));
    let metadata = path.metadata().map_err(|error| read::refusal("stat", path, &error))?;
    // Opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(about("is no file".to_owned()));
    }
    let file = File::open(path).map_err(|error| read::refusal("open", path, &error))?;
    let image = Image { file, length: metadata.len() };
    let found = match image.class() {
        Some(elf::ELFCLASS64) => image.find::<FileHeader64<Endianness>>(place),
        Some(elf::ELFCLASS32) => image.find::<FileHeader32<Endianness>>(place),
        _ => Err(Fault::new("is not an ELF file")),
    };
    found.map_err(|Fault { why, hint }| match hint {
        Some(hint) => about(why).hint(hint),
        None => about(why),
    })
}

/// What is wrong with the file, as a predicate of it.
struct Fault {
    why: String,
    hint: Option<String>,
}

impl Fault {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// A file that claims to be ELF.
struct Image {
    file: File,
    length: u64,
}

/// A part of the file that is mapped executable.
struct Code {
    address: u64,
    offset: u64,
    length: u64,
}

/// A function of the name that is looked for.
struct Function {
    address: u64,
    /// Its length in bytes; 0 if the file does not say.
    length: u64,
    /// The address is that of code which chooses the function when the program is linked.
    is_indirect: bool,
}

impl Image {
    fn class(&self) -> Option<u8> {
        let mut ident = [0; 5];
        self.file.read_exact_at(&mut ident, 0).ok()?;
        (ident[..4] == elf::ELFMAG).then_some(ident[4])
    }

    fn find<Elf: FileHeader<Endian = Endianness>>(&self, place: &Place<'_>) -> Result<u64, Fault> {
        let header = self.table::<Elf>(0, 1)?;
        let [header] = header.as_slice() else { return Err(Fault::new("has no header")) };
        let endian = match header.endian() {
            Ok(endian) if header.is_supported() => endian,
            _ => return Err(Fault::new("is an ELF file of an unknown kind")),
        };
        let code = self.code(header, endian)?;
        match *place {
            Place::FileOffset(offset) => {
                let is_code = |code: &Code| offset.wrapping_sub(code.offset) < code.length;
                if code.iter().any(is_code) {
                    return Ok(offset);
                }
                let why = format!("has no code at offset {offset:#x}: a probe there is never hit");
                Err(Fault::new(why).hint("give an offset in the file, not an address"))
            }
            Place::Symbol { name, offset } => {
                let functions = self.functions(header, endian, name)?;
                locate(name, offset, &functions, &code)
            }
        }
    }

    /// The parts of the file that programs map executable.
    fn code<Elf: FileHeader<Endian = Endianness>>(
        &self,
        header: &Elf,
        endian: Endianness,
    ) -> Result<Vec<Code>, Fault> {
        let count = header.e_phnum(endian);
        if count > 0 && usize::from(header.e_phentsize(endian)) != size_of::<Elf::ProgramHeader>() {
            return Err(Fault::new("has program headers of an unknown size"));
        }
        let segments =
            self.table::<Elf::ProgramHeader>(header.e_phoff(endian).into(), count.into())?;
        let is_code = |segment: &&Elf::ProgramHeader| {
            segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian) & elf::PF_X != 0
        };
        let code = segments.iter().filter(is_code).map(|segment| Code {
            address: segment.p_vaddr(endian).into(),
            offset: segment.p_offset(endian).into(),
            length: segment.p_filesz(endian).into(),
        });
        let code: Vec<Code> = code.collect();
        if code.is_empty() { Err(Fault::new("is no program or library")) } else { Ok(code) }
    }

    /// The functions called `name` in the symbol tables, `.symtab` and `.dynsym`.
    fn functions<Elf: FileHeader<Endian = Endianness>>(
        &self,
        header: &Elf,
        endian: Endianness,
        name: &str,
    ) -> Result<Vec<Function>, Fault> {
        let count = header.e_shnum(endian);
        if count > 0 && usize::from(header.e_shentsize(endian)) != size_of::<Elf::SectionHeader>() {
            return Err(Fault::new("has section headers of an unknown size"));
        }
        let sections =
            self.table::<Elf::SectionHeader>(header.e_shoff(endian).into(), count.into())?;
        let is_thumb = header.e_machine(endian) == elf::EM_ARM;
        let mut functions = Vec::new();
        let mut has_symbols = false;
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let table = sections.iter().find(|section| section.sh_type(endian) == kind);
            let strings =
                table.and_then(|table| sections.get(usize::try_from(table.sh_link(endian)).ok()?));
            let (Some(table), Some(strings)) = (table, strings) else { continue };
            has_symbols = true;
            let count = table.sh_size(endian).into() / size_of::<Elf::Sym>() as u64;
            let symbols = self.table::<Elf::Sym>(table.sh_offset(endian).into(), count)?;
            let strings =
                self.table::<u8>(strings.sh_offset(endian).into(), strings.sh_size(endian).into())?;
            let named = symbols.iter().filter(|symbol| {
                is_function(*symbol, endian) && is_string_at(&strings, symbol.st_name(endian), name)
            });
            functions.extend(named.take(SAME_NAME_MAX).map(|symbol| Function {
                // An odd address says "Thumb code"; the code itself is at the even one.
                address: symbol.st_value(endian).into() & !u64::from(is_thumb),
                length: symbol.st_size(endian).into(),
                is_indirect: symbol.st_type() == elf::STT_GNU_IFUNC,
            }));
        }
        match (functions.is_empty(), has_symbols) {
            (false, _) => Ok(functions),
            (true, true) => Err(Fault::new(format!("has no function '{name}'"))
                .hint("nm and nm -D show the names, as the linker sees them")),
            (true, false) => Err(Fault::new("has no symbol table").hint(OFFSET_INSTEAD)),
        }
    }

    /// `count` entries at `offset`.
    fn table<T: Pod>(&self, offset: u64, count: u64) -> Result<Vec<T>, Fault> {
        let truncated = || Fault::new("is damaged: a table lies beyond its end");
        let bytes = count.checked_mul(size_of::<T>() as u64).ok_or_else(truncated)?;
        if offset.checked_add(bytes).is_none_or(|end| end > self.length) {
            return Err(truncated());
        }
        if bytes > TABLE_BYTES_MAX {
            return Err(Fault::new(format!("has a table of more than {TABLE_BYTES_MAX} bytes")));
        }
        let (Ok(bytes), Ok(count)) = (usize::try_from(bytes), usize::try_from(count)) else {
            return Err(truncated());
        };
        // Words, because entries must be aligned and bytes need not be.
        let mut words = vec![0_u64; bytes.div_ceil(size_of::<u64>())];
        let buffer = &mut pod::bytes_of_slice_mut(&mut words)[..bytes];
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|error| Fault::new(format!("can't be read: {error}")))?;
        let (entries, _) = pod::slice_from_bytes(buffer, count).map_err(|()| truncated())?;
        Ok(entries.to_vec())
    }
}

fn is_function<S: Sym<Endian = Endianness>>(symbol: &S, endian: Endianness) -> bool {
    let is_code = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
    is_code && symbol.st_shndx(endian) != elf::SHN_UNDEF
}

/// Whether the string at `start`, up to its NUL, is `name`.
fn is_string_at(strings: &[u8], start: u32, name: &str) -> bool {
    let string = usize::try_from(start).ok().and_then(|start| strings.get(start..));
    let behind = string.and_then(|string| string.strip_prefix(name.as_bytes()));
    behind.is_some_and(|behind| behind.first() == Some(&0))
}

/// The one offset in the file of `offset` bytes behind the start of a function.
fn locate(name: &str, offset: u64, functions: &[Function], code: &[Code]) -> Result<u64, Fault> {
    if functions.len() >= SAME_NAME_MAX {
        return Err(Fault::new(format!("has too many functions '{name}'")).hint(OFFSET_INSTEAD));
    }
    if functions.iter().any(|function| function.is_indirect) {
        let why = format!("chooses among several functions for '{name}' when a program is linked");
        return Err(Fault::new(why).hint("name one of them; nm shows their names"));
    }
    let mut places = BTreeSet::new();
    for function in functions {
        if function.length != 0 && offset >= function.length {
            let why = format!("has only {} bytes of '{name}'", function.length);
            return Err(Fault::new(why).hint("give a smaller offset"));
        }
        let in_file = code.iter().find_map(|code| {
            let in_code = function.address.checked_sub(code.address)?.checked_add(offset)?;
            (in_code < code.length).then(|| code.offset.checked_add(in_code)).flatten()
        });
        places.insert(
            in_file.ok_or_else(|| {
                Fault::new(format!("has the symbol '{name}' outside of its code"))
            })?,
        );
    }
    let named: Vec<String> =
        places.iter().take(NAMED_PLACES).map(|place| format!("{place:#x}")).collect();
    match places.pop_first() {
        Some(place) if places.is_empty() => Ok(place),
        _ => {
            let more = if places.len() >= NAMED_PLACES { ", …" } else { "" };
            let why = format!("has several functions '{name}', at {}{more}", named.join(", "));
            Err(Fault::new(why).hint(OFFSET_INSTEAD))
        }
    }
}
