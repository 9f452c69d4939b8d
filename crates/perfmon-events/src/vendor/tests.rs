//! Known answers of the fixtures, in each layout; damaged files; files that change at random.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::{VendorEvent, VendorEvents};
use crate::machine::CpuId;

fn fixtures(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/vendor").join(path)
}

fn intel(model: u32, stepping: u32) -> CpuId {
    CpuId::X86 { vendor: "GenuineIntel".to_owned(), family: 6, model, stepping }
}

fn amd(family: u32, model: u32) -> CpuId {
    CpuId::X86 { vendor: "AuthenticAMD".to_owned(), family, model, stepping: 0 }
}

const N1: CpuId = CpuId::Arm64 { midr: 0x413f_d0c1 };
const BULLET: CpuId =
    CpuId::Riscv { vendor: 0x489, arch: 0x8000_0000_0000_0007, implementation: 0x20 };

fn load(path: &str, cpu: &CpuId) -> VendorEvents {
    VendorEvents::load(&fixtures(path), cpu).unwrap_or_else(|refusal| panic!("{path}: {refusal}"))
}

impl VendorEvents {
    /// The event called `name`; of several, that of the core PMU.
    fn find(&self, name: &str) -> Option<&VendorEvent> {
        self.find_all(name).first()
    }
}

/// An event as text: `pmu/terms/`, then what else is there.
fn show(event: &VendorEvent) -> String {
    let terms: Vec<String> =
        event.terms.iter().map(|(term, value)| format!("{term}={value:#x}")).collect();
    let mut text = format!("{}/{}/", event.pmu, terms.join(","));
    for (name, value) in [("unit", &event.unit), ("errata", &event.errata)] {
        text.extend(value.iter().map(|value| format!(" {name} {value}")));
    }
    text.extend(event.scale.map(|scale| format!(" scale {scale}")));
    text.push_str(if event.deprecated { " deprecated" } else { "" });
    text
}

/// Checks each event, and that there are no others and no problems.
fn check(events: &VendorEvents, expected: &[(&str, &str)]) {
    let found: Vec<(String, String)> =
        events.iter().map(|event| (event.name.clone(), show(event))).collect();
    let expected: Vec<(String, String)> =
        expected.iter().map(|(name, shown)| ((*name).to_owned(), (*shown).to_owned())).collect();
    assert_eq!(found, expected);
}

fn refused(path: &str, cpu: &CpuId) -> String {
    VendorEvents::load(&fixtures(path), cpu)
        .map(|_| ())
        .unwrap_err()
        .why()
        .replace(&fixtures("").display().to_string(), "")
}

fn problems(events: &VendorEvents) -> Vec<String> {
    let root = fixtures("").display().to_string();
    events.problems().iter().map(|problem| problem.replace(&root, "")).collect()
}

