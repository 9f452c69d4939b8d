//! What must hold of an object's file before the parser sees it.
//!
//! The parser (aya-obj 0.3) gives up on a whole object for one section that it does not know, calls the wrong function
//! where subprograms lie in two sections, allocates whatever a section claims, and trusts offsets: what it can't bear is
//! refused or hidden from it here.

use std::collections::HashMap;

use crate::btf::Btf;
use crate::reader::Bytes;
use crate::{code, records};

const EXECUTABLE: u64 = 4;
const SYMBOL_TABLE: u32 = 2;
const RELOCATIONS_WITH_ADDEND: u32 = 4;
const NO_BITS: u32 = 8;
const RELOCATIONS: u32 = 9;
const HEADER_BYTES: usize = 64;
pub(crate) const SYMBOL_BYTES: usize = 24;
pub(crate) const RELOCATION_BYTES: usize = 16;
const FILE_BYTES_MAX: usize = 16 << 20;
/// Of all sections together: each is copied, and several may claim the same bytes of the file.
const SECTION_BYTES_MAX: usize = 64 << 20;
const SECTIONS_MAX: usize = 4096;
/// `SHN_LORESERVE`: numbers from here on are no sections.
const RESERVED: usize = 0xff00;
/// `SHN_XINDEX`: the section's number is in another table, which nobody needs.
const ELSEWHERE: usize = 0xffff;
const RELOCATABLE: usize = 1;
const MACHINE_BPF: usize = 247;

pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    name_at: usize,
    kind: u32,
    flags: u64,
    address: u64,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    pub(crate) link: usize,
    pub(crate) info: usize,
    entry_bytes: usize,
}

impl Section<'_> {
    /// Whether the parser takes it for subprograms, which it does by the name alone.
    pub(crate) fn is_text(&self) -> bool {
        self.name.starts_with(".text") && self.bytes > 0
    }

    /// Whether the parser takes it for programs or subprograms.
    pub(crate) fn is_code(&self) -> bool {
        self.is_text() || self.flags & EXECUTABLE != 0 && self.bytes > 0
    }

    pub(crate) fn is_symbols(&self) -> bool {
        self.kind == SYMBOL_TABLE
    }

    pub(crate) fn is_relocations(&self) -> bool {
        self.kind == RELOCATIONS
    }

    /// Whether it has definitions of maps.
    pub(crate) fn is_maps(&self) -> bool {
        self.name.starts_with(".maps")
    }
}

/// An object's file that is safe to parse.
pub(crate) struct Checked {
    /// The file, with names of sections that the parser takes.
    pub(crate) bytes: Vec<u8>,
    /// The true names of sections, by index.
    pub(crate) names: HashMap<usize, String>,
    /// Its type information.
    pub(crate) btf: Option<Btf>,
    /// The symbols that code takes for maps, by number.
    pub(crate) map_symbols: Vec<usize>,
}

pub(crate) fn check(bytes: &[u8]) -> Result<Checked, String> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(format!("{} bytes are more than {FILE_BYTES_MAX}", bytes.len()));
    }
    let all = sections(bytes)?;
    check_names(&all)?;
    for section in &all {
        check_section(bytes, section)?;
        check_symbols(bytes, section, &all)?;
        check_relocations(bytes, section, &all)?;
    }
    check_text(&all)?;
    let map_symbols = code::check(bytes, &all)?;
    let find = |name| {
        let section = all.iter().find(|section| section.name == name);
        section.and_then(|section| Bytes(bytes).part(section.offset, section.bytes))
    };
    let btf = find(".BTF").map(|btf| Btf::parse(btf.0).and_then(Btf::checked)).transpose();
    let btf = btf.map_err(|why| format!("its type information is damaged: {why}"))?;
    if let Some(extra) = find(".BTF.ext") {
        records::check(extra, btf.as_ref())
            .ok_or("its type information for functions and lines is damaged")?;
    }
    let renamed = rename(bytes, &all)?;
    let names = all.iter().map(|section| section.name.to_owned()).enumerate().collect();
    Ok(Checked { bytes: renamed, names, btf, map_symbols })
}

fn sections(bytes: &[u8]) -> Result<Vec<Section<'_>>, String> {
    let all = Bytes(bytes);
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01".as_slice()) {
        return Err("it is no 64-bit little-endian ELF file".into());
    }
    if all.u16(0x10) != Some(RELOCATABLE) || all.u16(0x12) != Some(MACHINE_BPF) {
        return Err("it is no object file for eBPF (its machine or its kind is another)".into());
    }
    let headers = || {
        let (table, entry_bytes) = (all.length(0x28)?, all.u16(0x3a)?);
        let (count, names) = (all.u16(0x3c)?, all.u16(0x3e)?);
        if entry_bytes != HEADER_BYTES || count > SECTIONS_MAX || names >= count {
            return None;
        }
        let header = |number: usize| table.checked_add(number * HEADER_BYTES);
        let names = header(names)?;
        let names_at = all.length(names.checked_add(0x18)?)?;
        let text = all.part(names_at, all.length(names.checked_add(0x20)?)?)?;
        let section = |number| {
            let at = header(number)?;
            let header = all.part(at, HEADER_BYTES)?;
            let name = header.count(0)?;
            Some(Section {
                name: text.text(name)?,
                name_at: names_at + name,
                kind: header.u32(4)?,
                flags: header.u64(8)?,
                address: header.u64(0x10)?,
                offset: header.length(0x18)?,
                bytes: header.length(0x20)?,
                link: header.count(0x28)?,
                info: header.count(0x2c)?,
                entry_bytes: header.length(0x38)?,
            })
        };
        (0..count).map(section).collect::<Option<Vec<_>>>()
    };
    headers().ok_or_else(|| "its section headers are damaged".into())
}

