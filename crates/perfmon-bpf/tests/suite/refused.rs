// guest rows: arm64-6.12, x86_64-6.1
use perfmon_bpf::{Error, Loader, Object};

use crate::helper::{BAD, LAB, SECTIONS, load_lab};

const NOT_CHECKED: &str = "R0 invalid mem access 'map_value_or_null'";

/// Check that each program is refused in a few lines with the verdict and the line of the source.
#[test]
fn refusals_are_short_and_name_the_line() {
    let name = "refusals_are_short_and_name_the_line";
    if load_lab(name, &Loader::new()).is_none() {
        return;
    }
    let object = Object::parse("bad", BAD).unwrap();
    for (program, verdict, source) in [
        ("unchecked", NOT_CHECKED, "*value += 1"),
        ("unchecked_late", NOT_CHECKED, "*value += 1"),
        ("wrong_context", "invalid bpf_context access off=8000 size=8", "asm!"),
    ] {
        let others = object.programs().into_iter().filter(|&other| other != program);
        let loader = others.fold(Loader::new(), |loader, other| loader.without(other));
        let error = loader.load(&object).unwrap_err();
        let text = error.to_string();
        let Error::Refused(refusal) = error else { panic!("{text}") };
        assert_eq!(refusal.verdict(), Some(verdict), "{text}");
        assert!(refusal.source().is_some_and(|line| line.contains(source)), "{text}");
        assert!(text.contains(verdict) && text.contains(source), "{text}");
        assert!(text.starts_with(&format!("the kernel refuses program {program} (perf_event): ")));
        assert!(text.lines().count() <= 14, "{text}");
        assert!(!refusal.log_cut && refusal.log.contains("processed "), "{text}");
    }
}

/// Check that what is no object for eBPF is refused with what it is.
#[test]
fn other_files_are_refused() {
    let why = |bytes: &[u8]| Object::parse("x", bytes).unwrap_err().to_string();
    assert_eq!(why(b""), "x: not a usable eBPF object: it is no 64-bit little-endian ELF file");
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let text = why(&program[..program.len().min(1 << 20)]);
    assert!(text.contains("it is no object file for eBPF"), "{text}");
    assert!(why(&LAB[..LAB.len() - 1]).contains("its section headers are damaged"));
}

/// A section's header, and where its content begins.
fn section(bytes: &[u8], name: &str) -> (usize, usize) {
    let word = |at: usize| {
        let bytes = bytes[at..at + 8].try_into().unwrap();
        usize::try_from(u64::from_le_bytes(bytes)).unwrap()
    };
    let half = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
    let header = |number: usize| word(0x28) + number * 64;
    let names = word(header(half(0x3e)) + 0x18);
    let is_it = |at: &usize| {
        let name_at = names + (word(*at) & 0xffff_ffff);
        bytes[name_at..].starts_with(&[name.as_bytes(), &[0]].concat())
    };
    let at = (0..half(0x3c)).map(header).find(is_it).unwrap();
    (at, word(at + 0x18))
}

/// Check that each kind of damage that the parser could not bear is refused in words before it sees it.
#[test]
fn damage_is_refused_in_words() {
    type Damage = fn(&mut Vec<u8>);
    let cases: [(&[u8], &str, Damage); 10] = [
        (LAB, "it is no object file for eBPF", |bytes| bytes[0x12] = 62),
        (LAB, "section raw_tp has an address", |bytes| {
            let (header, _) = section(bytes, "raw_tp");
            bytes[header + 0x10] = 8;
        }),
        (LAB, "section raw_tp is cut off", |bytes| {
            let (header, _) = section(bytes, "raw_tp");
            bytes[header + 0x22] = 1;
        }),
        (SECTIONS, "its sections claim more than 67108864 bytes", |bytes| {
            let (header, _) = section(bytes, ".bss");
            bytes[header + 0x23] = 4;
        }),
        (LAB, "it has more than one section license", |bytes| {
            let (license, _) = section(bytes, "license");
            let (other, _) = section(bytes, ".rodata");
            bytes.copy_within(license..license + 4, other);
        }),
        // The last of a function is a load of which the other half is missing.
        (LAB, "the code of section .text is damaged", |bytes| {
            let (header, begin) = section(bytes, ".text");
            let length = usize::from(bytes[header + 0x20]);
            bytes[begin + length - 8] = 0x18;
        }),
        // A call of what lies in the program's own section.
        (LAB, "a program of section raw_tp calls what is no subprogram", |bytes| {
            let (_, begin) = section(bytes, "raw_tp");
            bytes[begin..begin + 8].copy_from_slice(&[0x85, 0x10, 0, 0, 1, 0, 0, 0]);
        }),
        // A relocation of an instruction that can't have one.
        (LAB, "of code are damaged or not handled", |bytes| {
            let (_, begin) = section(bytes, ".relraw_tp");
            bytes[begin] += 8;
        }),
        (LAB, "its type information is damaged", |bytes| {
            let (_, begin) = section(bytes, ".BTF");
            bytes[begin + 24 + 7] = 31;
        }),
        (LAB, "its type information for functions and lines is damaged", |bytes| {
            let (_, begin) = section(bytes, ".BTF.ext");
            bytes[begin + 4] = 8;
        }),
    ];
    for (good, why, damage) in cases {
        let mut bytes = good.to_vec();
        damage(&mut bytes);
        let text = Object::parse("x", &bytes).unwrap_err().to_string();
        assert!(text.starts_with("x: not a usable eBPF object: "), "{text}");
        assert!(text.contains(why), "{why}: {text}");
    }
}