/// Check that Intel's files give the terms of the kernel's formats: fixed counters, masks, further registers, filters.
#[test]
fn intel_events_have_these_terms() {
    let events = load("intel", &intel(0x55, 4));
    check(
        &events,
        &[
            ("BR_INST_RETIRED.ALL_BRANCHES", "cpu/event=0xc4/ errata SKL091"),
            ("CPU_CLK_UNHALTED.REF_TSC", "cpu/event=0x0,umask=0x3/"),
            ("CPU_CLK_UNHALTED.THREAD", "cpu/event=0x3c/"),
            ("CPU_CLK_UNHALTED.THREAD_ANY", "cpu/event=0x3c,any=0x1/"),
            ("CYCLE_ACTIVITY.STALLS_TOTAL", "cpu/event=0xa3,umask=0x4,cmask=0x4/"),
            ("FRONTEND_RETIRED.DSB_MISS", "cpu/event=0xc6,umask=0x1,frontend=0x11/"),
            ("INST_RETIRED.ANY", "cpu/event=0xc0/"),
            ("MACHINE_CLEARS.COUNT", "cpu/event=0xc3,umask=0x1,cmask=0x1,edge=0x1/"),
            ("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_8", "cpu/event=0xcd,umask=0x1,ldlat=0x8/"),
            (
                "OFFCORE_RESPONSE.DEMAND_DATA_RD.ANY_RESPONSE",
                "cpu/event=0xb7,umask=0x1,offcore_rsp=0x10001/",
            ),
            ("UNC_C_LLC_LOOKUP.DATA_READ", "uncore_cha/event=0x34,umask=0x3/ deprecated"),
            ("UNC_CHA_REQUESTS.READS", "uncore_cha/event=0x50,umask=0x3/"),
            (
                "UNC_IIO_DATA_REQ_OF_CPU.MEM_WRITE.PART0",
                "uncore_iio/event=0x83,umask=0x1,ch_mask=0x1,fc_mask=0x7/",
            ),
            ("UNC_M_CLOCKTICKS_F", "uncore_imc/event=0xff/"),
            ("UNC_P_POWER_STATE_OCCUPANCY.CORES_C0", "uncore_pcu/event=0x80,occ_sel=0x1/"),
            ("UNC_UPI_TxL_HDR_MATCH.LOC", "uncore_upi/event=0x4,umask=0x200/"),
            ("UOPS_RETIRED.STALL_CYCLES", "cpu/event=0xc2,umask=0x2,cmask=0x1,inv=0x1/"),
        ],
    );
    let address = "intel/SKX/events/skylakex_uncore.json: entry 7 'UNC_H_ADDR_MATCH': it needs the filter \
                   'HA_AddrMatch0[31:6]', for which there is no term";
    assert_eq!(problems(&events), [address]);
    let lookup = events.find("unc_c_llc_lookup.data_read").unwrap();
    assert_eq!(lookup.about, "Look-ups for data reads. (without its filter CHAFilter0[26:17])");
    assert_eq!(lookup.counters.as_deref(), Some("0,1,2,3"));
    assert_eq!(lookup.file, fixtures("intel/SKX/events/skylakex_uncore.json"));
}

/// Check that the map gives each CPU its own files: by stepping, by kind of core, an older form.
#[test]
fn intel_map_selects_by_cpu() {
    let cascade_lake = load("intel", &intel(0x55, 7));
    let ports = "cpu/event=0xa6,umask=0x1/";
    check(
        &cascade_lake,
        &[("EXE_ACTIVITY.EXE_BOUND_0_PORTS", ports), ("INST_RETIRED.ANY", "cpu/event=0xc0/")],
    );
    assert_eq!(problems(&cascade_lake), [""; 0]);

    let broadwell = load("intel", &intel(0x4f, 1));
    check(
        &broadwell,
        &[
            ("UNC_C_LLC_LOOKUP.DATA_READ", "uncore_cbox/event=0x34,umask=0x3/"),
            ("UNC_Q_RxL_FLITS_G1.DRS", "uncore_qpi/event=0x102,umask=0x18/"),
        ],
    );

    let hybrid = load("intel", &intel(0x97, 2));
    let snoop = "cpu_core/event=0x2a,umask=0x1,offcore_rsp=0x10003c0001/";
    check(
        &hybrid,
        &[
            ("INST_RETIRED.ANY", "cpu_core/event=0xc0/"),
            ("INST_RETIRED.ANY", "cpu_atom/event=0xc0/"),
            ("LD_BLOCKS.4K_ALIAS", "cpu_atom/event=0x3,umask=0x4/ deprecated"),
            ("MEM_LOAD_UOPS_RETIRED.L2_HIT", "cpu_atom/event=0xd1,umask=0x2/"),
            ("OCR.DEMAND_DATA_RD.L3_HIT.SNOOP_HITM", snoop),
            ("UNC_ARB_TRK_REQUESTS.ALL", "uncore_arb/event=0x81,umask=0x1/"),
            ("UNC_CLOCK.SOCKET", "uncore_clock/event=0xff/"),
            ("UNC_M_CAS_COUNT_RD", "uncore_imc/event=0x22/"),
            ("UNC_MC0_RDCAS_COUNT_FREERUN", "uncore_imc_free_running_0/event=0xff,umask=0x20/"),
            ("UNC_MC1_WRCAS_COUNT_FREERUN", "uncore_imc_free_running_1/event=0xff,umask=0x30/"),
        ],
    );
    assert_eq!(hybrid.find("inst_retired.any").unwrap().pmu, "cpu_core");
    assert_eq!(hybrid.find_all("Inst_Retired.Any").len(), 2);
    assert!(
        hybrid.find("INST_RETIRED").is_none()
            && hybrid.find("").is_none()
            && hybrid.find("zzz").is_none()
    );

    let unknown = "'intel/mapfile.csv' names no files for this CPU (GenuineIntel-6-FF-0)";
    assert_eq!(refused("intel", &intel(0xff, 0)), unknown);
    let arm = "'intel/mapfile.csv' names no files for this CPU (0x00000000413fd0c1)";
    assert_eq!(refused("intel", &N1), arm);
    assert!(refused("intel", &CpuId::Unknown).ends_with("names no files for this CPU (unknown)"));
}

