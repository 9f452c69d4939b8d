//! What must hold of code and what refers into it.
//!
//! The parser copies each function's code and links what it calls behind it, without a look at where it writes.

use std::collections::HashSet;

use crate::check::{RELOCATION_BYTES, SYMBOL_BYTES, Section};
use crate::reader::Bytes;

const INSTRUCTION_BYTES: usize = 8;
/// A load of 8 bytes, which is two instructions long.
const WIDE_LOAD: u8 = 0x18;
const CALL: u8 = 0x85;
const PSEUDO_CALL: u8 = 1;
/// `BPF_PSEUDO_FUNC`: a wide load of a function. The marks of maps are the loader's to set.
const PSEUDO_FUNCTION: u8 = 4;
/// No distance or offset in code is larger.
const DISTANCE_MAX: i32 = 1 << 24;
const PROGRAMS_MAX: usize = 1024;
/// The kernel's `BPF_MAX_SUBPROGS`. Calls are followed by recursion.
const SUBPROGRAMS_MAX: usize = 256;
/// Of all programs, each with all subprograms behind it.
const LINKED_BYTES_MAX: usize = 64 << 20;
const SYMBOL_FUNCTION: u8 = 2;
const SYMBOL_SECTION: u8 = 3;

struct Symbol {
    kind: u8,
    section: usize,
    at: usize,
    bytes: usize,
}

