//! Names on other machines: descriptions, core types, PMUs of a kind.

use std::path::PathBuf;

use perfmon_core::Group;
use perfmon_events::{Event, Names, Source, Wanted};

use crate::show;

/// The names of a fixture machine.
fn machine(name: &str) -> Names {
    let machines = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines");
    Names::with_roots(machines.join(name).join("sys"), "/nonexistent")
        .proc(machines.join(name).join("proc"))
}

fn events(machine_name: &str, list: &str) -> Vec<Event> {
    machine(machine_name).parse(list).unwrap_or_else(|error| panic!("{list}: {error}"))
}

/// Checks the text and the encoding of each event of `list`.
fn check(machine_name: &str, list: &str, expected: &[(&str, &str)]) {
    let events = events(machine_name, list);
    let shown: Vec<(&str, String)> =
        events.iter().map(|event| (event.text.as_str(), show(event))).collect();
    let shown: Vec<(&str, &str)> = shown.iter().map(|(text, it)| (*text, it.as_str())).collect();
    assert_eq!(shown, expected, "{list}");
}

/// Check the names of a description of the machine's CPU: without regard to case, with its unit masks and
/// modifiers, under the names of description and libpfm4, within the PMU's slashes, and with letters.
#[test]
fn described_events() {
    for (list, expected) in [
        ("RETIRED_INSTRUCTIONS", "type 4 config 0xc0"),
        ("retired_instructions:u", "type 4 config 0xc0 -k -h"),
        ("amd_zen3::RETIRED_INSTRUCTIONS", "type 4 config 0xc0"),
        ("amd64_fam19h_zen3::RETIRED_INSTRUCTIONS:uk", "type 4 config 0xc0 -h"),
        ("RETIRED_INSTRUCTIONS:c=2:i", "type 4 config 0x28000c0"),
        ("RETIRED_INSTRUCTIONS:c=0x2:i=1:e:u", "type 4 config 0x28400c0 -k -h"),
        ("RETIRED_INSTRUCTIONS:u:k:precise=1", "type 4 config 0xc0 precise 0x1 -h"),
        ("RETIRED_INSTRUCTIONS:upD", "type 4 config 0xc0 precise 0x1 -k -h pinned"),
        ("REQUESTS_TO_L2_GROUP1:RD_BLK_X", "type 4 config 0x4060"),
        ("REQUESTS_TO_L2_GROUP1:rd_blk_x:RD_BLK_L:k", "type 4 config 0xc060 -u -h"),
        // The default unit mask, and none.
        ("RETIRED_SSE_AVX_FLOPS", "type 4 config 0xf03"),
        ("RETIRED_SSE_AVX_FLOPS:DIV_FLOPS", "type 4 config 0x403"),
        ("retired_sse_avx_flops.div_flops:u", "type 4 config 0x403 -k -h"),
        ("amd_zen3::REQUESTS_TO_L2_GROUP1.RD_BLK_X.RD_BLK_L:k", "type 4 config 0xc060 -u -h"),
        ("cpu/RETIRED_INSTRUCTIONS/", "type 4 config 0xc0"),
        ("cpu/RETIRED_INSTRUCTIONS,cmask=2/u", "type 4 config 0x20000c0 -k -h"),
    ] {
        check("zen3", list, &[(list, expected)]);
    }
}

