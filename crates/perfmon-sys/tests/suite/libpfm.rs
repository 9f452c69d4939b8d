use std::ops::ControlFlow;

use perfmon_sys::{
    Libpfm, LibpfmAttribute, LibpfmAttributeKind, LibpfmError, LibpfmEvent, LibpfmPmu,
};

use crate::helper::{skipped, with_variable};

/// libpfm4, or word that test `name` did not run.
fn open_for(name: &str) -> Option<Libpfm> {
    Libpfm::open().map_err(|error| skipped(name, error)).ok()
}

/// Whether the open library is release 4.13: it says its interface's version only.
fn is_4_13() -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains("/libpfm.so.4.13.")
}

fn pmu(libpfm: &Libpfm, name: &str) -> LibpfmPmu {
    libpfm.pmus().into_iter().find(|pmu| pmu.name == name).unwrap()
}

/// An event of a PMU, copied.
struct Entry {
    name: String,
    description: String,
    equivalent: Option<String>,
    attributes: Vec<LibpfmAttribute>,
}

fn entries(libpfm: &Libpfm, pmu: &LibpfmPmu) -> Vec<Entry> {
    let mut entries = Vec::new();
    libpfm.events(pmu, &mut |entry| {
        entries.push(Entry {
            name: entry.name.to_owned(),
            description: entry.description.to_owned(),
            equivalent: entry.equivalent.map(str::to_owned),
            attributes: entry.attributes.to_vec(),
        });
        ControlFlow::Continue(())
    });
    entries
}

/// Check that an event of the kernel becomes its type and number, and counts user mode and the kernel.
#[test]
fn software_event_is_encoded() {
    let Some(libpfm) = open_for("software_event_is_encoded") else { return };
    let event = libpfm.encode("perf::PERF_COUNT_SW_PAGE_FAULTS").unwrap();
    let LibpfmEvent { pmu_type, config, exclude_user, exclude_kernel, exclude_host, .. } = event;
    assert_eq!((pmu_type, config), (1, 2));
    assert!(!exclude_user && !exclude_kernel && !exclude_host);
    assert_eq!((event.config1, event.config2, event.config3), (0, 0, 0));
    assert_eq!((event.sample_period, event.precise_ip, event.cpu), (0, 0, None));
    assert!(!event.is_frequency && !event.pinned && !event.exclusive);
    assert!(event.full_name.starts_with("perf::PERF_COUNT_SW_PAGE_FAULTS:u=1:k=1"));
}

/// Check that each modifier reaches its field, and no other one.
#[test]
fn modifiers_reach_their_fields() {
    let Some(libpfm) = open_for("modifiers_reach_their_fields") else { return };
    let plain = libpfm.encode("perf::page-faults").unwrap();
    let with = |modifiers: &str| {
        let event = libpfm.encode(&format!("perf::page-faults{modifiers}")).unwrap();
        LibpfmEvent { full_name: plain.full_name.clone(), ..event }
    };
    assert_eq!(with(":u"), LibpfmEvent { exclude_kernel: true, ..plain.clone() });
    assert_eq!(with(":k"), LibpfmEvent { exclude_user: true, ..plain.clone() });
    assert_eq!(with(":excl"), LibpfmEvent { exclusive: true, ..plain.clone() });
    assert_eq!(with(":pinned"), LibpfmEvent { pinned: true, ..plain.clone() });
    assert_eq!(with(":cpu=3"), LibpfmEvent { cpu: Some(3), ..plain.clone() });
    assert_eq!(with(":period=77"), LibpfmEvent { sample_period: 77, ..plain.clone() });
    let frequency = LibpfmEvent { sample_period: 77, is_frequency: true, ..plain.clone() };
    assert_eq!(with(":freq=77"), frequency);
    let guests = LibpfmEvent { exclude_guest: false, exclude_host: true, ..plain.clone() };
    assert_eq!(with(":mg"), guests);
    let precise = libpfm.encode("perf::cycles:precise=2").unwrap();
    assert_eq!((precise.pmu_type, precise.config, precise.precise_ip), (0, 0, 2));
}

/// Check that what libpfm4 refuses comes with its number and words.
#[test]
fn refusals_are_libpfm4s_own() {
    let Some(libpfm) = open_for("refusals_are_libpfm4s_own") else { return };
    let unknown = libpfm.encode("perf::no-such-event").unwrap_err();
    assert!(unknown.is_not_found());
    assert_eq!(unknown.to_string(), "event not found (libpfm4's error -4)");
    let attribute = libpfm.encode("perf::page-faults:no-such-mask").unwrap_err();
    assert!(!attribute.is_not_found());
    assert_eq!(attribute.to_string(), "invalid event attribute (libpfm4's error -8)");
    assert!(libpfm.encode("").unwrap_err().is_not_found());
}

