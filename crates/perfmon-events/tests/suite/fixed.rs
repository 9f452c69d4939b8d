use crate::{check, event};

/// Check that the kernel's software events have the numbers of `enum perf_sw_ids`.
#[test]
fn software_events() {
    for (name, expected) in [
        ("cpu-clock", "type 1 config 0x0 -k -h"),
        ("task-clock", "type 1 config 0x1 -k -h"),
        ("page-faults", "type 1 config 0x2"),
        ("faults", "type 1 config 0x2"),
        ("context-switches", "type 1 config 0x3"),
        ("cs", "type 1 config 0x3"),
        ("cpu-migrations", "type 1 config 0x4"),
        ("migrations", "type 1 config 0x4"),
        ("minor-faults", "type 1 config 0x5"),
        ("major-faults", "type 1 config 0x6"),
        ("cgroup-switches", "type 1 config 0xb"),
    ] {
        check(name, expected);
    }
}

/// Check that the generic hardware events have the numbers of `enum perf_hw_id`.
#[test]
fn hardware_events() {
    for (names, config) in [
        (["cpu-cycles", "cycles"], 0),
        (["instructions", "instructions"], 1),
        (["cache-references", "cache-references"], 2),
        (["cache-misses", "cache-misses"], 3),
        (["branch-instructions", "branches"], 4),
        (["branch-misses", "branch-misses"], 5),
        (["bus-cycles", "bus-cycles"], 6),
        (["stalled-cycles-frontend", "idle-cycles-frontend"], 7),
        (["stalled-cycles-backend", "idle-cycles-backend"], 8),
        (["ref-cycles", "ref-cycles"], 9),
    ] {
        for name in names {
            check(name, &format!("type 0 config {config:#x}"));
        }
    }
}

/// Check that hardware cache events are cache | operation << 8 | result << 16.
#[test]
fn cache_events() {
    for (name, config) in [
        ("L1-dcache-loads", 0x0_00_00),
        ("L1-dcache-load-misses", 0x1_00_00),
        ("L1-dcache-stores", 0x0_01_00),
        ("L1-dcache-store-misses", 0x1_01_00),
        ("L1-dcache-prefetches", 0x0_02_00),
        ("L1-dcache-prefetch-misses", 0x1_02_00),
        ("L1-icache-loads", 0x0_00_01),
        ("L1-icache-load-misses", 0x1_00_01),
        ("L1-icache-prefetches", 0x0_02_01),
        ("L1-icache-prefetch-misses", 0x1_02_01),
        ("LLC-loads", 0x0_00_02),
        ("LLC-load-misses", 0x1_00_02),
        ("LLC-stores", 0x0_01_02),
        ("LLC-store-misses", 0x1_01_02),
        ("LLC-prefetches", 0x0_02_02),
        ("LLC-prefetch-misses", 0x1_02_02),
        ("dTLB-loads", 0x0_00_03),
        ("dTLB-load-misses", 0x1_00_03),
        ("dTLB-stores", 0x0_01_03),
        ("dTLB-store-misses", 0x1_01_03),
        ("dTLB-prefetches", 0x0_02_03),
        ("dTLB-prefetch-misses", 0x1_02_03),
        ("iTLB-loads", 0x0_00_04),
        ("iTLB-load-misses", 0x1_00_04),
        ("branch-loads", 0x0_00_05),
        ("branch-load-misses", 0x1_00_05),
        ("node-loads", 0x0_00_06),
        ("node-load-misses", 0x1_00_06),
        ("node-stores", 0x0_01_06),
        ("node-store-misses", 0x1_01_06),
        ("node-prefetches", 0x0_02_06),
        ("node-prefetch-misses", 0x1_02_06),
    ] {
        check(name, &format!("type 3 config {config:#x}"));
    }
}

/// Check that raw events take 64 bits.
#[test]
fn raw_events() {
    check("r1a8", "type 4 config 0x1a8");
    check("r1A8:u", "type 4 config 0x1a8 -k -h");
    check("rffffffffffffffff", "type 4 config 0xffffffffffffffff");
}

