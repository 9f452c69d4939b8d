//! For PMUs that both describe, perfmon's encodings are libpfm4's, or both refuse.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perfmon_events::description::EventEntry;
use perfmon_events::{Names, PmuDescription, Source, Wanted};
use perfmon_sys::{Libpfm, LibpfmAttributeKind, LibpfmPmu};

/// What one of libpfm4's PMUs must give: so many equal encodings at least. By libpfm4 4.13.
const FLOORS: &[(&str, usize)] = &[
    ("amd64_fam17h", 1650),
    ("amd64_fam17h_zen1", 1650),
    ("amd64_fam17h_zen2", 1350),
    ("amd64_fam19h_zen3", 1450),
    ("amd64_fam19h_zen4", 2800),
    ("skx", 3400),
    ("clx", 3400),
    ("icx", 3800),
    ("spr", 3300),
    ("perf", 19),
];

/// A difference that is meant: `config` and `config1` by both sides, `None` if libpfm4 refuses.
struct Meant {
    pmus: &'static [&'static str],
    text: &'static str,
    ours: (u64, u64),
    theirs: Option<(u64, u64)>,
    why: &'static str,
}

// tidy: table
const fn meant(
    pmus: &'static [&'static str],
    text: &'static str,
    ours: (u64, u64),
    theirs: Option<(u64, u64)>,
    why: &'static str,
) -> Meant {
    Meant { pmus, text, ours, theirs, why }
}

const SKX_AND_ICX: &[&str] = &["skx", "clx", "icx"];
const SKX: &[&str] = &["skx", "clx"];
const ICX: &[&str] = &["icx"];
const SPR: &[&str] = &["spr"];
const TOPDOWN: &str = "Intel's list: event 0xa4";

/// All differences that are meant and that follow from no [`rule`]. They stay with modifiers.
const MEANT: &[Meant] = &[
    meant(
        SKX_AND_ICX,
        "MEM_TRANS_RETIRED",
        (0x1cd, 3),
        Some((0x1cd, 0)),
        "ldlat is 3 at least; libpfm4 forgets it",
    ),
    meant(
        SKX_AND_ICX,
        "MEM_TRANS_RETIRED:ldlat=7",
        (0x1cd, 7),
        None,
        "libpfm4 does not see the default mask",
    ),
    meant(
        SKX,
        "UOPS_RETIRED:STALL_CYCLES",
        (0x0180_02c2, 0),
        Some((0x0180_01c2, 0)),
        "Intel's list: umask 2",
    ),
    meant(
        SKX,
        "UOPS_RETIRED:TOTAL_CYCLES",
        (0x1080_02c2, 0),
        Some((0x0a80_01c2, 0)),
        "Intel's list: umask 2, cmask 16",
    ),
    meant(ICX, "MEM_LOAD_MISC_RETIRED", (0x4d4, 0), Some((0x4c4, 0)), "Intel's list: event 0xd4"),
    meant(
        ICX,
        "MEM_LOAD_MISC_RETIRED:UC",
        (0x4d4, 0),
        Some((0x4c4, 0)),
        "Intel's list: event 0xd4",
    ),
    meant(&["icx", "spr"], "TOPDOWN:BACKEND_BOUND_SLOTS", (0x2a4, 0), Some((0x200, 0)), TOPDOWN),
    meant(&["icx", "spr"], "TOPDOWN:BR_MISPREDICT_SLOTS", (0x8a4, 0), Some((0x800, 0)), TOPDOWN),
    meant(SPR, "TOPDOWN:BAD_SPEC_SLOTS", (0x4a4, 0), Some((0x400, 0)), TOPDOWN),
    meant(SPR, "TOPDOWN:MEMORY_BOUND_SLOTS", (0x10a4, 0), Some((0x1000, 0)), TOPDOWN),
    meant(
        SPR,
        "ARITH:INT_DIVIDER_ACTIVE",
        (0x0100_08b0, 0),
        Some((0x8b0, 0)),
        "Intel's list: cmask 1",
    ),
    meant(
        SPR,
        "CPU_CLK_UNHALTED:THREAD",
        (0x3c, 0),
        Some((0x200, 0)),
        "Linux knows the fixed counter as 0x3c",
    ),
    meant(
        SPR,
        "EXE",
        (0x2b7, 0),
        Some((0x2b7, 2)),
        "libpfm4 takes event 0xb7 for an offcore response",
    ),
    meant(
        SPR,
        "EXE:AMX_BUSY",
        (0x2b7, 0),
        Some((0x2b7, 2)),
        "libpfm4 takes event 0xb7 for an offcore response",
    ),
    meant(
        SPR,
        "INST_RETIRED",
        (0x100, 0),
        Some((0x1c0, 0)),
        "Linux knows the fixed counter as 0x100",
    ),
    meant(
        SPR,
        "INST_RETIRED:ANY",
        (0x100, 0),
        Some((0x1c0, 0)),
        "Linux knows the fixed counter as 0x100",
    ),
    meant(
        SPR,
        "INT_MISC:UNKNOWN_BRANCH_CYCLES",
        (0x40ad, 7),
        Some((0x7ad, 0)),
        "Intel's list: umask 0x40, MSR_PEBS_FRONTEND 7",
    ),
    meant(
        SPR,
        "MEM_TRANS_RETIRED:STORE_SAMPLE",
        (0x2cd, 0),
        Some((0x3cd, 0)),
        "Intel's list: umask 2",
    ),
    meant(
        SPR,
        "UOPS_RETIRED:MS",
        (0x4c2, 8),
        Some((0x8c2, 0)),
        "Intel's list: umask 4, MSR_PEBS_FRONTEND 8",
    ),
];