/// Check that wrong entries, a file that ends too early and one that is missing are told of, and the rest is used.
#[test]
fn what_is_damaged_is_told_and_the_rest_used() {
    let events = load("intel", &intel(0x8f, 6));
    check(
        &events,
        &[
            ("INST_RETIRED.ANY", "cpu/event=0xc0/"),
            ("TOPDOWN.SLOTS", "cpu/event=0x0,umask=0x4/"),
            ("UNC_CHA_CLOCKTICKS", "uncore_cha/event=0x1/"),
            ("UOPS_ISSUED.ANY", "cpu/event=0xae,umask=0x1/"),
        ],
    );
    let core = "intel/SPR/events/sapphirerapids_core.json";
    let expected = [
        "intel/mapfile.csv: there is no 'SPR/events/sapphirerapids_uncore_experimental.json'".to_owned(),
        format!("{core}: entry 3 'NO_SUCH_REGISTER': it needs the register 0x999, for which there is no term"),
        format!("{core}: entry 4 'NO_CODE': it has no EventCode"),
        format!("{core}: entry 5: it has no EventName"),
        format!("{core}: entry 6 'TOO_GREAT': UMask is '0x1ffffffffffffffff', not a number of at most 64 bits"),
        format!("{core}: entry 7 'A_LIST': EventCode is a list, not a number of at most 64 bits"),
        format!(
            "{core}: entry 8 'A_FRACTION': UMask is a number of more than 64 bits, or a fraction, \
             not a number of at most 64 bits"
        ),
        format!("{core}: entry 9 'bad name': its name can't be part of an event string"),
        format!("{core}: entry 10: it is a text, not an object"),
        "intel/SPR/events/sapphirerapids_uncore.json: it ends after entry 1: EOF while parsing a string at \
         line 31 column 20"
            .to_owned(),
        format!("{core}: 'TOPDOWN.SLOTS' is another event in {core}, which counts"),
    ];
    assert_eq!(problems(&events), expected);
}

/// Check that Arm's repository gives the file that is named as the CPU is, or that says it is for the CPU.
#[test]
fn arm_events_have_these_codes() {
    let expected = [
        ("BR_RETIRED", "cpu/event=0x21/"),
        ("CPU_CYCLES", "cpu/event=0x11/"),
        ("INST_RETIRED", "cpu/event=0x8/"),
        ("L1D_CACHE_RD", "cpu/event=0x40/"),
        ("L1D_CACHE_REFILL", "cpu/event=0x3/"),
        ("SAMPLE_POP", "cpu/event=0x4000/"),
        ("SW_INCR", "cpu/event=0x0/"),
    ];
    for path in ["arm", "arm/pmu", "arm/pmu/neoverse-n1.json"] {
        let events = load(path, &N1);
        check(&events, &expected);
        assert_eq!(problems(&events), [""; 0]);
        assert_eq!(events.find("cpu_cycles").unwrap().about, "Cycles");
    }
    let a72 = load("arm", &CpuId::Arm64 { midr: 0x410f_d083 });
    check(&a72, &[("CPU_CYCLES", "cpu/event=0x11/")]);
    let negative = "arm/pmu/cortex-a72.json: entry 2 'NEGATIVE': EventCode is a negative number, not a number of at \
                    most 64 bits";
    assert_eq!(problems(&a72), [negative]);
    let rainier = load("arm", &CpuId::Arm64 { midr: 0x3f0f_4120 });
    assert_eq!(rainier.find("CPU_CYCLES").unwrap().about, "Cycles of another maker");
    let v3 = CpuId::Arm64 { midr: 0x410f_d840 };
    assert_eq!(refused("arm", &v3), "'arm' has no file for this CPU (0x00000000410fd840)");
    assert_eq!(refused("arm", &intel(6, 0)), "'arm' has no file for this CPU (GenuineIntel-6-6-0)");
}

