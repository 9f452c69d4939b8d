use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use object::{Object, ObjectSegment, ObjectSymbol};
use perfmon_core::{Encoding, Privilege};

use crate::elf_file::{
    CODE_ADDRESS, CODE_LENGTH, FUNCTION, INDIRECT, Kind, OBJECT, Scratch, Symbol, USUAL, build,
};
use crate::{event, show};

const SYMBOLS: &[Symbol<'_>] = &[
    ("first", FUNCTION, 1, CODE_ADDRESS, 16),
    ("second", FUNCTION, 1, CODE_ADDRESS + 0x20, 0),
    ("first.cold", FUNCTION, 1, CODE_ADDRESS + 0x40, 16),
    ("twin", FUNCTION, 1, CODE_ADDRESS + 0x50, 16),
    ("twin", FUNCTION, 1, CODE_ADDRESS + 0x60, 16),
    ("alias", FUNCTION, 1, CODE_ADDRESS, 16),
    ("alias", FUNCTION, 1, CODE_ADDRESS, 16),
    ("chosen", INDIRECT, 1, CODE_ADDRESS + 0x70, 16),
    ("variable", OBJECT, 1, CODE_ADDRESS + 0x80, 16),
    ("imported", FUNCTION, 0, 0, 0),
    ("outside", FUNCTION, 1, CODE_ADDRESS + CODE_LENGTH, 16),
    ("below", FUNCTION, 1, CODE_ADDRESS - 1, 16),
];

/// Check that a probe's encoding holds the PMU, the file and the offset of the function in it.
#[test]
fn encoding() {
    let file = Scratch::new("encoding", &build(USUAL, SYMBOLS));
    let path = file.0.canonicalize().unwrap();
    let expected = Encoding {
        pmu_type: 8,
        config: 0,
        config2: 0x420,
        path: Some(CString::new(path.as_os_str().as_bytes()).unwrap().into()),
        privilege: Privilege::USER,
        ..Encoding::default()
    };
    let text = format!("uprobe:{}:second:u", file.path());
    assert_eq!(event(&text).encoding, Ok(Arc::new(expected.clone())));
    assert_eq!(event(&text).text, text);
    let text = format!("uretprobe:{}:second:u", file.path());
    assert_eq!(event(&text).encoding, Ok(Arc::new(Encoding { config: 1, ..expected })));
}

/// Check that names and offsets lead to their place in the file, in all kinds of ELF files.
#[test]
fn places() {
    for kind in [
        USUAL,
        Kind { is_big_endian: true, ..USUAL },
        Kind { is_64: false, ..USUAL },
        Kind { is_64: false, is_big_endian: true },
    ] {
        let file = Scratch::new("places", &build(kind, SYMBOLS));
        for (place, offset) in [
            ("first", 0x400),
            ("first+15", 0x40f),
            ("first.cold", 0x440),
            ("second+0x10", 0x430),
            ("alias", 0x400),
            ("0x400", 0x400),
            ("1279", 0x4ff),
        ] {
            let text = format!("uprobe:{}:{place}", file.path());
            let expected = format!("type 8 config 0x0 config2 {offset:#x} path");
            assert_eq!(show(&event(&text)), expected, "{text} {kind:?}");
        }
    }
}

/// Check that a place which is not there, or not one, is refused with what to do.
#[test]
fn refusals() {
    let file = Scratch::new("refusals", &build(USUAL, SYMBOLS));
    for (probe, place, expected) in [
        ("uprobe", "third", "has no function 'third'; nm and nm -D show the names"),
        ("uprobe", "firs", "has no function 'firs'"),
        ("uprobe", "variable", "has no function 'variable'"),
        ("uprobe", "imported", "has no function 'imported'"),
        ("uprobe", "twin", "has several functions 'twin', at 0x450, 0x460; give the offset"),
        ("uprobe", "chosen", "chooses among several functions for 'chosen'"),
        ("uprobe", "outside", "has the symbol 'outside' outside of its code"),
        ("uprobe", "below", "has the symbol 'below' outside of its code"),
        ("uprobe", "first+16", "has only 16 bytes of 'first'"),
        ("uprobe", "second+0xe0", "has the symbol 'second' outside of its code"),
        ("uprobe", "second+0xffffffffffffffff", "has the symbol 'second' outside of its code"),
        ("uprobe", "0x3ff", "has no code at offset 0x3ff: a probe there is never hit"),
        ("uprobe", "0x500", "has no code at offset 0x500: a probe there is never hit"),
        ("uretprobe", "first+1", "a return probe belongs on the first instruction of a function"),
        ("uprobe", "first:k", "whether or not it excludes user mode"),
        ("uprobe", "first:h", "whether or not it excludes user mode"),
        ("uprobe", "first:I", "ignores 'I'"),
    ] {
        let text = format!("{probe}:{}:{place}", file.path());
        let shown = show(&event(&text));
        assert!(shown.starts_with("refused: ") && shown.contains(expected), "{text}: {shown}");
    }
}

