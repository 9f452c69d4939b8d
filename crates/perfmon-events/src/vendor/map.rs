//! `mapfile.csv`: which files are for which CPUs.

use std::path::Path;

use regex_lite::RegexBuilder;

use super::entry::parse;
use super::problems::Problems;
use crate::machine::CpuId;

/// Most rows that are looked at.
const ROWS_MAX: usize = 4096;
/// Longest pattern, in bytes, and the size that it may have when compiled.
const PATTERN_BYTES_MAX: usize = 256;
const COMPILED_BYTES_MAX: usize = 64 * 1024;

/// Bits of the main ID register that tell versions of one part: variant and revision.
const MIDR_VERSION: u64 = 0x00f0_000f;

/// Kinds of files that hold no events: formulas, and tables of bits.
const NO_EVENTS: [&str; 4] = ["metrics", "retire latency", "offcore", "fp_arith_inst"];

/// A row of the map that is for the CPU.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    /// A file, or a folder of files, below the map's own.
    pub(super) place: String,
    /// The PMU of its events that name none.
    pub(super) pmu: &'static str,
}

/// A CPU as maps write it.
pub(super) fn written(cpu: &CpuId) -> String {
    match cpu {
        CpuId::X86 { vendor, family, model, stepping } => {
            format!("{vendor}-{family}-{model:X}-{stepping:X}")
        }
        CpuId::Arm64 { midr } => format!("{midr:#018x}"),
        CpuId::Riscv { vendor, arch, implementation } => {
            format!("{vendor:#x}-{arch:#x}-{implementation:#x}")
        }
        CpuId::Unknown => "unknown".to_owned(),
    }
}

/// The rows of a map for `cpu`: all that name files, or the first that names a folder.
pub(super) fn rows(text: &str, cpu: &CpuId, map: &Path, problems: &mut Problems) -> Vec<Row> {
    let mut found = Vec::new();
    let mut seen: Option<(&str, bool)> = None;
    for (place, line) in text.lines().enumerate() {
        if place == ROWS_MAX {
            problems.add(map, format!("more than {ROWS_MAX} lines"));
            break;
        }
        let fields: Vec<&str> =
            line.split(',').map(|field| field.trim().trim_matches('"')).collect();
        let &[pattern, _, file, ref rest @ ..] = fields.as_slice() else { continue };
        if pattern.starts_with('#') || pattern == "Family-model" {
            continue;
        }
        let is_fit = match seen {
            Some((before, is_fit)) if before == pattern => is_fit,
            _ => fits(pattern, cpu).unwrap_or_else(|why| {
                problems.add(map, format!("line {}: {why}", place + 1));
                false
            }),
        };
        seen = Some((pattern, is_fit));
        let kind = rest.first().copied().unwrap_or_default();
        if !is_fit || NO_EVENTS.contains(&kind.to_ascii_lowercase().as_str()) {
            continue;
        }
        let Some(below) = below(file) else {
            problems.add(map, format!("line {}: '{file}' is not below the map", place + 1));
            continue;
        };
        found.push(Row { place: below, pmu: pmu(kind, rest) });
        if !file.ends_with(".json") {
            break;
        }
    }
    found
}

/// The path without a slash before it; `None` if it would lead elsewhere.
fn below(file: &str) -> Option<String> {
    let file = file.trim_start_matches('/');
    let is_below = file.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    is_below.then(|| file.to_owned())
}

/// The PMU of a hybrid machine's kind of core: `core type, native model, role` follow the kind of file.
fn pmu(kind: &str, rest: &[&str]) -> &'static str {
    if kind != "hybridcore" {
        return "cpu";
    }
    let is_role = |word: &str| rest.get(3).is_some_and(|role| role.eq_ignore_ascii_case(word));
    match rest.get(1).and_then(|core_type| parse(core_type)) {
        _ if is_role("LowPower_Atom") => "cpu_lowpower",
        Some(0x20) => "cpu_atom",
        Some(0x40) => "cpu_core",
        _ if is_role("Atom") => "cpu_atom",
        _ if is_role("Core") => "cpu_core",
        _ => "cpu",
    }
}