fn reason(libpfm: &Libpfm, event: &str) -> &'static str {
    match libpfm.encode(event).unwrap_err() {
        LibpfmError::Text(reason) => reason,
        error => panic!("libpfm4 got it: {error}"),
    }
}

/// Check that texts which libpfm4 would misread are not given to it, and that the longest ones are.
#[test]
fn long_and_cut_texts_are_refused() {
    let Some(libpfm) = open_for("long_and_cut_texts_are_refused") else { return };
    assert_eq!(reason(&libpfm, "perf::page-faults\0:u"), "the event holds a NUL");
    assert_eq!(reason(&libpfm, &"x".repeat(4097)), "the event has more than 4096 bytes");
    assert!(libpfm.encode(&"x".repeat(4096)).unwrap_err().is_not_found());
    assert!(libpfm.encode(&format!("perf::{}", "ä".repeat(2045))).unwrap_err().is_not_found());
    assert!(libpfm.encode(&format!("perf::{}", ":".repeat(4090))).is_err());
    assert!(libpfm.encode(&":".repeat(4096)).is_err());
    assert!(libpfm.encode(&format!("no-such{}", ":u".repeat(99))).unwrap_err().is_not_found());
}

/// Check that attributes which would run over libpfm4's array of 64 are not given to it (from the 65th on, 4.13
/// ends by SIGSEGV), and that as many as are sure to fit are.
#[test]
fn too_many_attributes_are_refused() {
    let Some(libpfm) = open_for("too_many_attributes_are_refused") else { return };
    let with =
        |count: usize| format!("perf::PERF_COUNT_HW_CACHE_L1D{}:MISS", ":READ".repeat(count));
    const TOO_MANY: &str = "the event has more attributes than libpfm4 can hold";
    for count in [56, 65, 800] {
        assert_eq!(reason(&libpfm, &with(count)), TOO_MANY);
        assert_eq!(reason(&libpfm, &with(count).replace(':', ".").replace("perf..", "")), TOO_MANY);
    }
    // libpfm4 4.13 drops every second repetition of a mask only, so it refuses this, unharmed.
    assert!(matches!(libpfm.encode(&with(55)), Err(LibpfmError::Library { code: -6, .. })));
    let most = libpfm.encode(&format!("perf::page-faults{}:pinned", ":u".repeat(55))).unwrap();
    assert_eq!(most, libpfm.encode("perf::page-faults:u:pinned").unwrap());
}

/// Check what `encode` relies on when it counts attributes: an event brings few by itself or by default, and an
/// alias stands for few, by each table of the installed libpfm4.
#[test]
fn attributes_fit() {
    let Some(libpfm) = open_for("attributes_fit") else { return };
    let parts = |text: &str| text.split([':', '.']).count();
    let (mut longest_max, mut beside_max) = (0, 0);
    for pmu in libpfm.pmus() {
        let events = entries(&libpfm, &pmu);
        // An alias of an event brings attributes, and then has the defaults of that event.
        let aliases = events.iter().filter_map(|event| event.equivalent.as_deref());
        let own = aliases.map(|text| parts(text) - 1).max().unwrap_or(0);
        for event in &events {
            let aliases = event.attributes.iter().filter_map(|it| it.equivalent.as_deref());
            longest_max = longest_max.max(aliases.map(parts).max().unwrap_or(1));
            let defaults = event.attributes.iter().filter(|it| it.is_default).count();
            beside_max = beside_max.max(own + defaults);
        }
    }
    assert!(3 * longest_max <= 56, "{longest_max}");
    assert!(beside_max <= 8, "{beside_max}");
    if is_4_13() && cfg!(target_arch = "x86_64") {
        assert_eq!((longest_max, beside_max), (16, 5));
    }
}