/// Check that what is wrong behind an event's name is pointed at, with what there is.
#[test]
fn wrong_parts_are_pointed_at() {
    for (list, position, expected, near) in [
        (
            "RETIRED_INSTRUCTIONS:x",
            21,
            "a modifier: 'RETIRED_INSTRUCTIONS' has no unit masks (letters of ukhIGHpDe, c=…, e=…, i=…)",
            &[][..],
        ),
        ("RETIRED_INSTRUCTIONS:c=256", 21, "a value of at most 0xff", &[]),
        (
            "RETIRED_INSTRUCTIONS:c=",
            21,
            "a number behind '=' (decimal, or hexadecimal after 0x)",
            &[],
        ),
        ("RETIRED_INSTRUCTIONS:c=1:c=2", 25, "each modifier once", &[]),
        (
            "RETIRED_INSTRUCTIONS:u=0",
            21,
            "a modifier: 'RETIRED_INSTRUCTIONS' has no unit masks (letters of ukhIGHpDe, c=…, e=…, i=…)",
            &[],
        ),
        (
            "REQUESTS_TO_L2_GROUP1:RD_BLK_Y",
            22,
            "a unit mask of 'REQUESTS_TO_L2_GROUP1' (",
            &["RD_BLK_X"],
        ),
        ("REQUESTS_TO_L2_GROUP1:RD_BLK_X:RD_BLK_X", 31, "each unit mask once", &[]),
        ("amd_zen3::RETIRED_INSTRUCTION", 10, "an event of 'amd_zen3'", &["RETIRED_INSTRUCTIONS"]),
        ("amd_zen33::RETIRED_INSTRUCTIONS", 0, "a PMU's description", &["amd_zen3"]),
        ("RETIRED_INSTRUCTION", 0, "an event", &["RETIRED_INSTRUCTIONS"]),
        ("REQUESTS_TO_L2_GROUP:RD_BLK_X", 0, "an event", &["REQUESTS_TO_L2_GROUP1"]),
        ("RETIRED_SSE_AVX_FLOPS:ANY:DIV_FLOPS", 26, "no other unit mask beside 'ANY'", &[]),
    ] {
        let error = machine("zen3").parse(list).expect_err(list);
        assert_eq!(error.position(), position, "{list}");
        assert!(error.expected().starts_with(expected), "{list}: {}", error.expected());
        let ours: Vec<&str> = error.near_matches().iter().map(String::as_str).collect();
        assert!(near.iter().all(|name| ours.contains(name)), "{list}: {ours:?}");
    }
}

/// Check that an event of another machine is refused, and so is one whose PMU the machine does not show.
#[test]
fn other_machines_events_are_refused() {
    let refusal = |machine_name: &str, text: &str| {
        let events = events(machine_name, text);
        events[0].encoding.as_ref().unwrap_err().to_string()
    };
    let elsewhere = refusal("zen3", "amd_zen4::RETIRED_INSTRUCTIONS");
    assert!(elsewhere.starts_with("'amd_zen4' describes another machine: "), "{elsewhere}");
    assert!(
        elsewhere.ends_with("this machine's CPU is AuthenticAMD family 0x19 model 0x1 stepping 1"),
        "{elsewhere}"
    );
    let machines = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines");
    let without_pmu =
        Names::with_roots("/nonexistent", "/nonexistent").proc(machines.join("zen3/proc"));
    let event = &without_pmu.parse("RETIRED_INSTRUCTIONS").unwrap()[0];
    assert_eq!(
        event.encoding.as_ref().unwrap_err().to_string(),
        "this machine has no PMU 'cpu', which 'amd_zen3' describes; in a virtual machine, its host must offer one"
    );
}