/// Whether a pattern of a map is for the CPU.
fn fits(pattern: &str, cpu: &CpuId) -> Result<bool, String> {
    match cpu {
        CpuId::Unknown => Ok(false),
        // Maps of other architectures hold no hexadecimal numbers.
        CpuId::Arm64 { midr } => Ok(parse(pattern).is_some_and(|from| is_part_from(from, *midr))),
        CpuId::X86 { vendor, .. } if !is_vendor(pattern, vendor) => Ok(false),
        CpuId::X86 { .. } => {
            let full = written(cpu);
            let without_stepping = full.rsplit_once('-').map_or("", |(before, _)| before);
            matches(pattern, &[&full, without_stepping])
        }
        CpuId::Riscv { .. } => matches(pattern, &[&written(cpu)]),
    }
}

/// Spares compiling patterns of other vendors: all begin with the name.
fn is_vendor(pattern: &str, vendor: &str) -> bool {
    let name = pattern.find(|char: char| !char.is_ascii_alphabetic());
    name.is_none_or(|end| end == 0 || pattern.get(..end) == Some(vendor) || pattern.contains('|'))
}

/// Whether the register names the part `from`, in that version or a later one.
fn is_part_from(from: u64, midr: u64) -> bool {
    let version = |midr: u64| (midr >> 20 & 0xf, midr & 0xf);
    from & !MIDR_VERSION == midr & !MIDR_VERSION && version(midr) >= version(from)
}