/// What the parser finds by name, or gives up on.
fn check_names(all: &[Section<'_>]) -> Result<(), String> {
    for name in [".BTF", ".BTF.ext", "license", "version"] {
        if all.iter().filter(|section| section.name == name).count() > 1 {
            return Err(format!("it has more than one section {name}"));
        }
    }
    if let Some(old) = all.iter().find(|section| section.name.starts_with("maps")) {
        return Err(format!("section {}: maps are declared in .maps, with their types", old.name));
    }
    let bytes = all.iter().try_fold(0, |sum: usize, section| sum.checked_add(section.bytes));
    if bytes.is_none_or(|bytes| bytes > SECTION_BYTES_MAX) {
        return Err(format!("its sections claim more than {SECTION_BYTES_MAX} bytes"));
    }
    Ok(())
}

fn check_section(bytes: &[u8], section: &Section<'_>) -> Result<(), String> {
    let Section { name, bytes: length, .. } = section;
    if section.kind != NO_BITS && Bytes(bytes).part(section.offset, *length).is_none() {
        return Err(format!("section {name} is cut off"));
    }
    if section.kind == NO_BITS && (section.is_code() || !name.starts_with(".bss")) && *length > 0 {
        return Err(format!("section {name} is empty"));
    }
    if section.address != 0 {
        return Err(format!("section {name} has an address, as in a file that was linked"));
    }
    Ok(())
}

fn check_symbols(bytes: &[u8], section: &Section<'_>, all: &[Section<'_>]) -> Result<(), String> {
    if section.kind != SYMBOL_TABLE {
        return Ok(());
    }
    let file = Bytes(bytes);
    let symbols = || {
        let names = all.get(section.link).filter(|names| names.kind != NO_BITS)?;
        let names = file.part(names.offset, names.bytes)?;
        let whole = section.bytes.is_multiple_of(SYMBOL_BYTES);
        if section.entry_bytes != SYMBOL_BYTES || !whole {
            return None;
        }
        for number in 0..section.bytes / SYMBOL_BYTES {
            let symbol = file.part(section.offset + number * SYMBOL_BYTES, SYMBOL_BYTES)?;
            names.text(symbol.count(0)?)?;
            let place = symbol.u16(6)?;
            let end = symbol.length(8)?.checked_add(symbol.length(16)?)?;
            let inside = match place {
                0 => true,
                ELSEWHERE => false,
                RESERVED.. => true,
                place => end <= all.get(place)?.bytes,
            };
            if !inside {
                return None;
            }
        }
        Some(())
    };
    symbols().ok_or_else(|| format!("its symbols ({}) are damaged", section.name))
}

fn check_relocations(
    bytes: &[u8],
    section: &Section<'_>,
    all: &[Section<'_>],
) -> Result<(), String> {
    if section.kind == RELOCATIONS_WITH_ADDEND {
        return Err(format!("section {} has relocations of another machine", section.name));
    }
    if section.kind != RELOCATIONS {
        return Ok(());
    }
    let file = Bytes(bytes);
    let relocations = || {
        let symbols = all.get(section.link).filter(|symbols| symbols.kind == SYMBOL_TABLE)?;
        let target = all.get(section.info)?;
        let whole = section.bytes.is_multiple_of(RELOCATION_BYTES);
        if section.entry_bytes != RELOCATION_BYTES || !whole {
            return None;
        }
        for number in 0..section.bytes / RELOCATION_BYTES {
            let at = section.offset + number * RELOCATION_BYTES;
            let relocation = file.part(at, RELOCATION_BYTES)?;
            let offset = relocation.length(0)?;
            let symbol = relocation.count(12)?;
            let fits = offset.checked_add(4)? <= target.bytes;
            if !fits || symbol >= symbols.bytes / SYMBOL_BYTES {
                return None;
            }
        }
        Some(())
    };
    relocations().ok_or_else(|| format!("its relocations ({}) are damaged", section.name))
}

/// The parser knows a called function by its address alone, not by its section too.
fn check_text(all: &[Section<'_>]) -> Result<(), String> {
    let text = all.iter().filter(|section| section.is_text());
    let text: Vec<&str> = text.map(|section| section.name).collect();
    if text.len() > 1 {
        let sections = text.join(", ");
        return Err(format!(
            "subprograms in more than one section ({sections}): put them into .text"
        ));
    }
    Ok(())
}

/// Writes a known prefix over the names of sections of code that the parser does not know, in the names of sections
/// and in the type information, which refers to them by name.
fn rename(bytes: &[u8], all: &[Section<'_>]) -> Result<Vec<u8>, String> {
    const KNOWN: &[u8] = b"tp/";
    let mut out = bytes.to_vec();
    for section in all.iter().filter(|section| section.flags & EXECUTABLE != 0) {
        let name = section.name;
        if section.bytes == 0
            || name.starts_with(".text")
            || name.parse::<aya_obj::ProgramSection>().is_ok()
            || name.len() < KNOWN.len()
        {
            continue;
        }
        let damaged = || format!("the name of section {name} is damaged");
        let end = section.name_at + KNOWN.len();
        out.get_mut(section.name_at..end).ok_or_else(damaged)?.copy_from_slice(KNOWN);
        let Some(btf) = all.iter().find(|section| section.name == ".BTF") else { continue };
        let wanted = [&[0], name.as_bytes(), &[0]].concat();
        let strings = out.get_mut(btf.offset..btf.offset + btf.bytes).ok_or_else(damaged)?;
        let at = strings.windows(wanted.len()).position(|window| window == wanted);
        if let Some(text) = at.and_then(|at| strings.get_mut(at + 1..at + 1 + KNOWN.len())) {
            text.copy_from_slice(KNOWN);
        }
    }
    Ok(out)
}