/// Check that a name which means each core type is one event on each, on its CPUs, and never one for all.
#[test]
fn core_types_are_separate() {
    check(
        "alder_lake",
        "cycles:u,page-faults",
        &[
            ("cpu_atom/cycles/u", "type 0 config 0xa00000000 -k -h"),
            ("cpu_core/cycles/u", "type 0 config 0x400000000 -k -h"),
            ("page-faults", "type 1 config 0x2"),
        ],
    );
    check(
        "alder_lake",
        "LLC-load-misses",
        &[
            ("cpu_atom/LLC-load-misses/", "type 3 config 0xa00010002"),
            ("cpu_core/LLC-load-misses/", "type 3 config 0x400010002"),
        ],
    );
    check(
        "alder_lake",
        "r1c2:k",
        &[
            ("cpu_atom/config=0x1c2/k", "type 10 config 0x1c2 -u -h"),
            ("cpu_core/config=0x1c2/k", "type 4 config 0x1c2 -u -h"),
        ],
    );
    check(
        "alder_lake",
        "mem-loads",
        &[
            ("cpu_atom/mem-loads/", "type 10 config 0x5d0 config1 0x3"),
            ("cpu_core/mem-loads/", "type 4 config 0x1cd config1 0x3"),
        ],
    );
    check("alder_lake", "slots", &[("slots", "type 4 config 0x400")]);
    check(
        "alder_lake",
        "cpu_atom/cycles/,cpu_core/LLC-loads/u",
        &[
            ("cpu_atom/cycles/", "type 0 config 0xa00000000"),
            ("cpu_core/LLC-loads/u", "type 3 config 0x400000002 -k -h"),
        ],
    );
    check("zen3", "cycles,r76", &[("cycles", "type 0 config 0x0"), ("r76", "type 4 config 0x76")]);
    check(
        "big_little",
        "instructions",
        &[
            ("armv8_cortex_a55/instructions/", "type 0 config 0x900000001"),
            ("armv8_cortex_a76/instructions/", "type 0 config 0x800000001"),
        ],
    );
    let items = events("alder_lake", "cycles,page-faults,{instructions,cs}").into_iter();
    assert_eq!(items.map(|it| it.item).collect::<Vec<_>>(), [0, 0, 1, 2, 3, 2]);
    let cpus: Vec<_> = events("alder_lake", "cycles").into_iter().map(|it| it.cpus).collect();
    assert_eq!(cpus, [Some((8..16).collect::<Vec<u32>>()), Some((0..8).collect())]);
}

/// Check that each event which stands for itself can be typed, and then is the same.
#[test]
fn expanded_names_stand_for_themselves() {
    for machine_name in ["alder_lake", "big_little"] {
        for list in
            ["cycles:u", "r1c2:k", "INST_RETIRED:u", "uncore_imc/data_reads/", "LLC-loads:pp"]
        {
            for event in events(machine_name, list).into_iter().filter(|it| it.encoding.is_ok()) {
                let again = events(machine_name, &event.text);
                assert_eq!(again.len(), 1, "{}", event.text);
                assert_eq!(show(&again[0]), show(&event), "{}", event.text);
            }
        }
    }
}

/// Check that an event of two descriptions of the machine is one event on each PMU, and that only the more
/// special one counts where there are two for a PMU.
#[test]
fn descriptions_of_core_types() {
    let found = events("alder_lake", "INST_RETIRED:ANY_P:u");
    let shown: Vec<(Option<&str>, String)> =
        found.iter().map(|event| (event.pmu.as_deref(), show(event))).collect();
    assert_eq!(
        shown,
        [
            (Some("cpu_atom"), "type 10 config 0xc0 -k -h".to_owned()),
            (Some("cpu_core"), "type 4 config 0xc0 -k -h".to_owned()),
        ]
    );
    // On the A76 its own description, on the A55 nothing but the architectural one, which is for all.
    let found = events("big_little", "L3D_CACHE");
    let pmus: Vec<Option<&str>> = found.iter().map(|event| event.pmu.as_deref()).collect();
    assert_eq!(pmus, [Some("armv8_cortex_a76")]);
}

/// Check that a group of events of several core types is one group on each, with the software events in the
/// first, and that 'D' goes to the first of each.
#[test]
fn groups_are_split_by_core_type() {
    let found = events("alder_lake", "{cycles,page-faults,instructions}:D,task-clock,{cs,faults}");
    let shown: Vec<(&str, Group, bool)> = found
        .iter()
        .map(|event| {
            (event.text.as_str(), event.group, event.encoding.as_ref().is_ok_and(|it| it.pinned))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("cpu_atom/cycles/D", Group::Together(0), true),
            ("page-faults", Group::Together(0), false),
            ("cpu_atom/instructions/", Group::Together(0), false),
            ("cpu_core/cycles/D", Group::Together(1), true),
            ("cpu_core/instructions/", Group::Together(1), false),
            ("task-clock", Group::Free, false),
            ("cs", Group::Together(2), false),
            ("faults", Group::Together(2), false),
        ]
    );
}

