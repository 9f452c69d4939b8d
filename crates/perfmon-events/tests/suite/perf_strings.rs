//! The event strings of perf's own tests of its parser, each with what perfmon makes of it: the same
//! registers as perf, or the reason why not.
//!
//! Strings: Linux 5.5 to 6.18, `tools/perf/tests/parse-events.c` (`test__events`, `test__events_pmu`,
//! `test__terms`, the PMU events) and `tools/perf/arch/x86/tests/hybrid.c`.

// tidy: table

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use perfmon_core::Group;
use perfmon_events::Names;

use crate::show;

/// A list, and for each event of it the encoding, or `refused: ` and a part of the reason. A list that
/// can't be read has one line: `error: ` and what was expected.
type Row = (&'static str, &'static [&'static str]);

const NAME: &str = "refused: the term 'name' says nothing about what is counted: not offered";
const PERIOD: &str = "refused: the term 'period' says nothing about what is counted: not offered";
const SAMPLE_READ: &str =
    "refused: modifier 'S' (read the group's values with each sample) is not offered";
const ACCESS: &str = "error: an access (r, w and x, each once)";
const NUMBER: &str = "error: a number (decimal, or hexadecimal after 0x)";
const GLOB: &str = "error: a tracepoint's name of letters, digits, '_', '-' and '.'";

const EVENTS: &[Row] = &[
    ("syscalls:sys_enter_openat", &["type 2 config 0x2be"]),
    ("syscalls:*", &[GLOB]),
    ("r1a", &["type 4 config 0x1a"]),
    // Software event 1 is a clock, and clocks are opened without the kernel bit.
    ("1:1", &["type 1 config 0x1 -k -h"]),
    ("instructions", &["type 0 config 0x1"]),
    ("cycles/period=100000,config2/", &[PERIOD]),
    ("cpu-cycles/period=100000,config2/", &[PERIOD]),
    ("faults", &["type 1 config 0x2"]),
    ("L1-dcache-load-miss", &["type 3 config 0x10000"]),
    ("mem:0", &["type 5 config 0x0 config2 0x4 bp_type 0x3"]),
    ("mem:0:r", &["type 5 config 0x0 config2 0x4 bp_type 0x1"]),
    ("mem:0:w", &["type 5 config 0x0 config2 0x4 bp_type 0x2"]),
    (
        "syscalls:sys_enter_openat:k",
        &["refused: the kernel counts this event whether or not it excludes user mode"],
    ),
    ("syscalls:*:u", &[GLOB]),
    ("r1a:kp", &["type 4 config 0x1a precise 0x1 -u -h"]),
    ("1:1:hp", &["refused: the clocks ignore 'u', 'k' and 'h'"]),
    ("instructions:h", &["type 0 config 0x1 -u -k"]),
    ("faults:u", &["type 1 config 0x2 -k -h"]),
    ("L1-dcache-load-miss:kp", &["type 3 config 0x10000 precise 0x1 -u -h"]),
    ("mem:0:u", &["type 5 config 0x0 config2 0x4 bp_type 0x3 -k -h"]),
    ("mem:0:r:hp", &["refused: this event happens in user mode or in the kernel"]),
    ("mem:0:w:up", &["type 5 config 0x0 config2 0x4 bp_type 0x2 precise 0x1 -k -h"]),
    (
        "r1,syscalls:sys_enter_openat:k,1:1:hp",
        &[
            "type 4 config 0x1",
            "refused: the kernel counts this event",
            "refused: the clocks ignore",
        ],
    ),
    ("instructions:G", &["type 0 config 0x1 -host"]),
    ("instructions:H", &["type 0 config 0x1 -guest"]),
    ("mem:0:rw", &["type 5 config 0x0 config2 0x4 bp_type 0x3"]),
    ("mem:0:rw:kp", &["type 5 config 0x0 config2 0x4 bp_type 0x3 precise 0x1 -u -h"]),
    (
        "{instructions:k,cycles:upp}",
        &["type 0 config 0x1 -u -h", "type 0 config 0x0 precise 0x2 -k -h"],
    ),
    (
        "{faults:k,cache-references}:u,cycles:k",
        &["type 1 config 0x2 -h", "type 0 config 0x2 -k -h", "type 0 config 0x0 -u -h"],
    ),
    (
        "{faults:k,branches}:u,cpu-cycles:k",
        &["type 1 config 0x2 -h", "type 0 config 0x4 -k -h", "type 0 config 0x0 -u -h"],
    ),
    (
        "group1{syscalls:sys_enter_openat:H,cycles:kppp},group2{cycles,1:3}:G,instructions:u",
        &[
            "type 2 config 0x2be -guest",
            "type 0 config 0x0 precise 0x3 -u -h",
            "type 0 config 0x0 -host",
            "refused: this event ignores 'G': it would count on the host",
            "type 0 config 0x1 -k -h",
        ],
    ),
    (
        "{cycles,instructions}:G,{cycles:G,instructions:G},cycles",
        &[
            "type 0 config 0x0 -host",
            "type 0 config 0x1 -host",
            "type 0 config 0x0 -host",
            "type 0 config 0x1 -host",
            "type 0 config 0x0",
        ],
    ),
    (
        "{cycles:u,instructions:kp}:p",
        &["type 0 config 0x0 precise 0x1 -k -h", "type 0 config 0x1 precise 0x2 -u -h"],
    ),
    ("*:*", &["error: a tracepoint's group of letters, digits, '_', '-' and '.'"]),
    ("{cycles,cache-misses:G}:H", &["type 0 config 0x0 -guest", "type 0 config 0x3"]),
    ("{cycles,cache-misses:H}:G", &["type 0 config 0x0 -host", "type 0 config 0x3"]),
    (
        "{cycles:G,cache-misses:H}:u",
        &["type 0 config 0x0 -k -h -host", "type 0 config 0x3 -k -h -guest"],
    ),
    ("{cycles:G,cache-misses:H}:uG", &["type 0 config 0x0 -k -h -host", "type 0 config 0x3 -k -h"]),
    ("{cycles,cache-misses,branch-misses}:S", &[SAMPLE_READ, SAMPLE_READ, SAMPLE_READ]),
    ("{instructions,branch-misses}:Su", &[SAMPLE_READ, SAMPLE_READ]),
    ("instructions:uDp", &["type 0 config 0x1 precise 0x1 -k -h pinned"]),
    (
        "{cycles,cache-misses,branch-misses}:D",
        &["type 0 config 0x0 pinned", "type 0 config 0x3", "type 0 config 0x5"],
    ),
    ("mem:0/1", &["type 5 config 0x0 config2 0x1 bp_type 0x3"]),
    ("mem:0/2:w", &["type 5 config 0x0 config2 0x2 bp_type 0x2"]),
    ("mem:0/4:rw:u", &["type 5 config 0x0 config2 0x4 bp_type 0x3 -k -h"]),
    ("kvm-s390:kvm_s390_create_vm", &["refused: there is no group of tracepoints 'kvm-s390'"]),
    ("instructions:I", &["type 0 config 0x1 -idle"]),
    ("instructions:kIG", &["type 0 config 0x1 -u -h -idle -host"]),
    (
        "task-clock:P,cycles",
        &[
            "refused: modifier 'P' (as precise as the PMU can be) is not offered",
            "type 0 config 0x0",
        ],
    ),
    ("instructions/name=insn/", &[NAME]),
    ("r1234/name=rawpmu/", &[NAME]),
    ("4:0x6530160/name=numpmu/", &[NAME]),
    ("L1-dcache-misses/name=cachepmu/", &[NAME]),
    ("intel_pt//u", &["error: a term"]),
    ("cycles/name='COMPLEX_CYCLES_NAME:orig=cycles,desc=chip-clock-ticks'/Duk", &[NAME]),
    ("cycles//u", &["type 0 config 0x0 -k -h"]),
    ("cpu-cycles//u", &["type 0 config 0x0 -k -h"]),
    ("cycles:k", &["type 0 config 0x0 -u -h"]),
    ("instructions:uep", &["type 0 config 0x1 precise 0x1 -k -h exclusive"]),
    (
        "{cycles,cache-misses,branch-misses}:e",
        &["type 0 config 0x0 exclusive", "type 0 config 0x3", "type 0 config 0x5"],
    ),
    ("cycles/name=name/", &[NAME]),
    ("cycles/name=l1d/", &[NAME]),
    // Breakpoints take no terms.
    ("mem:0/name=breakpoint/", &[NUMBER]),
    ("mem:0:x/name=breakpoint/", &[ACCESS]),
    ("mem:0:r/name=breakpoint/", &[ACCESS]),
    ("mem:0:w/name=breakpoint/", &[ACCESS]),
    ("mem:0/name=breakpoint/u", &[NUMBER]),
    ("mem:0:x/name=breakpoint/k", &[ACCESS]),
    ("mem:0:r/name=breakpoint/hp", &[ACCESS]),
    ("mem:0:w/name=breakpoint/up", &[ACCESS]),
    ("mem:0:rw/name=breakpoint/", &[ACCESS]),
    ("mem:0:rw/name=breakpoint/kp", &[ACCESS]),
    ("mem:0/1/name=breakpoint/", &[NUMBER]),
    ("mem:0/2:w/name=breakpoint/", &[ACCESS]),
    ("mem:0/4:rw/name=breakpoint/u", &[ACCESS]),
    ("mem:0/1/name=breakpoint1/,mem:0/4:rw/name=breakpoint2/", &[NUMBER]),
];

const PMU_EVENTS: &[Row] = &[
    ("cpu/config=10,config1,config2=3,period=1000/u", &[PERIOD]),
    ("cpu/config=10,config1=1,config2=3,period=1000/u", &[PERIOD]),
    ("cpu/config=10,config1,config2=3/u", &["type 4 config 0xa config1 0x1 config2 0x3 -k -h"]),
    ("cpu/config=1,name=krava/u,cpu/config=2/u", &[NAME, "type 4 config 0x2 -k -h"]),
    (
        "cpu/config=1,call-graph=fp,time,period=100000/,cpu/config=2,call-graph=no,time=0,period=2000/",
        &["refused: the term 'call-graph'", "refused: the term 'call-graph'"],
    ),
    (
        "cpu/name='COMPLEX_CYCLES_NAME:orig=cycles,desc=chip-clock-ticks',period=0x1,event=0x2/ukp",
        &[NAME],
    ),
    ("software/r1a/", &["refused: events of the PMU 'software' can't be given by terms"]),
    ("software/r0x1a/", &["refused: events of the PMU 'software' can't be given by terms"]),
    ("cpu/L1-dcache-load-miss/", &["type 3 config 0x10000"]),
    ("cpu/L1-dcache-load-miss/kp", &["type 3 config 0x10000 precise 0x1 -u -h"]),
    ("cpu/L1-dcache-misses,name=cachepmu/", &[NAME]),
    ("cpu/instructions/", &["type 0 config 0x1"]),
    ("cpu/cycles,period=100000,config2/", &[PERIOD]),
    ("cpu/instructions/h", &["type 0 config 0x1 -u -k"]),
    ("cpu/instructions/G", &["type 0 config 0x1 -host"]),
    ("cpu/instructions/H", &["type 0 config 0x1 -guest"]),
    (
        "{cpu/instructions/k,cpu/cycles/upp}",
        &["type 0 config 0x1 -u -h", "type 0 config 0x0 precise 0x2 -k -h"],
    ),
    (
        "{cpu/cycles/u,cpu/instructions/kp}:p",
        &["type 0 config 0x0 precise 0x1 -k -h", "type 0 config 0x1 precise 0x2 -u -h"],
    ),
    (
        "{faults:k,cpu/cache-references/}:u,cpu/cycles/k",
        &["type 1 config 0x2 -h", "type 0 config 0x2 -k -h", "type 0 config 0x0 -u -h"],
    ),
    (
        "{faults:k,cpu/branches/}:u,cpu/cycles/k",
        &["type 1 config 0x2 -h", "type 0 config 0x4 -k -h", "type 0 config 0x0 -u -h"],
    ),
    (
        "{cpu/cycles/,cpu/instructions/}:G,{cpu/cycles/G,cpu/instructions/G},cpu/cycles/",
        &[
            "type 0 config 0x0 -host",
            "type 0 config 0x1 -host",
            "type 0 config 0x0 -host",
            "type 0 config 0x1 -host",
            "type 0 config 0x0",
        ],
    ),
    ("{cpu/cycles/,cpu/cache-misses/G}:H", &["type 0 config 0x0 -guest", "type 0 config 0x3"]),
    ("{cpu/cycles/,cpu/cache-misses/H}:G", &["type 0 config 0x0 -host", "type 0 config 0x3"]),
    (
        "{cpu/cycles/G,cpu/cache-misses/H}:u",
        &["type 0 config 0x0 -k -h -host", "type 0 config 0x3 -k -h -guest"],
    ),
    (
        "{cpu/cycles/G,cpu/cache-misses/H}:uG",
        &["type 0 config 0x0 -k -h -host", "type 0 config 0x3 -k -h"],
    ),
    (
        "{cpu/cycles/,cpu/cache-misses/,cpu/branch-misses/}:S",
        &[SAMPLE_READ, SAMPLE_READ, SAMPLE_READ],
    ),
    ("{cpu/instructions/,cpu/branch-misses/}:Su", &[SAMPLE_READ, SAMPLE_READ]),
    ("cpu/instructions/uDp", &["type 0 config 0x1 precise 0x1 -k -h pinned"]),
    (
        "{cpu/cycles/,cpu/cache-misses/,cpu/branch-misses/}:D",
        &["type 0 config 0x0 pinned", "type 0 config 0x3", "type 0 config 0x5"],
    ),
    ("cpu/instructions/I", &["type 0 config 0x1 -idle"]),
    ("cpu/instructions/kIG", &["type 0 config 0x1 -u -h -idle -host"]),
    ("cpu/cycles/u", &["type 0 config 0x0 -k -h"]),
    ("cpu/cycles/k", &["type 0 config 0x0 -u -h"]),
    ("cpu/instructions/uep", &["type 0 config 0x1 precise 0x1 -k -h exclusive"]),
    (
        "{cpu/cycles/,cpu/cache-misses/,cpu/branch-misses/}:e",
        &["type 0 config 0x0 exclusive", "type 0 config 0x3", "type 0 config 0x5"],
    ),
    ("cpu/cycles,name=name/", &[NAME]),
    ("cpu/cycles,name=l1d/", &[NAME]),
    // The terms of `test__terms`; there perf reads them and applies none.
    (
        "cpu/config=10,config1,config2=3,umask=1/",
        &["refused: term 'umask' shares bits of config with another term"],
    ),
    (
        "cpu/config=10,config1,config2=3,config3=4,umask=1,read,r0xead/",
        &["refused: term 'umask' shares bits of config with another term"],
    ),
    ("cpu/config3=4/", &["type 4 config 0x0 config3 0x4"]),
    ("cpu/read/", &["refused: the PMU 'cpu' has no term 'read'"]),
    // The forms of the test of all PMU events: an event's name as a value.
    ("cpu/event=cpu-cycles/u", &[NUMBER]),
    ("mem-loads:u,cpu/event=mem-loads/u", &[NUMBER]),
    ("mem-loads:u,cpu/mem-loads/u", &["type 4 config 0x1cd config1 0x3 -k -h"; 2]),
    ("event-hyphen", &["error: an event"]),
    ("event-two-hyph", &["error: an event"]),
    ("cpu/event=1/,cpu/event=1/", &["type 4 config 0x1", "type 4 config 0x1"]),
];

/// On a machine whose core PMUs are `cpu_atom`, type 10, and `cpu_core`, type 4.
const HYBRID: &[Row] = &[
    ("cpu_core/cycles/", &["type 0 config 0x400000000"]),
    ("cycles", &["type 0 config 0xa00000000", "type 0 config 0x400000000"]),
    (
        "{cpu_core/cycles/,cpu_core/branches/}",
        &["type 0 config 0x400000000", "type 0 config 0x400000004"],
    ),
    ("{cpu-clock,cpu_core/cycles/}", &["type 1 config 0x0 -k -h", "type 0 config 0x400000000"]),
    ("{cpu_core/cycles/,cpu-clock}", &["type 0 config 0x400000000", "type 1 config 0x0 -k -h"]),
    (
        "{cpu_core/cycles/k,cpu_core/branches/u}",
        &["type 0 config 0x400000000 -u -h", "type 0 config 0x400000004 -k -h"],
    ),
    ("r1a", &["type 10 config 0x1a", "type 4 config 0x1a"]),
    ("cpu_core/config=10,config1,config2=3,period=1000/u", &[PERIOD]),
    (
        "cpu_core/config=10,config1,config2=3/u",
        &["type 4 config 0xa config1 0x1 config2 0x3 -k -h"],
    ),
    ("cpu_core/LLC-loads/", &["type 3 config 0x400000002"]),
    // The PMU has an event of the second name of its own.
    (
        "{cpu_core/cycles/,cpu_core/cpu-cycles/}",
        &["type 0 config 0x400000000", "type 4 config 0x3c"],
    ),
    (
        "{cpu_core/cpu-cycles/,cpu_core/instructions/}",
        &["type 4 config 0x3c", "type 0 config 0x400000001"],
    ),
    // Of the table above, where perf expects each event, or group, on both.
    (
        "L1-dcache-load-miss:kp",
        &[
            "type 3 config 0xa00010000 precise 0x1 -u -h",
            "type 3 config 0x400010000 precise 0x1 -u -h",
        ],
    ),
    (
        "{cycles,cache-misses:G}:H",
        &[
            "type 0 config 0xa00000000 -guest",
            "type 0 config 0xa00000003",
            "type 0 config 0x400000000 -guest",
            "type 0 config 0x400000003",
        ],
    ),
    (
        "{cycles,cache-misses,branch-misses}:D",
        &[
            "type 0 config 0xa00000000 pinned",
            "type 0 config 0xa00000003",
            "type 0 config 0xa00000005",
            "type 0 config 0x400000000 pinned",
            "type 0 config 0x400000003",
            "type 0 config 0x400000005",
        ],
    ),
    (
        "task-clock:P,cycles",
        &["refused: modifier 'P'", "type 0 config 0xa00000000", "type 0 config 0x400000000"],
    ),
];

/// Checks one list on a machine, by each way that reads it.
fn check(names: &Names, (list, expected): Row) {
    let explained = names.explain(list).events;
    // The shortest way reads the first event only.
    let first = names.encoding(list);
    let events = match names.parse(list) {
        Ok(events) => events,
        Err(error) => {
            let wanted = expected[0].strip_prefix("error: ");
            assert_eq!(Some(error.expected()), wanted, "{list}: {error}");
            assert_eq!(explained.expect_err(list), error);
            return;
        }
    };
    let shown: Vec<String> = events.iter().map(show).collect();
    assert_eq!(shown.len(), expected.len(), "{list}: {shown:?}");
    for (shown, expected) in shown.iter().zip(expected) {
        match expected.strip_prefix("refused: ") {
            Some(part) => {
                assert!(shown.starts_with("refused: ") && shown.contains(part), "{list}: {shown}");
            }
            None => assert_eq!(shown, expected, "{list}"),
        }
    }
    let explained: Vec<String> =
        explained.expect(list).iter().map(|explained| show(&explained.event)).collect();
    assert_eq!(explained, shown, "{list}");
    if !list.contains('{') {
        assert_eq!(first.expect(list).ok(), events[0].encoding.as_deref().ok().cloned(), "{list}");
    }
}

/// Check that perf's strings give what perf gives, or the reason why they don't, and a group a pair of braces.
#[test]
fn events() {
    let names = crate::names();
    for &row in EVENTS.iter().chain(PMU_EVENTS) {
        check(&names, row);
        let Ok(events) = names.parse(row.0) else { continue };
        let groups: BTreeSet<u16> = events
            .iter()
            .filter_map(|event| match event.group {
                Group::Together(number) => Some(number),
                Group::Free => None,
            })
            .collect();
        assert_eq!(groups.len(), row.0.matches('{').count(), "{}", row.0);
    }
    assert!(EVENTS.len() + PMU_EVENTS.len() >= 121);
}

/// Check the lengths of breakpoints on code, which are the machine's.
#[test]
fn code_breakpoints() {
    let long = size_of::<std::ffi::c_long>();
    let execute = format!("type 5 config 0x0 config2 {long:#x} bp_type 0x4");
    crate::check("mem:0:x", &execute);
    if cfg!(target_arch = "x86_64") {
        crate::check_refused("mem:0:x:k", "the kernel does not execute user addresses");
    } else {
        crate::check("mem:0:x:k", &format!("{execute} -u -h"));
    }
}

/// Check the strings of perf's test for machines of two core types.
#[test]
fn hybrid_events() {
    let sysfs = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("perf_strings_hybrid");
    for (name, pmu_type, cpus) in [("cpu_atom", "10\n", "4-7\n"), ("cpu_core", "4\n", "0-3\n")] {
        let pmu = sysfs.join("bus/event_source/devices").join(name);
        for (file, text) in [
            ("type", pmu_type),
            ("cpus", cpus),
            ("format/event", "config:0-7\n"),
            ("format/umask", "config:8-15\n"),
            ("events/cpu-cycles", "event=0x3c\n"),
        ] {
            let file = pmu.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }
    let names = Names::with_roots(&sysfs, "/nonexistent");
    HYBRID.iter().for_each(|&row| check(&names, row));
}