/// Check that breakpoints take an address, a length and an access, with perf's defaults.
#[test]
fn breakpoints() {
    for (text, expected) in [
        ("mem:0x1000", "type 5 config 0x0 config1 0x1000 config2 0x4 bp_type 0x3"),
        ("mem:4096", "type 5 config 0x0 config1 0x1000 config2 0x4 bp_type 0x3"),
        ("mem:0x1000:u", "type 5 config 0x0 config1 0x1000 config2 0x4 bp_type 0x3 -k -h"),
        ("mem:0x1000/8", "type 5 config 0x0 config1 0x1000 config2 0x8 bp_type 0x3"),
        ("mem:0x1000/1:r", "type 5 config 0x0 config1 0x1000 config2 0x1 bp_type 0x1"),
        ("mem:0x1000/8:w", "type 5 config 0x0 config1 0x1000 config2 0x8 bp_type 0x2"),
        ("mem:0x1000/4:wr", "type 5 config 0x0 config1 0x1000 config2 0x4 bp_type 0x3"),
        ("mem:0x1000/8:w:u", "type 5 config 0x0 config1 0x1000 config2 0x8 bp_type 0x2 -k -h"),
        ("mem:0x1000/8:w:k", "type 5 config 0x0 config1 0x1000 config2 0x8 bp_type 0x2 -u -h"),
        ("mem:0x1000/4:x", "type 5 config 0x0 config1 0x1000 config2 0x4 bp_type 0x4"),
        (
            "mem:0xffffffff81000000/8:rw",
            "type 5 config 0x0 config1 0xffffffff81000000 config2 0x8 bp_type 0x3",
        ),
    ] {
        check(text, expected);
    }
    let long = size_of::<std::ffi::c_long>();
    check("mem:0x10:x", &format!("type 5 config 0x0 config1 0x10 config2 {long:#x} bp_type 0x4"));
}

/// Check that modifiers set the bits that perf_event_open(2) names.
#[test]
fn modifiers() {
    for (modifiers, expected) in [
        ("u", " -k -h"),
        ("k", " -u -h"),
        ("h", " -u -k"),
        ("uk", " -h"),
        ("ukh", ""),
        ("hku", ""),
        ("I", " -idle"),
        ("G", " -host"),
        ("H", " -guest"),
        ("GH", ""),
        ("p", " precise 0x1"),
        ("pp", " precise 0x2"),
        ("ppp", " precise 0x3"),
        ("D", " pinned"),
        ("e", " exclusive"),
        ("puDeGIp", " precise 0x2 -k -h -idle -host pinned exclusive"),
    ] {
        check(&format!("cycles:{modifiers}"), &format!("type 0 config 0x0{expected}"));
    }
}

/// Check that modifiers which are known and not offered are refused by name, and others stay.
#[test]
fn modifiers_not_offered() {
    let events = crate::names().parse("cycles:S,cycles:uW,cycles:P,cycles:b,cycles:u").unwrap();
    for (event, letter) in events.iter().zip(["'S'", "'W'", "'P'", "'b'"]) {
        let shown = crate::show(event);
        assert!(shown.contains(letter) && shown.contains("not offered for counting"), "{shown}");
    }
    assert!(events[4].encoding.is_ok());
}

/// Check that the clocks count nanoseconds and all other fixed events count events.
#[test]
fn units() {
    assert_eq!(event("task-clock").unit, "ns");
    assert_eq!(event("cpu-clock:D").unit, "ns");
    assert_eq!(event("page-faults").unit, "events");
    assert_eq!(event("mem:0x1000").unit, "events");
    assert_eq!(event("page-faults").cpus, None);
}

/// Check that fixed events need no file: the roots do not exist.
#[test]
fn no_file_is_needed() {
    let names = perfmon_events::Names::with_roots("/nonexistent", "/nonexistent");
    let events = names.parse("task-clock,page-faults:u,cycles,LLC-loads,r1,mem:0x10:w").unwrap();
    assert!(events.iter().all(|event| event.encoding.is_ok()));
}