/// Check that a file which is none, or no program, is refused.
#[test]
fn no_program() {
    let text_file = Scratch::new("text", b"#!/bin/sh\n");
    let empty = Scratch::new("empty", b"");
    let mut object = build(USUAL, SYMBOLS);
    // The one segment is no longer executable.
    object[64 + 4] = 4;
    let object = Scratch::new("object", &object);
    for (path, expected) in [
        (
            "/nonexistent/program",
            "cannot read '/nonexistent/program': there is no such file (ENOENT",
        ),
        (env!("CARGO_MANIFEST_DIR"), "is no file"),
        ("/dev/null", "'/dev/null' is no file"),
        (text_file.path(), "is not an ELF file"),
        (empty.path(), "is not an ELF file"),
        (object.path(), "is no program or library"),
    ] {
        for place in ["main", "0x400"] {
            let shown = show(&event(&format!("uprobe:{path}:{place}")));
            assert!(shown.starts_with("refused: ") && shown.contains(expected), "{path}: {shown}");
        }
    }
}

/// Check that a file cut at any length, and with any of its bytes changed, gives an answer.
#[test]
fn damaged_files() {
    let whole = build(USUAL, &SYMBOLS[..3]);
    let probe = |bytes: &[u8], place: &str| {
        let file = Scratch::new("damaged", bytes);
        event(&format!("uprobe:{}:{place}", file.path())).encoding.is_ok()
    };
    assert!(probe(&whole, "second"));
    for length in 0..whole.len() {
        assert!(!probe(&whole[..length], "second"), "cut at {length}");
    }
    let code = 0x400..0x500;
    for place in (0..whole.len()).filter(|place| !code.contains(place)) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[place] = value;
            probe(&damaged, "second");
            probe(&damaged, "0x420");
        }
    }
}

/// Check that tables which a file claims beyond its end, or beyond all measure, are not read.
#[test]
fn claimed_sizes() {
    let whole = build(USUAL, SYMBOLS);
    let sections = u64::from_le_bytes(whole[40..48].try_into().unwrap());
    // sh_size of the symbol table: the second section header, 32 bytes into it.
    let size_at = usize::try_from(sections).unwrap() + 64 + 32;
    let mut huge = whole.clone();
    huge[size_at..size_at + 8].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
    let mut long = whole.clone();
    long[size_at..size_at + 8].copy_from_slice(&(1_u64 << 28).to_le_bytes());
    for (bytes, length, expected) in [
        (&huge, whole.len() as u64, "is damaged: a table lies beyond its end"),
        (&long, 1 << 30, "has a table of more than 134217728 bytes"),
    ] {
        let file = Scratch::new("claimed", bytes);
        std::fs::File::options().write(true).open(&file.0).unwrap().set_len(length).unwrap();
        let shown = show(&event(&format!("uprobe:{}:second", file.path())));
        assert!(shown.contains(expected), "{shown}");
    }
}

/// Check that relative paths are made absolute.
#[test]
fn relative_path() {
    let file = Scratch::new("relative", &build(USUAL, SYMBOLS));
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    let up: String = here.components().skip(1).map(|_| "../").collect();
    let relative = format!("{up}{}", file.0.canonicalize().unwrap().display()).replace("//", "/");
    let encoding = event(&format!("uprobe:{relative}:first")).encoding.unwrap();
    let path = encoding.path.as_deref().unwrap().to_str().unwrap();
    assert_eq!(Path::new(path), file.0.canonicalize().unwrap());
}

/// Check the offset of `main` in this very program against the object crate's own reading.
#[test]
fn this_program() {
    let path = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(bytes.as_slice()).unwrap();
    let Some(main) = file.symbols().find(|symbol| symbol.name() == Ok("main")) else {
        println!("skipped: this program has no symbols");
        return;
    };
    let segment = file
        .segments()
        .find(|segment| main.address().wrapping_sub(segment.address()) < segment.size())
        .unwrap();
    let expected = main.address() - segment.address() + segment.file_range().0;
    let encoding = event(&format!("uprobe:{}:main", path.display())).encoding.unwrap();
    assert_eq!(encoding.config2, expected);
}

/// Check that the functions of a library are found in its dynamic symbols.
#[test]
fn library() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find_map(|line| {
        let path = line.split_whitespace().nth(5)?;
        path.rsplit('/').next()?.starts_with("libc.so").then_some(path)
    });
    let Some(libc) = libc else {
        println!("skipped: this program uses no shared libc");
        return;
    };
    assert!(event(&format!("uprobe:{libc}:malloc")).encoding.is_ok());
}