/// Check that one name stands for all PMUs of a kind, in the order of their numbers.
#[test]
fn pmus_of_a_kind() {
    for list in ["uncore_imc/data_reads/", "uncore_imc_*/data_reads/", "uncore_*/data_reads/"] {
        check(
            "alder_lake",
            list,
            &[
                ("uncore_imc_0/data_reads/", "type 20 config 0x2"),
                ("uncore_imc_1/data_reads/", "type 21 config 0x2"),
                ("uncore_imc_10/data_reads/", "type 30 config 0x2"),
            ],
        );
    }
    check(
        "alder_lake",
        "uncore_imc_1/event=3/",
        &[("uncore_imc_1/event=3/", "type 21 config 0x3")],
    );
    let refused = &events("alder_lake", "uncore_cha/data_reads/")[0];
    let why = refused.encoding.as_ref().unwrap_err().to_string();
    assert!(why.starts_with("there is no PMU 'uncore_cha' on this machine"), "{why}");
    let events = events("alder_lake", "uncore_imc_0/data_reads/");
    assert_eq!((events[0].scale, &*events[0].unit), (6.103515625e-5, "MiB"));
}

/// Check that a level is refused, since a difference of two levels is no count.
#[test]
fn snapshots_are_refused() {
    check(
        "alder_lake",
        "uncore_imc_0/level/",
        &[(
            "uncore_imc_0/level/",
            "refused: 'level' of PMU 'uncore_imc_0' is a level at one moment (a snapshot), no count; choose another event",
        )],
    );
}

/// Check the register values that perfmon2's programs wrote, and their perf events.
#[test]
fn register_values_are_perf_events() {
    let names = machine("zen3");
    let amd = names.description("amd_zen3").unwrap();
    let event = |pmd: u16, value: u64| {
        amd.encoding_of(pmd, value).map(|it| {
            it.map(|it| {
                (it.pmu_type, it.config, it.privilege.exclude_user, it.privilege.exclude_kernel)
            })
        })
    };
    // The reference's examples: cycles at user level, and at user and kernel level.
    assert_eq!(event(0, 0x51_0076), Ok(Some((4, 0x76, false, true))));
    assert_eq!(event(5, 0x53_0076), Ok(Some((4, 0x76, false, false))));
    assert_eq!(event(0, 0x1_0053_00c0), Ok(Some((4, 0x1_0000_00c0, false, false))));
    // Not enabled, and at no level: the counter stands still.
    assert_eq!(event(0, 0x13_0076), Ok(None));
    assert_eq!(event(0, 0x50_0076), Ok(None));
    let reserved = event(0, 0x53_0076 | 1 << 50).unwrap_err().to_string();
    assert_eq!(
        reserved,
        "bits 0x4000000000000 of register PERF_CTL0 are reserved; leave them as in 0x100000"
    );
    assert_eq!(event(6, 0).unwrap_err().to_string(), "there is no data register 6");

    let core = names.description("perfmon2_intel_core").unwrap();
    let fixed = |value: u64| {
        let events = [16, 17, 18].map(|pmd| core.encoding_of(pmd, value).unwrap());
        events.map(|it| {
            it.map(|it| (it.config, it.privilege.exclude_user, it.privilege.exclude_kernel))
        })
    };
    // FIXED_CTR_CTRL: the first at user level, the second at both, the third off; interrupts on.
    assert_eq!(fixed(0x8ba), [Some((0xc0, false, true)), Some((0x3c, false, false)), None]);
}

/// Check that an explanation says what was asked, in order, and what was found.
#[test]
fn explanations() {
    let steps = |machine_name: &str, text: &str| -> Vec<String> {
        let explanation = machine(machine_name).explain(text);
        let steps = explanation.steps.iter();
        steps.map(|step| format!("{} {} {}", step.source, step.found, step.what)).collect()
    };
    assert_eq!(
        steps("zen3", "cycles"),
        [
            "descriptions false 'cycles' is a generic event, and no description may name one",
            "generic true perf_event_attr type 0, config 0x0",
        ]
    );
    assert_eq!(steps("zen3", "page-faults"), ["descriptions true software (built in)"]);
    assert_eq!(
        steps("zen3", "nothing"),
        [
            "descriptions false no event 'nothing' in amd_zen3",
            "sysfs false no event 'nothing' of cpu",
            "libpfm4 false it knows this machine only",
            "vendor false no directory with event files",
        ]
    );
    let explanation = machine("zen3").explain("REQUESTS_TO_L2_GROUP1:RD_BLK_X:u");
    let explained = explanation.events.unwrap().remove(0);
    let detail = explained.detail.unwrap();
    assert_eq!(detail.fields, [("event".to_owned(), 0x60), ("umask".to_owned(), 0x40)]);
    assert_eq!(detail.registers.len(), 6);
    assert_eq!(detail.registers[0], ("PERF_CTL0".to_owned(), 0x51_4060, "PERF_CTR0".to_owned()));
}