/// Check the kernel's x86 files: patterns of CPUs, units, scales, filters; formulas are no events.
#[test]
fn kernel_x86_events_have_these_terms() {
    let snoop = "cpu_core/event=0x2a,umask=0x1,offcore_rsp=0x10003c0001/";
    for path in ["kernel", "kernel/arch", "kernel/arch/x86", "kernel/arch/x86/alderlake"] {
        let events = load(path, &intel(0x9a, 3));
        check(
            &events,
            &[
                ("INST_RETIRED.ANY", "cpu_core/event=0xc0/"),
                ("INST_RETIRED.ANY", "cpu_atom/event=0xc0/"),
                ("MEM_LOAD_UOPS_RETIRED.L2_HIT", "cpu_atom/event=0xd1,umask=0x2/"),
                ("OCR.DEMAND_DATA_RD.L3_HIT.SNOOP_HITM", snoop),
                ("UNC_M_CAS_COUNT_RD", "uncore_imc/event=0x22/ unit Bytes scale 64"),
                ("UNC_MC0_RDCAS_COUNT_FREERUN", "uncore_imc_free_running_0/event=0xff,umask=0x20/"),
            ],
        );
        assert_eq!(problems(&events), [""; 0]);
    }
    check(
        &load("kernel", &intel(0x55, 4)),
        &[
            (
                "LLC_MISSES.PCIE_WRITE",
                "uncore_iio/event=0x83,umask=0x1,fc_mask=0x7,ch_mask=0x1f/ unit Bytes scale 4",
            ),
            (
                "LLC_MISSES.UNCACHEABLE",
                "uncore_cha/event=0x35,umask=0x21,config1=0x40e33/ unit Bytes scale 64",
            ),
            ("UNC_CHA_TOR_INSERTS.IA", "uncore_cha/event=0x35,umask=0xc001ff01/"),
        ],
    );
    let zen3 = load("kernel", &amd(25, 0x21));
    check(
        &zen3,
        &[
            ("before", "cpu/event=0x1/"),
            ("l2_request_g1.rd_blk_l", "cpu/event=0x60,umask=0x80/"),
            ("l3_lookup_state.all_l3_req_typs", "amd_l3/event=0x4,umask=0xff/"),
            ("ls_not_halted_cyc", "cpu/event=0x76/"),
            (
                "made_up_l3_slices",
                "amd_l3/event=0x90,enallcores=0x1,enallslices=0x1,sliceid=0x3,threadmask=0x3/",
            ),
            ("remote_outbound_data_controller_0", "amd_df/event=0x7c7,umask=0x2/"),
        ],
    );
    let damaged = "kernel/arch/x86/amdzen3/damaged.json: it ends after entry 1: EOF while parsing a value at line 4 \
                   column 0";
    assert_eq!(problems(&zen3), [damaged]);
    let zen4 = refused("kernel", &amd(25, 0x61));
    assert!(
        zen4.contains("(AuthenticAMD-25-61-0)") && zen4.ends_with("there is no 'amdzen4'"),
        "{zen4}"
    );
}