/// Events and masks that only perfmon has: PMUs, event, and parts of the masks' names.
const OURS_ALONE: &[(&[&str], &str, &[&str])] = &[
    (&["icx", "spr"], "TOPDOWN_SLOTS", &[]),
    (SKX, "CPU_CLK_UNHALTED", &["ONE_THREAD_ACTIVE", "REF_P", "REF_XCLK", "THREAD_P"]),
    (SKX, "OFFCORE_RESPONSE_0", &["_L3_HIT", "_L3_MISS_", "_SUPPLIER_NONE"]),
    (SKX, "OFFCORE_RESPONSE_1", &["_L3_HIT", "_L3_MISS_", "_SUPPLIER_NONE"]),
    // Only Cascade Lake has persistent memory; libpfm4's clx has them, too.
    (&["skx"], "MEM_LOAD_L3_MISS_RETIRED", &["REMOTE_PMM"]),
    (&["skx"], "MEM_LOAD_UOPS_L3_MISS_RETIRED", &["REMOTE_PMM"]),
    (&["skx"], "MEM_LOAD_UOPS_LLC_MISS_RETIRED", &["REMOTE_PMM"]),
    (&["skx"], "MEM_LOAD_RETIRED", &["LOCAL_PMM"]),
    (&["skx"], "MEM_LOAD_UOPS_RETIRED", &["LOCAL_PMM"]),
];

/// Modifiers that are put behind an event and each of its masks.
const MODIFIERS: [&str; 10] =
    ["c=1", "c=0xff", "c=256", "i", "e", "e=1:c=1", "c=2:i", "i=0:c=3:e", "ldlat=7", "fe_thres=5"];
/// Most masks of an event of which pairs are made.
const PAIRED_MASKS: usize = 8;
/// The edge bit of an Intel event select register.
const EDGE: u64 = 1 << 18;

