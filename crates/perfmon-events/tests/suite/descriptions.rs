//! PMU descriptions as files: what is wrong with them, which of them count, and those that are built in.

use std::fs;
use std::path::{Path, PathBuf};

use perfmon_events::{Names, description};

use crate::show;

/// A small description that is right.
const RIGHT: &str = r#"format = 1
name = "mine"
version = "1.0"
about = "A PMU"
source = ["A manual, section 1"]

[perf]
devices = ["cpu"]
layout = "select"

[layout.select]
event = { bits = "0-7,32-35", perf = "config:0-7,32-35" }
umask = { bits = "8-15", perf = "config:8-15" }
user = { bits = "16", perf = "user" }

[[pmc]]
index = "0-1"
name = "CTL{}"
layout = "select"

[[pmd]]
index = "0-1"
name = "CTR{}"
width = 48
pmcs = "0-1"

[modifier]
m = { field = "umask", about = "a mask by number" }

[event]
ONE = { set = { event = 0x1ff }, about = "ones", counters = 1 }

[event.TWO]
set = { event = 2 }
about = "twos"
also = ["ZWEI"]
mask.A = { set = { umask = 1 }, about = "a" }
"#;

fn error(text: &str) -> String {
    match description::parse(text, "mine.toml") {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

/// The machine of the fixture `zen3`.
const ZEN3: &str =
    "\n[[machine]]\nvendor = \"AuthenticAMD\"\nfamily = 0x19\nmodels = [\"0-0xf\"]\n";

/// What of [`RIGHT`] is replaced by what, and the error.
const WRONG: &[(&str, &str, &str)] = &[
    ("format = 1", "format = 2", "mine.toml:1: format: is 2; this version reads format 1"),
    (
        "\"mine\"",
        "\"my pmu\"",
        "mine.toml:2: name: 'my pmu' is no name: 1 to 80 letters, digits and '_'",
    ),
    ("\"1.0\"", "\"one\"", "mine.toml:3: version: expected numbers with dots between them"),
    ("\"A PMU\"", "\"\"", "mine.toml:4: about: is empty"),
    ("source = [\"A manual, section 1\"]\n", "", "mine.toml: missing field `source`"),
    ("[\"A manual, section 1\"]", "[]", "mine.toml:5: source: names no public document"),
    (
        "devices = [\"cpu\"]",
        "devices = []",
        "mine.toml:7: perf: expected either 'devices' or 'type'",
    ),
    (
        "layout = \"select\"\n\n[layout",
        "layout = \"other\"\n\n[layout",
        "mine.toml:9: perf.layout: there is no layout 'other'",
    ),
    (
        "\"0-7,32-35\", perf",
        "\"0-7,6-9\", perf",
        "mine.toml:12: layout.select.event.bits: '0-7,6-9' names no bits; expected such as 0-7,32-35",
    ),
    (
        "\"config:8-15\"",
        "\"config:8-16\"",
        "mine.toml:13: layout.select.umask: has another number of bits in the register than in the perf event",
    ),
    (
        "\"config:8-15\"",
        "\"config9:8-15\"",
        "mine.toml:13: layout.select.umask.perf: 'config9:8-15' is no place in a perf event",
    ),
    (
        "bits = \"16\"",
        "bits = \"15\"",
        "mine.toml:14: layout.select.user: shares bits with another field",
    ),
    ("bits = \"16\", ", "", "mine.toml:14: layout.select.user: has no bits"),
    (
        "index = \"0-1\"\nname = \"CTL{}\"",
        "index = \"0-320\"\nname = \"CTL{}\"",
        "mine.toml:17: pmc.index: expected a register number, 0 to 319, or a range such as \"0-5\"",
    ),
    ("\"CTL{}\"", "\"CTL\"", "mine.toml:18: pmc.name: two PMCs 'CTL'"),
    (
        "layout = \"select\"\n\n[[pmd",
        "unsupported = \"why\"\nlayout = \"select\"\n\n[[pmd",
        "mine.toml:16: pmc: expected either 'layout' or 'unsupported'",
    ),
    ("width = 48", "width = 65", "mine.toml:24: pmd.width: is 1 to 64 bits"),
    ("pmcs = \"0-1\"", "pmcs = \"1-2\"", "mine.toml:25: pmd.pmcs: there is no PMC 2"),
    ("pmcs = \"0-1\"", "", "mine.toml:21: pmd: expected 'pmcs' or 'unsupported'"),
    (
        "pmcs = \"0-1\"",
        "pmcs = 0\nfixed = [\"ONE\", \"THREE\"]",
        "mine.toml:26: pmd.fixed: there is no event 'THREE'",
    ),
    (
        "pmcs = \"0-1\"",
        "pmcs = 0\nshift = 60\nshift_step = 4",
        "mine.toml:21: pmd.shift: reaches beyond bit 63",
    ),
    (
        "field = \"umask\"",
        "field = \"user\"",
        "mine.toml:28: modifier.m: layout 'select' has no field 'user' in a config word",
    ),
    (
        "event = 0x1ff",
        "event = 0x1000",
        "mine.toml:31: event.ONE.set.event: is at most 0xfff, not 0x1000",
    ),
    (
        "event = 0x1ff",
        "code = 1",
        "mine.toml:31: event.ONE.set.code: layout 'select' has no field 'code' in a config word",
    ),
    ("counters = 1", "counters = 2", "mine.toml:31: event.ONE.counters: there is no PMD 2"),
    (
        "[\"ZWEI\"]",
        "[\"one\"]",
        "mine.toml:33: event.TWO: the name 'one' is also one of event 'ONE'",
    ),
    (
        "about = \"a\"",
        "about = \"a\\nb\"",
        "mine.toml:37: event.TWO.mask.A.about: is more than one line",
    ),
    ("about = \"twos\"\n", "", "mine.toml:33: missing field `about`"),
    (
        "set = { umask = 1 }",
        "set = {}, preset = { umask = 256 }",
        "mine.toml:37: event.TWO.mask.A.preset.umask: is at most 0xff, not 0x100",
    ),
    (
        "about = \"a\"",
        "about = \"a\", counters = 7",
        "mine.toml:37: event.TWO.mask.A.counters: there is no PMD 7",
    ),
];

/// Check that a wrong file is refused with its line, its field and what is wrong there. Each case replaces a
/// part of a right one.
#[test]
fn wrong_files_are_refused() {
    assert!(description::parse(RIGHT, "mine.toml").is_ok());
    for (from, to, expected) in WRONG {
        assert!(RIGHT.contains(*from), "{from}");
        assert_eq!(error(&RIGHT.replacen(from, to, 1)), *expected);
    }
    assert!(error("").starts_with("mine.toml: "));
    let typed = error(&RIGHT.replacen("width = 48", "width = \"48\"", 1));
    assert_eq!(typed, "mine.toml:24: width: invalid type: string \"48\", expected u64");
    let unknown = error(&RIGHT.replacen("width = 48", "width = 48\ncolour = 1", 1));
    assert!(unknown.starts_with("mine.toml:25: colour: unknown field `colour`"), "{unknown}");
    assert_eq!(error(&"x".repeat(2 << 20)), "mine.toml: longer than 1048576 bytes");
}

/// Check that what every description that is built in must be, they are: as the build script took them, with
/// names that no generic event and no other description has, and with the machines and events that we ship.
#[test]
fn built_in_descriptions() {
    let names = Names::with_roots("/nonexistent", "/nonexistent");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../pmu");
    let mut found: Vec<&str> = names.descriptions().map(|it| it.identity().name.as_str()).collect();
    found.sort_unstable();
    // tidy: table
    let expected = [
        "amd_zen1",
        "amd_zen2",
        "amd_zen3",
        "amd_zen4",
        "amd_zen5",
        "arm_cortex_a76",
        "arm_neoverse_n1",
        "arm_neoverse_n2",
        "arm_neoverse_v1",
        "arm_pmuv3",
        "intel_adl_e",
        "intel_adl_p",
        "intel_icx",
        "intel_skx",
        "intel_spr",
        "perfmon2_amd64",
        "perfmon2_intel_arch",
        "perfmon2_intel_atom",
        "perfmon2_intel_core",
        "perfmon2_nehalem",
        "perfmon2_p4",
        "perfmon2_p6",
        "riscv_sbi",
        "software",
        "x86_arch",
    ];
    assert_eq!(found, expected);
    let mut called = std::collections::BTreeSet::new();
    for it in names.descriptions() {
        let identity = it.identity();
        for name in std::iter::once(&identity.name).chain(&identity.also) {
            assert!(called.insert(name.to_ascii_lowercase()), "two descriptions are called {name}");
        }
        let text = fs::read_to_string(folder.join(format!("{}.toml", identity.name))).unwrap();
        let (again, tables) = description::parse(&text, "again").unwrap();
        assert_eq!((&again, &tables), (identity, it.tables()), "{}", identity.name);
        // Every name is found, and is not one of the kernel's.
        for event in &it.tables().events {
            for name in std::iter::once(&event.name).chain(&event.also) {
                assert_eq!(it.tables().event(name), Some(event), "{}", identity.name);
                let hidden = names.parse(name).is_ok() && identity.name != "software";
                assert!(!hidden, "{}: {name} is a generic event", identity.name);
            }
        }
    }
}

/// A directory of its own for a test.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("descriptions-{name}"));
    // It may be there from another run.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Names of a machine without sysfs, with the descriptions of a directory.
fn names_with(directory: &Path) -> Names {
    Names::with_roots("/nonexistent", "/nonexistent").description_directory(directory)
}

/// Check that only files are read: a pipe in a directory would never end.
#[test]
fn what_is_no_file_is_refused() {
    let directory = directory("no-file");
    let pipe = directory.join("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let expected = format!("{}: it is no regular file", pipe.display());
    assert_eq!(names_with(&directory).problems(), [expected.as_str()]);
    let mut names = Names::with_roots("/nonexistent", "/nonexistent");
    for path in [pipe.as_path(), Path::new("/dev/zero"), &directory] {
        let error = names.add_description(path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: it is no regular file", path.display()));
    }
    let error = perfmon_events::metrics::Group::load(&pipe).unwrap_err().to_string();
    assert_eq!(error, format!("{}: cannot read it: it is no regular file", pipe.display()));
}

/// Check that a description needs no code: its events resolve on its machine.
#[test]
fn a_file_brings_its_events() {
    let directory = directory("events");
    let text = RIGHT.replacen("\n[perf]", &format!("{ZEN3}\n[perf]"), 1);
    fs::write(directory.join("mine.toml"), text).unwrap();
    let machines = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines");
    let names = Names::with_roots(machines.join("zen3/sys"), "/nonexistent")
        .proc(machines.join("zen3/proc"))
        .description_directory(&directory);
    let events = names.parse("ONE,zwei:a:u,TWO:m=0x7f,mine::ONE").unwrap();
    let shown: Vec<String> = events.iter().map(show).collect();
    assert_eq!(
        shown,
        [
            "type 4 config 0x1000000ff",
            "type 4 config 0x102 -k -h",
            "refused: event 'TWO' needs a unit mask, and has no default one; write TWO:MASK with one of A",
            "type 4 config 0x1000000ff",
        ]
    );
    assert_eq!(names.problems(), [""; 0]);
}

/// Check that a modifier never changes what defines an event, nor is taken where nothing heeds it.
#[test]
fn modifiers_that_can_not_be_heeded() {
    let directory = directory("modifiers");
    let fields = "cmask = { bits = \"24-31\", perf = \"config:24-31\" }
any = { bits = \"21\", perf = \"config:21\" }
latency = { perf = \"config1:0-15\" }
answer = { perf = \"config1:0-63\" }

[layout.fixed]
kernel = { bits = \"0\", perf = \"kernel\" }
any = { bits = \"2\", perf = \"config:21\" }

[[pmc]]
index = 16
name = \"FIXED_CTL\"
layout = \"fixed\"

[[pmc]]";
    let fixed = "[[pmd]]
index = 16
name = \"FIXED\"
width = 48
pmcs = 16
fixed = [\"ONE\"]

[modifier]
c = { field = \"cmask\", about = \"at least\" }
t = { field = \"any\", about = \"any thread\" }
lat = { field = \"latency\", about = \"latency\" }";
    let events = "
mask.BUSY = { set = { umask = 2, cmask = 1 }, about = \"busy cycles\" }
mask.SLOW = { set = { umask = 4 }, preset = { latency = 3 }, about = \"slow ones\", alone = true }
mask.FIXED = { set = { umask = 8 }, about = \"as the fixed counter does\", counters = 16 }
mask.FAR = { set = { umask = 16, answer = 0x70000 }, about = \"far ones\" }
";
    let text = RIGHT.replacen("\n[perf]", &format!("{ZEN3}\n[perf]"), 1);
    let text = text.replacen("\n[[pmc]]", fields, 1);
    let text = text.replacen("[modifier]", fixed, 1).replacen("counters = 1", "counters = 16", 1);
    fs::write(directory.join("mine.toml"), text + events).unwrap();
    let machines = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines");
    let names = Names::with_roots(machines.join("zen3/sys"), "/nonexistent")
        .proc(machines.join("zen3/proc"))
        .description_directory(&directory);
    assert_eq!(names.problems(), [""; 0]);
    let fixed = "refused: only a fixed counter counts";
    let nothing = "refused: modifier 'lat' has no meaning for";
    for (text, expected) in [
        ("two:a:c=2", "type 4 config 0x2000102".to_owned()),
        ("two:busy", "type 4 config 0x1000202".to_owned()),
        ("two:busy:c=1", "type 4 config 0x1000202".to_owned()),
        ("two:a:busy:c=1", "type 4 config 0x1000302".to_owned()),
        ("two:c=2:busy", "refused: 'TWO:BUSY' is defined by c=1, not 2; leave 'c' out".to_owned()),
        ("two:busy:c=0", "refused: 'TWO:BUSY' is defined by c=1, not 0; leave 'c' out".to_owned()),
        ("two:slow", "type 4 config 0x402 config1 0x3".to_owned()),
        ("two:slow:lat=9", "type 4 config 0x402 config1 0x9".to_owned()),
        ("two:slow:lat=0", "type 4 config 0x402".to_owned()),
        ("two:far", "type 4 config 0x1002 config1 0x70000".to_owned()),
        ("two:far:lat=9", format!("{nothing} 'TWO:FAR'")),
        ("two:a:lat=9", format!("{nothing} 'TWO:A'")),
        ("one:c=0:u", "type 4 config 0x1000000ff -k -h".to_owned()),
        ("one:c=1", format!("{fixed} 'ONE', and it does not know modifier 'c'")),
        ("one:t", "type 4 config 0x1002000ff".to_owned()),
        ("two:fixed:t", "type 4 config 0x200802".to_owned()),
        ("two:fixed:c=1", format!("{fixed} 'TWO:FIXED', and it does not know modifier 'c'")),
        ("two:fixed:a:c=1", format!("{fixed} 'TWO:FIXED:A', and it does not know modifier 'c'")),
    ] {
        let events = names.parse(&format!("mine::{text}")).unwrap();
        assert_eq!(events.iter().map(show).collect::<Vec<_>>(), [expected], "{text}");
    }
}

/// Check that of two descriptions of a name the higher version counts, that the same version with other
/// content is refused, and that wrong files cost nothing but themselves.
#[test]
fn conflicts_are_refused_by_name() {
    let directory = directory("conflicts");
    let zen3 = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../pmu/amd_zen3.toml");
    let zen3 = fs::read_to_string(zen3).unwrap();
    let mine = |name: &str, also: &str| {
        let line = format!("name = \"{name}\"\nalso = [{also}]");
        RIGHT.replacen("name = \"mine\"", &line, 1)
    };
    for (file, text) in [
        ("a_same.toml", zen3.clone()),
        ("b_other.toml", zen3.replacen("Instructions retired", "Something else", 1)),
        ("c_damaged.toml", "format = ".to_owned()),
        ("d_mine.toml", mine("mine", "\"theirs\"")),
        ("e_also.toml", mine("yours", "\"theirs\"")),
        ("f_software.toml", mine("software", "")),
        ("g_newer.toml", RIGHT.replacen("\"1.0\"", "\"1.0.1\"", 1).replacen("0x1ff", "0x3", 1)),
        ("h_older.toml", RIGHT.replacen("\"1.0\"", "\"0.9\"", 1)),
        ("i_generic.toml", mine("hidden", "").replacen("ONE =", "Page-Faults =", 1)),
        ("notes.txt", "not a description".to_owned()),
    ] {
        fs::write(directory.join(file), text).unwrap();
    }
    let names = names_with(&directory);
    let at = |file: &str| directory.join(file).display().to_string();
    let problems = names.problems();
    assert_eq!(problems.len(), 5, "{problems:#?}");
    assert_eq!(
        problems[0],
        format!(
            "{}: name: pmu/amd_zen3.toml is also 'amd_zen3' version 1.0, with other content; raise the version of the one that is to count",
            at("b_other.toml")
        )
    );
    assert!(problems[1].starts_with(&format!("{}:1: ", at("c_damaged.toml"))), "{}", problems[1]);
    assert_eq!(
        problems[2],
        format!(
            "{}: name: 'theirs' is also a name of 'mine' ({})",
            at("e_also.toml"),
            at("d_mine.toml")
        )
    );
    assert_eq!(
        problems[3],
        format!(
            "{}: name: 'software' is the kernel's own and can't be replaced",
            at("f_software.toml")
        )
    );
    assert!(
        problems[4].starts_with(&format!("{}:", at("i_generic.toml")))
            && problems[4]
                .contains(": event.Page-Faults: is called like one of the kernel's generic events"),
        "{}",
        problems[4]
    );
    let mine = names.description("mine").unwrap();
    assert_eq!((mine.identity().version_text(), mine.is_built_in()), ("1.0.1".to_owned(), false));
    assert_eq!(mine.tables().event("one").unwrap().set, [(0, 3)]);
}

/// Check that a file that is asked for by name must be right.
#[test]
fn a_named_file_must_be_right() {
    let directory = directory("named");
    let file = directory.join("mine.toml");
    let mut names = Names::with_roots("/nonexistent", "/nonexistent");
    let missing = names.add_description(&file).unwrap_err().to_string();
    assert_eq!(missing, format!("{}: No such file or directory (os error 2)", file.display()));
    fs::write(&file, "format = 1\n").unwrap();
    assert!(names.add_description(&file).unwrap_err().to_string().contains("missing field `name`"));
    fs::write(&file, RIGHT).unwrap();
    names.add_description(&file).unwrap();
    assert!(names.description("mine").is_some());
    fs::write(&file, RIGHT.replacen("ones", "other ones", 1)).unwrap();
    let conflict = names.add_description(&file).unwrap_err().to_string();
    assert!(conflict.contains("is also 'mine' version 1.0, with other content"), "{conflict}");
}