/// Check that references to events of the architecture are resolved, with the CPU's own words before the architecture's.
#[test]
fn architecture_events_are_resolved() {
    for path in ["kernel", "kernel/arch/arm64", "kernel/arch/arm64/arm/neoverse-n1"] {
        let events = load(path, &N1);
        check(
            &events,
            &[
                ("CPU_CYCLES", "cpu/event=0x11/"),
                ("INST_RETIRED", "cpu/event=0x8/"),
                ("L1D_CACHE_RD", "cpu/event=0x40/ errata 1234567"),
                ("MADE_UP", "cpu/event=0x200/"),
            ],
        );
        assert_eq!(events.find("CPU_CYCLES").unwrap().about, "Cycles");
        assert_eq!(
            events.find("L1D_CACHE_RD").unwrap().about,
            "Reads of the first data cache of this core"
        );
        let general = "kernel/arch/arm64/arm/neoverse-n1/general.json";
        assert_eq!(
            problems(&events),
            [format!("{general}: entry 3 'NOT_THERE': the architecture has no event 'NOT_THERE'")]
        );
        assert_eq!(events.find("made_up").unwrap().file, fixtures(general));
    }
    let one_file = load("kernel/arch/arm64/arm/neoverse-n1/metrics.json", &CpuId::Unknown);
    check(&one_file, &[("INST_RETIRED", "cpu/event=0x8/")]);
    check(
        &load("kernel", &CpuId::Arm64 { midr: 0x481f_d010 }),
        &[
            ("flux_rd", "hisi_sccl,ddrc/config=0x1/"),
            ("hnf_cache_miss", "arm_cmn/eventid=0x5,type=0x5/ unit MB/sec scale 0.00006103515625"),
        ],
    );
    check(
        &load("kernel", &BULLET),
        &[
            ("DATA_TLB_MISS", "cpu/event=0x1002/"),
            ("FW_MISALIGNED_LOAD", "cpu/config=0x8000000000000000/"),
        ],
    );
}

/// Check that what is no file of events is refused with what it is.
#[test]
fn other_paths_are_refused() {
    let groups = "kernel/arch/x86/alderlake/metricgroups.json";
    let expected =
        format!("there are no events in '{groups}': {groups}: it holds no list of events");
    assert_eq!(refused(groups, &CpuId::Unknown), expected);
    assert_eq!(refused("nowhere", &N1), "cannot read 'nowhere': there is no such file");
    let pipe = VendorEvents::load(Path::new("/dev/null"), &N1).map(|_| ()).unwrap_err();
    assert_eq!(pipe.why(), "'/dev/null' is neither a file nor a folder");
}