/// Says that a test did not run, past libtest's capture.
fn skipped(name: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

/// Runs `body` in a process in which libpfm4 encodes for all PMUs; `name` is the test's full name.
fn for_all_pmus(name: &str, body: impl FnOnce(Libpfm)) {
    const MARK: &str = "PERFMON_TEST_ALONE";
    let library = match Libpfm::open() {
        Ok(library) => library,
        Err(error) => return skipped(name, error),
    };
    if std::env::var_os(MARK).is_some_and(|value| value == name) {
        return body(library);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--test-threads", "1", "--nocapture"]);
    let status = command
        .env(MARK, name)
        .env("LIBPFM_ENCODE_INACTIVE", "1")
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{name}: {status}");
}

/// The machine that `description` is of, with a core PMU.
fn machine_of(description: &PmuDescription, folder: &Path) -> Names {
    let pmu = folder.join("sys/bus/event_source/devices/cpu");
    fs::create_dir_all(&pmu).unwrap();
    fs::write(pmu.join("type"), "4\n").unwrap();
    fs::create_dir_all(folder.join("proc")).unwrap();
    let mut cpuinfo = String::from("processor\t: 0\n");
    if let Some(machine) = description.identity().machines.first() {
        let vendor = machine.vendor.as_deref().unwrap();
        let first = |ranges: &[(u32, u32)]| ranges.first().map_or(0, |range| range.0);
        cpuinfo += &format!(
            "vendor_id\t: {vendor}\ncpu family\t: {}\nmodel\t\t: {}\nstepping\t: {}\n",
            machine.family.unwrap_or(6),
            first(&machine.models),
            first(&machine.steppings)
        );
    }
    fs::write(folder.join("proc/cpuinfo"), cpuinfo).unwrap();
    Names::with_roots(folder.join("sys"), "/nonexistent").proc(folder.join("proc"))
}

/// An event's masks, by the sides that have it.
#[derive(Default)]
struct Masks {
    theirs: Option<Vec<String>>,
    /// Those that are not theirs.
    ours_alone: Vec<String>,
}

impl Masks {
    fn all(&self) -> Vec<String> {
        self.theirs.iter().flatten().chain(&self.ours_alone).cloned().collect()
    }

    /// Whether libpfm4 lacks the event or a mask of `text`, and [`OURS_ALONE`] says so.
    fn are_ours_alone(&self, pmu: &str, text: &str) -> bool {
        let event = text.split(':').next().unwrap_or_default();
        let rows = || OURS_ALONE.iter().filter(|row| row.0.contains(&pmu) && row.1 == event);
        let mut masks =
            text.split(':').skip(1).filter(|it| self.ours_alone.iter().any(|own| own == it));
        match self.theirs {
            None => rows().count() > 0,
            Some(_) => masks
                .next()
                .is_some_and(|mask| rows().any(|row| row.2.iter().any(|part| mask.contains(part)))),
        }
    }
}

/// The events that either side has.
fn events(
    library: &Libpfm,
    pmu: &LibpfmPmu,
    description: &PmuDescription,
) -> BTreeMap<String, Masks> {
    let mut events: BTreeMap<String, Masks> = BTreeMap::new();
    library.events(pmu, &mut |entry| {
        let masks =
            entry.attributes.iter().filter(|attribute| attribute.kind == LibpfmAttributeKind::Mask);
        let masks = masks.map(|mask| mask.name.to_ascii_uppercase()).collect();
        events.entry(entry.name.to_ascii_uppercase()).or_default().theirs = Some(masks);
        ControlFlow::Continue(())
    });
    for event in &description.tables().events {
        for name in std::iter::once(&event.name).chain(&event.also) {
            let masks = events.entry(name.to_ascii_uppercase()).or_default();
            let ours = event.masks.iter().map(|mask| mask.name.to_ascii_uppercase());
            let theirs = masks.theirs.as_deref().unwrap_or_default();
            masks.ours_alone = ours.filter(|mask| !theirs.contains(mask)).collect();
        }
    }
    events
}

/// The texts of an event.
fn texts(event: &str, masks: &[String]) -> Vec<String> {
    let alone = masks.iter().map(|mask| format!("{event}:{mask}"));
    let mut texts: Vec<String> = std::iter::once(event.to_owned()).chain(alone).collect();
    let modified = |text: &String| {
        MODIFIERS.iter().map(|modifier| format!("{text}:{modifier}")).collect::<Vec<_>>()
    };
    texts.extend(texts.iter().flat_map(modified).collect::<Vec<_>>());
    for (place, first) in masks.iter().enumerate().take(PAIRED_MASKS) {
        for second in masks.iter().take(PAIRED_MASKS).skip(place + 1) {
            texts.push(format!("{event}:{first}:{second}"));
        }
    }
    texts
}

/// What comes of the texts of a PMU.
#[derive(Default)]
struct Tally {
    equal: usize,
    both_refuse: usize,
    meant: usize,
    /// Of events and masks that libpfm4 does not have.
    ours_alone: usize,
    wrong: Vec<String>,
}

type Registers = (u32, u64, u64, u64);

fn ours(names: &Names, text: &str) -> Result<Registers, String> {
    let encoding = names.encoding(text).map_err(|error| error.to_string())?;
    let encoding = encoding.map_err(|refusal| format!("refused: {refusal}"))?;
    Ok((encoding.pmu_type, encoding.config, encoding.config1, encoding.config2))
}

fn theirs(library: &Libpfm, text: &str) -> Result<Registers, String> {
    let event = library.encode(text).map_err(|error| error.to_string())?;
    Ok((event.pmu_type, event.config, event.config1, event.config2))
}

/// `text` without the parts of [`MODIFIERS`].
fn without_modifiers(event: Option<&EventEntry>, text: &str) -> String {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default().to_owned();
    let is_mask = |part: &&str| event.is_some_and(|event| event.mask(part).is_some());
    std::iter::once(name)
        .chain(parts.filter(is_mask).map(str::to_owned))
        .collect::<Vec<_>>()
        .join(":")
}

/// Both sides' answers to a text of a PMU.
struct Answers<'a> {
    pmu: &'a str,
    text: &'a str,
    ours: Result<Registers, String>,
    theirs: Result<Registers, String>,
}

/// Both sides.
struct Sides<'a> {
    library: &'a Libpfm,
    names: Names,
    pmu: &'a str,
}