/// Check the names of vendors' files, in each layout: on the PMUs that they are of, by the machine's own format.
#[test]
fn vendors_files() {
    let vendor = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/vendor");
    let shown = |machine_name: &str, path: &str, list: &str| -> Vec<String> {
        let names = machine(machine_name).vendor_events_at(vendor.join(path));
        let events = names.parse(list).unwrap_or_else(|error| panic!("{list}: {error}"));
        events.iter().map(|event| format!("{} {}", event.text, show(event))).collect()
    };
    assert_eq!(
        shown("zen3", "kernel", "l2_request_g1.rd_blk_l:u,LS_NOT_HALTED_CYC"),
        [
            "l2_request_g1.rd_blk_l:u type 4 config 0x8060 -k -h",
            "LS_NOT_HALTED_CYC type 4 config 0x76",
        ]
    );
    assert_eq!(
        shown("alder_lake", "kernel", "mem_load_uops_retired.l2_hit"),
        ["mem_load_uops_retired.l2_hit type 10 config 0x2d1"]
    );
    let missing = machine("zen3").vendor_events_at(vendor.join("kernel")).explain("l2_request_g9");
    assert_eq!(missing.steps.last().unwrap().what, "no event 'l2_request_g9' in their files");
    let problems = machine("zen3").vendor_events_at(vendor.join("kernel")).problems();
    assert!(problems.iter().any(|it| it.contains("damaged.json")), "{problems:?}");
}

/// Check that whatever a catalog lists can be typed as it is listed, with each of its unit masks.
#[test]
fn what_is_listed_can_be_typed() {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (name, vendor, least) in
        [("zen3", "kernel/arch", 270), ("alder_lake", "intel", 450), ("big_little", "arm", 450)]
    {
        let machine = fixtures.join("machines").join(name);
        let names = Names::with_roots(machine.join("sys"), fixtures.join("tracefs"))
            .proc(machine.join("proc"))
            .vendor_events_at(fixtures.join("vendor").join(vendor));
        let mut texts = Vec::new();
        names.catalog(&Wanted::default(), &mut |entry| {
            texts.push(entry.name.to_string());
            texts.extend(entry.also.iter().map(ToString::to_string));
            let masks = entry.masks.iter().map(|(mask, _)| format!("{}:{mask}", entry.name));
            texts.extend(masks);
        });
        let unreadable: Vec<String> = texts
            .iter()
            .filter_map(|text| names.parse(text).err().map(|error| format!("{text}: {error}")))
            .collect();
        assert_eq!(unreadable, [""; 0], "{name}");
        assert!(texts.len() >= least, "{name}: {}", texts.len());
    }
}