/// A folder that goes when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("perfmon-vendor-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// What reading a file with these bytes gives.
    fn read(&self, bytes: &[u8]) -> Result<VendorEvents, String> {
        let file = self.0.join("events.json");
        fs::write(&file, bytes).unwrap();
        VendorEvents::load(&file, &N1).map_err(|refusal| refusal.to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Check that JSON of hostile shape ends in words, soon.
#[test]
fn hostile_files_end_in_words() {
    let scratch = Scratch::new();
    let refused = |bytes: &[u8]| scratch.read(bytes).map(|_| ()).unwrap_err();
    for deep in ["[", "{\"a\":", "[{\"EventName\":", "{\"Events\":["] {
        assert!(
            refused(deep.repeat(200_000).as_bytes()).contains("there are no events in"),
            "{deep}"
        );
    }
    assert!(refused(b"").contains("EOF"));
    assert!(refused(b"[{\"EventName\":\"\xff\",\"EventCode\":\"1\"}]").contains("unicode"));
    assert!(refused(b"{\"Events\":7}").contains("expected a list of events"));
    assert!(
        refused(b"[{\"EventName\":\"a\\u001bb\",\"EventCode\":\"1\"}]")
            .contains("'a b': its name can't be")
    );
    assert!(refused(b"[{\"EventName\":\"a\",\"EventCode\":\"+1\"}]").contains("EventCode is '+1'"));
    assert!(
        refused(b"[{\"EventName\":\"a\",\"EventCode\":\"1\",\"EventCode\":\"2\"}]")
            .contains("it has 'EventCode' twice")
    );
    assert!(
        refused(b"[{\"EventName\":\"a\",\"ScaleUnit\":\"Bytes\"}]")
            .contains("does not begin with a number")
    );
    assert!(
        refused(b"[{\"EventName\":\"a\",\"ScaleUnit\":\"1e999B\"}]")
            .contains("does not begin with a number")
    );
    for unit in ["u[", "a b", "a/b", "cpu_*", "i[\",\"CounterType\":\"FREERUN"] {
        let entry = format!("[{{\"EventName\":\"a\",\"EventCode\":\"1\",\"Unit\":\"{unit}\"}}]");
        assert!(refused(entry.as_bytes()).contains("its Unit is no name of a PMU"), "{unit}");
    }
    let marked = scratch
        .read(b"\xef\xbb\xbf[{\"EventName\":\"a\",\"EventCode\":1,\"Deprecated\":true}]")
        .unwrap();
    assert_eq!(show(marked.find("A").unwrap()), "cpu/event=0x1/ deprecated");
    let many = "0,".repeat(10_000);
    let many = scratch
        .read(format!("[{many}{{\"EventName\":\"a\",\"EventCode\":\"2\"}}]").as_bytes())
        .unwrap();
    assert_eq!(many.problems().len(), 257);
    assert_eq!(many.problems()[256], "9744 further problems are not shown");
}

/// Check that too many events are cut, with a word.
#[test]
fn too_many_events_are_cut() {
    let entries: Vec<String> = (0..65_540)
        .map(|code| format!("{{\"EventName\":\"E{code}\",\"EventCode\":{code}}}"))
        .collect();
    let events = Scratch::new().read(format!("[{}]", entries.join(",")).as_bytes()).unwrap();
    assert_eq!(events.iter().count(), 65_536);
    assert!(
        events.problems()[0].contains("it ends after entry 65537: more than 65536 events"),
        "{:?}",
        events.problems()
    );
}

proptest! {
    /// Check that fixtures with changed, lost and repeated bytes never panic, and what is read can be found again.
    #[test]
    fn changed_files_do_not_panic(
        fixture in prop::sample::select(vec![
            "intel/SKX/events/skylakex_core.json", "intel/SKX/events/skylakex_uncore.json",
            "intel/ADL/events/alderlake_uncore.json", "arm/pmu/neoverse-n1.json",
            "kernel/arch/arm64/arm/neoverse-n1/general.json", "kernel/arch/x86/skylakex/uncore.json",
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..12),
    ) {
        let mut bytes = fs::read(fixtures(fixture)).unwrap();
        for (place, kind, byte) in changes {
            let place = place.index(bytes.len());
            match kind {
                0 => bytes[place] = byte,
                1 => { bytes.remove(place); }
                2 => bytes.insert(place, b"[]{}\",:0"[usize::from(byte % 8)]),
                _ => {
                    let part: Vec<u8> = bytes[place..].iter().take(usize::from(byte)).copied().collect();
                    bytes.splice(place..place, part);
                }
            }
        }
        if let Ok(events) = Scratch::new().read(&bytes) {
            for event in events.iter() {
                prop_assert!(events.find_all(&event.name).contains(event));
                prop_assert!(!event.terms.is_empty());
                prop_assert!(!event.about.chars().any(char::is_control));
            }
        }
    }

    /// Check that maps with changed bytes never panic.
    #[test]
    fn changed_maps_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cpu in prop::sample::select(vec![intel(0x97, 2), amd(25, 0x21), N1, BULLET]),
    ) {
        for map in ["intel", "kernel/arch/x86", "kernel/arch/arm64", "kernel/arch/riscv"] {
            let mut bytes = fs::read(fixtures(map).join("mapfile.csv")).unwrap();
            for (place, byte) in &changes {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            let text = String::from_utf8_lossy(&bytes);
            super::map::rows(&text, &cpu, Path::new("map"), &mut super::problems::Problems::default());
        }
    }
}