impl Sides<'_> {
    fn answers<'t>(&'t self, text: &'t str) -> Answers<'t> {
        let full = format!("{}::{text}", self.pmu);
        let (ours, theirs) = (ours(&self.names, &full), theirs(self.library, &full));
        Answers { pmu: self.pmu, text, ours, theirs }
    }

    /// Why a difference is meant, by the list or by a rule.
    fn why(&self, event: Option<&EventEntry>, it: &Answers<'_>) -> Option<&'static str> {
        let plain_text = without_modifiers(event, it.text);
        let listed =
            |text: &str| MEANT.iter().find(|row| row.pmus.contains(&it.pmu) && row.text == text);
        if let Some(row) = listed(it.text) {
            return row.fits(it).then_some(row.why);
        }
        let plain = self.answers(&plain_text);
        if let Some(row) = listed(&plain_text)
            && row.fits(&plain)
            && changes(&it.ours, &plain.ours) == changes(&it.theirs, &plain.theirs)
            && it.theirs.is_ok()
        {
            return Some(row.why);
        }
        rule(it, &plain)
    }
}

impl Meant {
    fn fits(&self, it: &Answers<'_>) -> bool {
        let words = |side: &Result<Registers, String>| {
            side.as_ref().ok().map(|&(_, config, config1, _)| (config, config1))
        };
        words(&it.ours) == Some(self.ours) && words(&it.theirs) == self.theirs
    }
}

/// The bits that modifiers changed.
fn changes(
    with: &Result<Registers, String>,
    without: &Result<Registers, String>,
) -> Option<[u64; 3]> {
    let ((_, a, b, c), (_, d, e, f)) = (with.as_ref().ok()?, without.as_ref().ok()?);
    Some([a ^ d, b ^ e, c ^ f])
}

/// Why a difference follows from a rule of perfmon's, if it does; `plain` are the answers without modifiers.
fn rule(it: &Answers<'_>, plain: &Answers<'_>) -> Option<&'static str> {
    let ours = match (&it.ours, &it.theirs) {
        (Ok(_), Err(error)) => {
            let parts: Vec<&str> = it.text.split(':').collect();
            let is_edge = parts.contains(&"e") && !parts.iter().any(|part| part.starts_with("c="));
            let is_so = is_edge
                && error.contains("libpfm4's error -8")
                && changes(&it.ours, &plain.ours) == Some([EDGE, 0, 0]);
            return is_so.then_some("libpfm4 wants 'c' beside 'e' on Intel's PMUs");
        }
        (Err(ours), Ok(_)) => ours,
        _ => return None,
    };
    let begins = |what: &str| ours.starts_with(&format!("refused: {what}"));
    if ours.starts_with("expected no other unit mask beside") && it.text == plain.text {
        return Some("libpfm4 ors masks that the manual has as one number, or names of one mask");
    }
    if plain.ours.is_err() || plain.theirs.is_err() {
        return None;
    }
    if begins("only a fixed counter counts") {
        return Some(
            "libpfm4 lets a fixed counter have modifiers, with which Linux knows no such event",
        );
    }
    let is_unknown = || ours.starts_with("expected a ") && ours.contains(", found 'fe_thres=5'");
    if (begins("modifier 'fe_thres' has no meaning") || is_unknown()) && it.theirs == plain.theirs {
        return Some("libpfm4 takes fe_thres and does nothing with it");
    }
    let is_ored = || {
        let cmask =
            |side: &Result<Registers, String>| side.as_ref().map_or(0, |it| it.1 >> 24 & 0xff);
        let asked = it.text.split(':').find_map(|part| part.strip_prefix("c="));
        let asked = asked.and_then(|digits| match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        });
        asked.is_some_and(|asked| cmask(&it.theirs) == cmask(&plain.theirs) | asked)
    };
    if begins("'") && ours.contains("' is defined by c=") && is_ored() {
        return Some("libpfm4 ors a modifier to what a mask sets");
    }
    None
}

