// guest rows: exact
//! Counters that a thread reads of itself without a system call.

use std::hint::black_box;

use perfmon_core::Encoding;
use perfmon_sys::UserPage;
use perfmon_vmtest::spin;

use crate::helper::{Guest, of_loop, skipped, started};
use crate::raw::{instructions, open, read};

/// Lets or forbids reads in user mode.
const SYSCTL: &str = "/proc/sys/kernel/perf_user_access";
const READS: &str = "syscalls:sys_enter_read";

fn set_user_access(allowed: bool) {
    std::fs::write(SYSCTL, if allowed { "1" } else { "0" }).unwrap();
}

/// What a thread counted of itself, how many `read` calls a thousand of its readings took, and whether user mode
/// could read the counter.
fn counted(list: &str) -> (u64, u64, bool) {
    let mut calls = started(READS);
    let mut session = started(list);
    session.read();
    let is_readable = session.hardware_index(0).is_some();
    let begin = session.tally(0).count.exact().unwrap();
    spin(1_000_000);
    session.read();
    let count = session.tally(0).count.exact().unwrap() - begin;
    let mut calls_of = |readings| {
        let ((), counts) = calls.region(|| {
            for _ in 0..readings {
                session.read();
                black_box(session.tally(0));
            }
        });
        counts.exact(READS).unwrap()
    };
    // The region's own reading is one of both.
    (count, calls_of(1000) - calls_of(0), is_readable)
}

/// Check that a self-monitoring session reads its counters without a system call where the kernel allows it, by system
/// calls where not, and that both give the loop's instructions.
#[test]
fn sessions_read_without_system_calls() {
    const NAME: &str = "sessions_read_without_system_calls";
    if Guest::exact(NAME).is_none() {
        return;
    }
    if !std::path::Path::new(SYSCTL).exists() {
        return skipped(NAME, "this kernel lets user mode read no counter");
    }
    // One event, a group, and a PMU's own event that asks for it itself.
    for list in ["instructions:u", "{instructions:u,cycles:u}", "armv8_pmuv3/event=0x8,rdpmc=1/u"] {
        let list = list.replace("armv8_pmuv3", &pmu_name());
        set_user_access(false);
        let (by_call, calls, is_readable) = counted(&list);
        set_user_access(true);
        assert_eq!((calls, is_readable), (1000, false), "{list}");
        let (by_page, calls, is_readable) = counted(&list);
        assert_eq!((calls, is_readable), (0, true), "{list}");
        // What a reading itself executes differs, but not by the loop.
        let around = |count: u64| count - of_loop(1_000_000);
        assert!(around(by_call) < 20_000 && around(by_page) < 20_000, "{by_call} {by_page}");
    }
}

/// Check that a value read in user mode lies between those of the system calls around it, always as far from them.
#[test]
fn pages_and_system_calls_agree() {
    const NAME: &str = "pages_and_system_calls_agree";
    let Some(guest) = Guest::exact(NAME) else { return };
    // rdpmc
    let encoding = Encoding { config1: 1 << 1, ..instructions() };
    let event = open(&encoding, None, false).unwrap();
    let page = UserPage::map(&event).unwrap();
    let mut apart = Vec::new();
    for iterations in [1, 1, 1000, 1_000_000, 1] {
        let before = read(&event);
        let by_page = page.read().unwrap().value;
        let after = read(&event);
        assert!(before < by_page && by_page < after, "{before} {by_page} {after}");
        apart.push((by_page - before, after - by_page));
        spin(iterations);
    }
    assert_eq!(apart[1..], vec![apart[1]; 4], "{} bits", guest.counter_bits);
}

/// Check that a loop between two readings adds its instructions to the unit, by page as by system call.
#[test]
fn loops_are_alike_either_way() {
    if Guest::exact("loops_are_alike_either_way").is_none() {
        return;
    }
    let mut by_page = started("instructions:u");
    // A group with an event of another PMU is read by system call.
    let mut by_call = started("{instructions:u,page-faults:u}");
    let read = |session: &mut perfmon::Session| {
        session.read();
        session.tally(0).count.exact().unwrap()
    };
    let mut grown = Vec::new();
    for iterations in [1, 1, 1_000_001, 1_000_001] {
        let before = [read(&mut by_page), read(&mut by_call)];
        spin(iterations);
        let after = [read(&mut by_page), read(&mut by_call)];
        grown.push([after[0] - before[0], after[1] - before[1]]);
    }
    assert!(by_page.hardware_index(0).is_some(), "the page was not used");
    assert_eq!(by_call.hardware_index(0), None);
    assert_eq!(grown[2], grown[3]);
    let by_the_loop = [grown[2][0] - grown[1][0], grown[2][1] - grown[1][1]];
    assert_eq!(by_the_loop, [of_loop(1_000_000); 2]);
}

/// The core PMU's name in sysfs.
fn pmu_name() -> String {
    let devices = std::fs::read_dir("/sys/bus/event_source/devices").unwrap();
    let names = devices.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.into_iter().find(|name| name.starts_with("armv8_")).unwrap()
}