/// Check that libpfm4 encodes for processors that this machine does not have when it is told to, and only then.
#[test]
fn absent_pmus_are_encoded_when_asked() {
    const TEST: &str = "libpfm::absent_pmus_are_encoded_when_asked";
    let Some(libpfm) = open_for("absent_pmus_are_encoded_when_asked") else { return };
    let known = libpfm.pmus();
    let Some(zen3) = known.iter().find(|pmu| pmu.name == "amd64_fam19h_zen3") else {
        return skipped(TEST, "this libpfm4 has no tables of AMD's processors");
    };
    let event = "amd64_fam19h_zen3::RETIRED_INSTRUCTIONS";
    if std::env::var_os("LIBPFM_ENCODE_INACTIVE").is_none() && !zen3.present {
        assert!(libpfm.encode(event).unwrap_err().is_not_found());
    }
    with_variable(TEST, "LIBPFM_ENCODE_INACTIVE", "1", || {
        let LibpfmEvent { pmu_type, config, exclude_kernel, .. } = libpfm.encode(event).unwrap();
        // The privilege levels are perf's, not bits of the code.
        assert_eq!((pmu_type, config, exclude_kernel), (4, 0xc0, false));
        let user = libpfm.encode(&format!("{event}:u:c=2:i")).unwrap();
        assert_eq!((user.config, user.exclude_kernel), (0xc0 | 1 << 23 | 2 << 24, true));
        // A mask that is an alias of several, with a second register.
        let offcore = libpfm.encode("skl::OFFCORE_RESPONSE_0:ANY_REQUEST:L3_HIT").unwrap();
        assert_eq!((offcore.pmu_type, offcore.config & 0xffff), (4, 0x01b7));
        assert!(offcore.config1 != 0 && offcore.full_name.contains(":DMND_DATA_RD:DMND_RFO:"));
        // The name spelled out has 19 attributes, which are few enough; 4.13 takes `mg=0` for `mg`.
        let again = libpfm.encode(&offcore.full_name).unwrap();
        assert_eq!((again.config, again.config1), (offcore.config, offcore.config1));
        // Aliases count as what they stand for: 16 each.
        let aliases = format!("slm::OFFCORE_RESPONSE_0{}", ":ANY_REQUEST".repeat(4));
        let too_many = "the event has more attributes than libpfm4 can hold";
        assert_eq!(reason(&libpfm, &aliases), too_many);
    });
}

/// Check the listing of the kernel's own events: as many as said, with masks and modifiers, until stopped.
#[test]
fn events_of_a_pmu_are_listed() {
    let Some(libpfm) = open_for("events_of_a_pmu_are_listed") else { return };
    let perf = pmu(&libpfm, "perf");
    assert!(perf.present);
    assert_eq!(perf.description, "perf_events generic PMU");
    let events = entries(&libpfm, &perf);
    assert_eq!(events.len(), usize::try_from(perf.event_count).unwrap());
    let find = |name: &str| events.iter().find(|event| event.name == name).unwrap();
    assert_eq!(find("PAGE-FAULTS").equivalent.as_deref(), Some("PERF_COUNT_SW_PAGE_FAULTS"));
    let l1d = find("PERF_COUNT_HW_CACHE_L1D");
    assert_eq!((l1d.description.as_str(), &l1d.equivalent), ("L1 data cache", &None));
    let attribute = |name: &str| l1d.attributes.iter().find(|it| it.name == name).unwrap().clone();
    assert_eq!(attribute("READ").kind, LibpfmAttributeKind::Mask);
    assert_eq!(attribute("u").kind, LibpfmAttributeKind::Flag);
    assert_eq!(attribute("u").description, "monitor at user level");
    assert_eq!(attribute("period").kind, LibpfmAttributeKind::Number);
    if is_4_13() {
        // The others depend on the machine: tracepoints, and Intel's top-down events.
        let is_fixed = |event: &&Entry| {
            let varies = event.name == "slots" || event.name.starts_with("topdown-");
            !varies && event.description != "tracepoint"
        };
        assert_eq!(events.iter().filter(is_fixed).count(), 82);
    }
    let mut visits = 0;
    libpfm.events(&perf, &mut |entry| {
        visits += 1;
        // The handle may be used meanwhile.
        assert!(libpfm.encode("perf::page-faults").is_ok());
        if entry.name == events[2].name {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(visits, 3);
}

/// Check that threads which open and encode at the same time get their own answers.
#[test]
fn threads_get_their_own_answers() {
    let Some(_) = open_for("threads_get_their_own_answers") else { return };
    let events = [("cpu-clock", 0), ("task-clock", 1), ("faults", 2), ("cs", 3), ("migrations", 4)];
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let libpfm = Libpfm::open().unwrap();
                for turn in 0..500 {
                    let (name, config) = events[(thread + turn) % events.len()];
                    let event = libpfm.encode(&format!("perf::{name}:u")).unwrap();
                    assert_eq!((event.pmu_type, event.config), (1, config));
                    assert!(event.exclude_kernel && event.full_name.contains(":u=1:k=0"));
                }
            });
        }
    });
}

/// Check that a library that can't be loaded is an error with the loader's words, each time.
#[test]
fn unusable_library_is_named() {
    let name = format!("perfmon-libpfm-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("libpfm.so.4"), "no library").unwrap();
    let path = directory.to_str().unwrap();
    with_variable("libpfm::unusable_library_is_named", "LD_LIBRARY_PATH", path, || {
        for _ in 0..2 {
            let error = Libpfm::open().unwrap_err();
            assert!(matches!(error, LibpfmError::NotInstalled(_)));
            let text = error.to_string();
            assert!(
                text.starts_with("cannot load libpfm4: ") && text.contains("libpfm.so.4"),
                "{text}"
            );
        }
    });
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Check that the interface's version is that of libpfm4.
#[test]
fn version_is_four() {
    let Some(libpfm) = open_for("version_is_four") else { return };
    assert_eq!(libpfm.version().0, 4);
}