fn compare(library: &Libpfm, pmu: &LibpfmPmu, description: &PmuDescription, names: Names) -> Tally {
    let mut tally = Tally::default();
    let is_software = description.identity().pmu_type.is_some();
    let sides = Sides { library, names, pmu: &pmu.name };
    for (event, masks) in events(library, pmu, description) {
        let entry = description.tables().event(&event);
        if is_software && entry.is_none() {
            // libpfm4's `perf` also has the kernel's hardware events, which are below.
            continue;
        }
        let texts = if is_software { vec![event.clone()] } else { texts(&event, &masks.all()) };
        let single: Vec<String> =
            masks.all().iter().map(|mask| format!("{event}:{mask}")).collect();
        for text in texts {
            let it = sides.answers(&text);
            // An event alone may need a mask, and masks may exclude each other; one mask must be right.
            let is_one_mask = single.contains(&text);
            match (&it.ours, &it.theirs) {
                (Ok(one), Ok(other)) if one == other => tally.equal += 1,
                (Err(_), Err(_)) if !is_one_mask => tally.both_refuse += 1,
                (Ok(_), Err(_)) if masks.are_ours_alone(&pmu.name, &text) => tally.ours_alone += 1,
                _ if sides.why(entry, &it).is_some() => tally.meant += 1,
                (ours, theirs) => {
                    tally
                        .wrong
                        .push(format!("{}::{text}: {ours:x?}, libpfm4's {theirs:x?}", pmu.name));
                }
            }
        }
    }
    tally
}

/// Check, event by event, mask by mask, with modifiers and pairs of masks, that descriptions which go by the name
/// of one of libpfm4's PMUs encode as it does.
#[test]
fn descriptions_encode_as_libpfm4() {
    const TEST: &str = "libpfm::descriptions_encode_as_libpfm4";
    for_all_pmus(TEST, |library| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("libpfm");
        let pmus = library.pmus();
        let (mut compared, mut failures) = (Vec::new(), Vec::new());
        for description in Names::with_roots("/nonexistent", "/nonexistent").descriptions() {
            let identity = description.identity();
            let also = |pmu: &&LibpfmPmu| pmu.event_count > 0 && identity.also.contains(&pmu.name);
            for pmu in pmus.iter().filter(also) {
                let names = machine_of(description, &folder.join(&identity.name));
                let tally = compare(&library, pmu, description, names);
                let Tally { equal, both_refuse, meant, ours_alone, wrong } = tally;
                let counts = format!(
                    "{}: {equal} equal, {both_refuse} both refuse, {meant} meant, {ours_alone} ours alone",
                    pmu.name
                );
                let floor = FLOORS.iter().find(|(name, _)| *name == pmu.name);
                let floor = floor.map_or(usize::MAX, |(_, floor)| *floor);
                if equal < floor || !wrong.is_empty() {
                    failures.push(format!("{counts}; at least {floor}\n{}", wrong.join("\n")));
                }
                compared.push(pmu.name.as_str());
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
        for (name, _) in FLOORS.iter().filter(|(name, _)| !compared.contains(name)) {
            skipped(TEST, format!("the installed libpfm4 has no {name}"));
        }
    });
}

/// Check that the kernel's generic events have libpfm4's numbers.
#[test]
fn generic_events_encode_as_libpfm4() {
    const TEST: &str = "libpfm::generic_events_encode_as_libpfm4";
    for_all_pmus(TEST, |library| {
        let names = Names::with_roots("/nonexistent", "/nonexistent");
        let wanted = Wanted { sources: vec![Source::Generic], ..Wanted::default() };
        let mut events = Vec::new();
        names.catalog(&wanted, &mut |entry| {
            events.push(entry.name.clone().into_owned());
            events.extend(entry.also.iter().map(|name| name.clone().into_owned()));
        });
        let missing: Vec<&String> = events
            .iter()
            .filter(|event| {
                let theirs = theirs(&library, &format!("perf::{event}"));
                theirs.is_err() || {
                    assert_eq!(ours(&names, event), theirs, "{event}");
                    false
                }
            })
            .collect();
        assert_eq!(missing, [""; 0]);
        assert!(events.len() >= 45, "{}", events.len());
    });
}