/// Whether a POSIX extended regular expression matches one of `texts` whole.
fn matches(pattern: &str, texts: &[&str]) -> Result<bool, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("a pattern has more than {PATTERN_BYTES_MAX} bytes"));
    }
    let regex =
        RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(COMPILED_BYTES_MAX).build();
    let regex = regex.map_err(|error| format!("'{pattern}' is no regular expression: {error}"))?;
    Ok(texts.iter().any(|text| regex.is_match(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x86(vendor: &str, family: u32, model: u32, stepping: u32) -> CpuId {
        CpuId::X86 { vendor: vendor.to_owned(), family, model, stepping }
    }

    /// Check that patterns match whole CPUs, with the stepping or without it.
    #[test]
    fn patterns_match_whole_cpus() {
        let skylake = x86("GenuineIntel", 6, 0x55, 4);
        let cascade = x86("GenuineIntel", 6, 0x55, 11);
        let zen3 = x86("AuthenticAMD", 25, 0x21, 0);
        let zen4 = x86("AuthenticAMD", 25, 0x61, 2);
        let bullet =
            CpuId::Riscv { vendor: 0x489, arch: 0x8000_0000_0000_0007, implementation: 0x20 };
        let zen3_pattern = "AuthenticAMD-25-([245][[:xdigit:]]|[[:xdigit:]])";
        for (pattern, cpu, expected) in [
            ("GenuineIntel-6-55-[01234]", &skylake, true),
            ("GenuineIntel-6-55-[56789ABCDEF]", &skylake, false),
            ("GenuineIntel-6-55-[56789ABCDEF]", &cascade, true),
            ("GenuineIntel-6-55", &cascade, true),
            ("GenuineIntel-6-5", &cascade, false),
            ("GenuineIntel-6-(97|9A|B7|BA|BF)", &x86("GenuineIntel", 6, 0x9a, 3), true),
            ("GenuineIntel-6-(97|9A|B7|BA|BF)", &x86("GenuineIntel", 6, 0xbe, 0), false),
            (zen3_pattern, &zen3, true),
            (zen3_pattern, &zen4, false),
            ("AuthenticAMD-25-[[:xdigit:]]+", &zen4, true),
            ("AuthenticAMD-25-[[:xdigit:]]+", &x86("HygonGenuine", 25, 0x61, 2), false),
            ("0x489-0x8000000000000007-0x[[:xdigit:]]+", &bullet, true),
            ("0x489-0x8000000000000[1-9a-e]07-0x[78ac][[:xdigit:]]+", &bullet, false),
            ("0x00000000410fd0c0", &CpuId::Arm64 { midr: 0x413f_d0c1 }, true),
            ("0x00000000411fd0c1", &CpuId::Arm64 { midr: 0x410f_d0c2 }, false),
            ("0x00000000411fd0c1", &CpuId::Arm64 { midr: 0x411f_d0c0 }, false),
            ("0x00000000411fd0c1", &CpuId::Arm64 { midr: 0x412f_d0c0 }, true),
            ("0x00000000410fd0b0", &CpuId::Arm64 { midr: 0x413f_d0c1 }, false),
            (".*", &CpuId::Unknown, false),
        ] {
            assert_eq!(fits(pattern, cpu), Ok(expected), "{pattern} {}", written(cpu));
        }
    }

    /// Check that patterns that would take long, or are none, are said to be wrong.
    #[test]
    fn hostile_patterns_are_refused() {
        let cpu = x86("GenuineIntel", 6, 0x55, 4);
        for pattern in
            ["(((a{100}){100}){100})", "G(", "[z-a]", "(?", &"(".repeat(200), &"a".repeat(257)]
        {
            assert!(
                fits(pattern, &cpu).is_ok_and(|is_fit| !is_fit) || fits(pattern, &cpu).is_err(),
                "{pattern}"
            );
        }
        assert!(matches(&"(a{255}){255}".repeat(5), &["a"]).is_err());
    }

    /// Check that rows give files of all kinds with events, with the kind of core, and one folder.
    #[test]
    fn rows_give_files_or_one_folder() {
        let mut problems = Problems::default();
        let text = "Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n\
                    GenuineIntel-6-97,V1,/A/atom.json,hybridcore,0x20,0x000001,Atom\n\
                    GenuineIntel-6-97,V1,/A/core.json,hybridcore,0x40,0x000001,Core\n\
                    GenuineIntel-6-97,V1,/A/low.json,hybridcore,0x20,0x000002,LowPower_Atom\n\
                    GenuineIntel-6-97,V1,/A/metrics.json,metrics,,,\n\
                    GenuineIntel-6-97,V1,/../uncore.json,uncore,,,\n\
                    GenuineIntel-6-97,V1,/A/uncore.json,uncore,,,\n\
                    GenuineIntel-6-9A,V1,/B/core.json,core,,,\n\
                    GenuineIntel-6-9[,V1,/B/core.json,core,,,\n\
                    short,row\n";
        let found = rows(text, &x86("GenuineIntel", 6, 0x97, 1), Path::new("m"), &mut problems);
        let row = |place: &str, pmu| Row { place: place.to_owned(), pmu };
        let expected = [
            row("A/atom.json", "cpu_atom"),
            row("A/core.json", "cpu_core"),
            row("A/low.json", "cpu_lowpower"),
            row("A/uncore.json", "cpu"),
        ];
        assert_eq!(found, expected);
        let problems = problems.finish();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(problems[0], "m: line 6: '/../uncore.json' is not below the map");
        assert!(
            problems[1].starts_with("m: line 9: 'GenuineIntel-6-9[' is no regular"),
            "{problems:?}"
        );

        let mut problems = Problems::default();
        let text = "AuthenticAMD-23-([12][0-9A-F]|[0-9A-F]),v2,zen1,core\nAuthenticAMD-23-[[:xdigit:]]+,v1,zen2,core\n";
        let mut one =
            |model| rows(text, &x86("AuthenticAMD", 23, model, 0), Path::new("m"), &mut problems);
        assert_eq!(one(0x11), [row("zen1", "cpu")]);
        assert_eq!(one(0x31), [row("zen2", "cpu")]);
    }
}