/// Whether code can be copied, linked and relocated. Says which symbols it takes for maps.
pub(crate) fn check(bytes: &[u8], all: &[Section<'_>]) -> Result<Vec<usize>, String> {
    let mut symbols = Vec::new();
    for section in all.iter().filter(|section| section.is_symbols()) {
        symbols.extend(read_symbols(bytes, section).ok_or("its symbols are damaged")?);
    }
    for (number, section) in all.iter().enumerate().filter(|(_, section)| section.is_code()) {
        let code = Bytes(bytes).part(section.offset, section.bytes).map_or(&[][..], |it| it.0);
        check_instructions(code)
            .ok_or_else(|| format!("the code of section {} is damaged", section.name))?;
        check_functions(code, number, &symbols)
            .ok_or_else(|| format!("the functions of section {} are damaged", section.name))?;
    }
    check_amount(all, &symbols)?;
    let mut found = Found::default();
    for section in all.iter().filter(|section| section.is_relocations()) {
        check_relocations(bytes, section, all, &mut found).ok_or_else(|| {
            format!("its relocations ({}) of code are damaged or not handled", section.name)
        })?;
    }
    check_calls(bytes, all, &found.calls)?;
    Ok(found.map_symbols)
}

/// What relocations say.
#[derive(Default)]
struct Found {
    map_symbols: Vec<usize>,
    /// The sections and places of calls of subprograms.
    calls: HashSet<(usize, usize)>,
}

/// A program calls subprograms only: the parser would link another program with what it has been linked to already.
fn check_calls(
    bytes: &[u8],
    all: &[Section<'_>],
    known: &HashSet<(usize, usize)>,
) -> Result<(), String> {
    let programs = all.iter().enumerate().filter(|(_, it)| it.is_code() && !it.is_text());
    for (number, section) in programs {
        let code = Bytes(bytes).part(section.offset, section.bytes).map_or(&[][..], |it| it.0);
        let (instructions, _) = code.as_chunks::<INSTRUCTION_BYTES>();
        let places = (0..).step_by(INSTRUCTION_BYTES).zip(instructions);
        let mut calls = places.filter(|(_, instruction)| is_call(*instruction));
        if calls.any(|(at, _)| !known.contains(&(number, at))) {
            return Err(format!(
                "a program of section {} calls what is no subprogram: put that into .text",
                section.name
            ));
        }
    }
    Ok(())
}

fn read_symbols(bytes: &[u8], section: &Section<'_>) -> Option<Vec<Symbol>> {
    let table = Bytes(bytes).part(section.offset, section.bytes)?;
    (0..section.bytes / SYMBOL_BYTES).map(|number| symbol(table, number)).collect()
}

fn symbol(table: Bytes<'_>, number: usize) -> Option<Symbol> {
    let symbol = table.part(number.checked_mul(SYMBOL_BYTES)?, SYMBOL_BYTES)?;
    Some(Symbol {
        kind: symbol.0.get(4)? & 0xf,
        section: symbol.u16(6)?,
        at: symbol.length(8)?,
        bytes: symbol.length(16)?,
    })
}

/// Instructions are whole, wide loads have both halves, and calls go to a place that can be computed.
fn check_instructions(code: &[u8]) -> Option<()> {
    let (instructions, rest) = code.as_chunks::<INSTRUCTION_BYTES>();
    if !rest.is_empty() {
        return None;
    }
    let mut instructions = instructions.iter();
    while let Some(instruction) = instructions.next() {
        let immediate = Bytes(instruction).u32(4)?.cast_signed();
        if instruction[0] == WIDE_LOAD {
            let source = instruction[1] >> 4;
            if instructions.next()?[0] != 0 || (source != 0 && source != PSEUDO_FUNCTION) {
                return None;
            }
        }
        if is_call(instruction) && !(-DISTANCE_MAX..DISTANCE_MAX).contains(&immediate) {
            return None;
        }
    }
    Some(())
}

fn is_call(instruction: &[u8]) -> bool {
    matches!(instruction, [CALL, registers, ..] if registers >> 4 == PSEUDO_CALL)
}

/// The functions of a section are whole instructions, don't overlap, and cut no wide load in two.
fn check_functions(code: &[u8], section: usize, symbols: &[Symbol]) -> Option<()> {
    let functions = symbols.iter().filter(|it| it.section == section && it.kind == SYMBOL_FUNCTION);
    let mut functions: Vec<(usize, usize)> =
        functions.map(|it| (it.at, it.at.saturating_add(it.bytes))).collect();
    functions.sort_unstable();
    let mut before = 0;
    for (begin, end) in functions {
        let whole =
            begin.is_multiple_of(INSTRUCTION_BYTES) && end.is_multiple_of(INSTRUCTION_BYTES);
        let starts_wide = |at: usize| {
            let half = at.checked_sub(INSTRUCTION_BYTES).and_then(|at| code.get(at));
            half.is_some_and(|&half| half == WIDE_LOAD)
        };
        if begin < before || end > code.len() || !whole || starts_wide(begin) || starts_wide(end) {
            return None;
        }
        before = end;
    }
    Some(())
}

/// How much code there will be once each program has its subprograms behind it.
fn check_amount(all: &[Section<'_>], symbols: &[Symbol]) -> Result<(), String> {
    let (mut programs, mut subprograms) = (0, 0);
    for function in symbols.iter().filter(|symbol| symbol.kind == SYMBOL_FUNCTION) {
        match all.get(function.section) {
            Some(section) if section.is_text() => subprograms += 1,
            _ => programs += 1,
        }
    }
    let text: usize = all.iter().filter(|it| it.is_text()).map(|section| section.bytes).sum();
    if programs > PROGRAMS_MAX
        || subprograms > SUBPROGRAMS_MAX
        || programs.saturating_mul(text) > LINKED_BYTES_MAX
    {
        return Err(format!(
            "{programs} programs and {subprograms} subprograms of {text} bytes are too much"
        ));
    }
    Ok(())
}

/// References from code: only wide loads and calls have them, and they go to data, to maps by their symbols, or to
/// subprograms.
fn check_relocations(
    bytes: &[u8],
    section: &Section<'_>,
    all: &[Section<'_>],
    found: &mut Found,
) -> Option<()> {
    let target = all.get(section.info).filter(|target| target.is_code());
    let Some(target) = target else { return Some(()) };
    let table = all.get(section.link)?;
    let table = Bytes(bytes).part(table.offset, table.bytes)?;
    let code = Bytes(bytes).part(target.offset, target.bytes)?;
    for entry in 0..section.bytes / RELOCATION_BYTES {
        let entry =
            Bytes(bytes).part(section.offset + entry * RELOCATION_BYTES, RELOCATION_BYTES)?;
        let (at, number) = (entry.length(0)?, entry.count(12)?);
        let instruction = code.part(at, INSTRUCTION_BYTES)?;
        let immediate = instruction.u32(4)?.cast_signed();
        let to = symbol(table, number)?;
        let to_section = all.get(to.section).filter(|_| to.section != 0)?;
        let call = is_call(instruction.0);
        let is_wide = instruction.0.first() == Some(&WIDE_LOAD);
        let least = if call { -1 } else { 0 };
        if !at.is_multiple_of(INSTRUCTION_BYTES)
            || !(call || is_wide)
            || !(least..DISTANCE_MAX).contains(&immediate)
            || to.at > DISTANCE_MAX as usize
        {
            return None;
        }
        let is_function = to.kind == SYMBOL_FUNCTION || to.kind == SYMBOL_SECTION;
        if to_section.is_code() {
            // The size of the kind: R_BPF_64_32 is a call, R_BPF_64_64 a reference.
            let fits = entry.count(8)? == if call { 10 } else { 1 };
            if !to_section.is_text() || !is_function || !fits {
                return None;
            }
            found.calls.insert((section.info, at));
        } else if call || to.kind == SYMBOL_FUNCTION {
            return None;
        } else if to_section.is_maps() {
            found.map_symbols.push(number);
        }
    }
    Some(())
}