/// Check that a vendor's event is found although a description has others of its first word, and that dots may
/// stand in a unit mask's name.
#[test]
fn vendors_names_with_dots() {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let machine = fixtures.join("machines/alder_lake");
    let names =
        || Names::with_roots(machine.join("sys"), "/nonexistent").proc(machine.join("proc"));
    let codes = |names: &Names, text: &str| {
        let events = names.parse(text).unwrap();
        let encodings = events.iter().map(|event| event.encoding.as_ref().unwrap());
        encodings.map(|it| (it.config, it.config1)).collect::<Vec<_>>()
    };
    let described = names();
    let text = "intel_adl_p::OCR:DEMAND_DATA_RD_L3_HIT_SNOOP_HITM";
    let expected = codes(&described, text);
    assert_eq!(expected.len(), 1);
    assert_eq!(codes(&described, "intel_adl_p::OCR.DEMAND_DATA_RD.L3_HIT.SNOOP_HITM"), expected);
    let error = described.parse("OCR.NO_SUCH.THING").unwrap_err();
    assert_eq!(error.position(), 4);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vendors-names-with-dots.json");
    let event = r#"[{"EventName": "OCR.OTHER.THING", "EventCode": "0x2A", "UMask": "0x01",
                    "MSRIndex": "0x1a6", "MSRValue": "0x77", "Unit": "cpu_core"}]"#;
    std::fs::write(&file, event).unwrap();
    let with_file = names().vendor_events_at(file);
    assert_eq!(codes(&with_file, "OCR.OTHER.THING:u"), [(0x12a, 0x77)]);
    assert_eq!(with_file.parse("OCR.NO_SUCH.THING").unwrap_err().position(), 4);
}

/// Check that a file for several CPUs gives each core type its event once, and is listed and complained of once.
#[test]
fn a_file_for_several_cpus_counts_once_each() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("several-cpus.json");
    let text =
        r#"[{"EventName": "MINE", "EventCode": "0x11"}, {"EventName": "BAD", "EventCode": "x"}]"#;
    std::fs::write(&file, text).unwrap();
    let names = machine("big_little").vendor_events_at(file);
    let events = names.parse("MINE:u").unwrap();
    let texts: Vec<&str> = events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(texts, ["armv8_cortex_a55/event=0x11/u", "armv8_cortex_a76/event=0x11/u"]);
    let mut listed = Vec::new();
    let wanted = Wanted { sources: vec![Source::Vendor], ..Wanted::default() };
    names.catalog(&wanted, &mut |entry| listed.push(entry.name.to_string()));
    assert_eq!(listed, ["MINE"]);
    let problems = names.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
}

/// Check that an event of one CPU's description is not counted on another core type, whatever the kernel calls
/// its PMUs.
#[test]
fn one_cpus_events_stay_on_its_pmu() {
    // The kernel's names under ACPI.
    let tree = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("acpi-big-little");
    let _ = std::fs::remove_dir_all(&tree);
    for (number, cpus, midr) in [(0, "0-1", "0x410fd050"), (1, "2-3", "0x413fd0b1")] {
        let pmu = tree.join(format!("bus/event_source/devices/armv8_pmuv3_{number}"));
        std::fs::create_dir_all(&pmu).unwrap();
        std::fs::write(pmu.join("type"), format!("{}", 8 + number)).unwrap();
        std::fs::write(pmu.join("cpus"), cpus).unwrap();
        for cpu in [2 * number, 2 * number + 1] {
            let folder = tree.join(format!("devices/system/cpu/cpu{cpu}/regs/identification"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("midr_el1"), format!("{midr}\n")).unwrap();
        }
    }
    let names = Names::with_roots(&tree, "/nonexistent");
    let events = names.parse("arm_cortex_a76::L3D_CACHE_ALLOCATE").unwrap();
    let pmus: Vec<_> = events.iter().map(|event| event.pmu.as_deref()).collect();
    assert_eq!(pmus, [Some("armv8_pmuv3_1")]);
}

/// Check which events count in threads: those of core types, though they name CPUs, and those of no PMU in sysfs.
#[test]
fn what_is_beside_the_cpus_counts_in_no_thread() {
    let list = "cpu_core/cpu-cycles/,uncore_imc_0/data_reads/,INST_RETIRED:ANY,page-faults,r11";
    let shown: Vec<_> = events("alder_lake", list)
        .into_iter()
        .map(|event| (event.pmu.unwrap_or_default(), event.counts_in_threads))
        .collect();
    let beside: Vec<&str> =
        shown.iter().filter(|(_, threads)| !threads).map(|(pmu, _)| pmu.as_str()).collect();
    assert_eq!(beside, ["uncore_imc_0"], "{shown:?}");
    assert!(shown.len() > 5, "{shown:?}");
}
