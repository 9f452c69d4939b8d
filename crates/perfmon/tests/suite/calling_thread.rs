use std::sync::atomic::{AtomicU32, Ordering};

use perfmon::{Count, Scope, Session};

use crate::helper::{
    Null, WRITES, can_count, is_wrong_with_breakpoints, scaled, started, stores_to,
    touch_fresh_pages,
};

/// Faults that a test's own surroundings may add: stack, allocator.
const FAULTS_AROUND: u64 = 8;

/// Check that a million writes are a million.
#[test]
fn writes_are_counted_exactly() {
    if !can_count("writes_are_counted_exactly", WRITES) {
        return;
    }
    let mut null = Null::open();
    let mut session = started(WRITES);
    let ((), counts) = session.region(|| null.write(scaled(1_000_000)));
    assert_eq!(counts.exact(WRITES), Some(scaled(1_000_000)));
    let ((), counts) = session.region(|| ());
    assert_eq!(counts.exact(WRITES), Some(0));
}

/// Check that 12,345 stores to a word are 12,345, and that stores to its neighbour are none.
#[test]
fn stores_are_counted_exactly() {
    static WORDS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
    let event = stores_to(&WORDS[0]);
    if !can_count("stores_are_counted_exactly", &event) {
        return;
    }
    let mut session = started(&event);
    for (word, expected) in WORDS.iter().zip([12_345, 0]) {
        let ((), counts) =
            session.region(|| (0..12_345).for_each(|value| word.store(value, Ordering::Relaxed)));
        assert_eq!(counts.exact(&event), Some(expected));
    }
}

/// Check that a uprobe on a function of libc is hit once per call.
#[test]
fn calls_of_a_library_function_are_counted_exactly() {
    const NAME: &str = "calls_of_a_library_function_are_counted_exactly";
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let Some(libc) = libc.into_iter().find(|path| path.contains("/libc.so")) else {
        return crate::helper::skipped(NAME, "libc is not a library of its own here");
    };
    let event = format!("uprobe:{libc}:getpid");
    if !can_count(NAME, &event) {
        return;
    }
    let mut session = started(&event);
    let ((), counts) = session.region(|| {
        (0..777).for_each(|_| {
            std::hint::black_box(std::process::id());
        });
    });
    assert_eq!(counts.exact(&event), Some(777));
}

/// Check that touching N fresh pages is N minor faults, and touching none is none.
#[test]
fn fresh_pages_are_minor_faults() {
    if !can_count("fresh_pages_are_minor_faults", "minor-faults:u") {
        return;
    }
    // Where huge pages are always used, one fault brings in many pages.
    let always = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if always.is_ok_and(|text| text.contains("[always]")) {
        return crate::helper::skipped(
            "fresh_pages_are_minor_faults",
            "huge pages are always used",
        );
    }
    let mut session = started("minor-faults:u,page-faults:u");
    let (pages, counts) = session.region(touch_fresh_pages);
    for event in ["minor-faults:u", "page-faults:u"] {
        let faults = counts.exact(event).unwrap();
        assert!((pages..=pages + FAULTS_AROUND).contains(&faults), "{event}: {faults} of {pages}");
    }
    let ((), counts) = session.region(|| ());
    assert!(counts.exact("page-faults:u").unwrap() <= FAULTS_AROUND);
}

/// Check that a group of four breakpoints and a software event is read at once, each value its own.
#[test]
fn a_group_of_breakpoints_is_read_at_once() {
    static WORDS: [AtomicU32; 4] =
        [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)];
    let events: Vec<String> = WORDS.iter().map(stores_to).collect();
    let list = format!("{{{},page-faults:u}}", events.join(","));
    const NAME: &str = "a_group_of_breakpoints_is_read_at_once";
    if !can_count(NAME, &list) || is_wrong_with_breakpoints(NAME) {
        return;
    }
    let mut session = started(&list);
    let ((), counts) = session.region(|| {
        for round in 0..100_u32 {
            for (word, every) in WORDS.iter().zip(1..) {
                if round.is_multiple_of(every) {
                    word.store(round, Ordering::Relaxed);
                }
            }
        }
    });
    let found: Vec<_> = events.iter().map(|event| counts.exact(event).unwrap()).collect();
    assert_eq!(found, [100, 50, 34, 25]);
    assert!(counts.exact("page-faults:u").unwrap() <= FAULTS_AROUND);
    let times: Vec<_> = counts.iter().map(|row| row.tally.enabled_ns).collect();
    assert!(times.iter().all(|time| *time == times[0]), "one read, one time: {times:?}");
}

/// Check that a breakpoint too many is unsupported with its reason, and the others count.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_fifth_breakpoint_is_refused() {
    static WORDS: [AtomicU32; 5] = [const { AtomicU32::new(0) }; 5];
    let events: Vec<String> = WORDS.iter().map(stores_to).collect();
    if !can_count("a_fifth_breakpoint_is_refused", &events[0]) {
        return;
    }
    let mut session = started(&events.join(","));
    let ((), counts) =
        session.region(|| WORDS.iter().for_each(|word| word.store(7, Ordering::Relaxed)));
    for event in &events[..4] {
        assert_eq!(counts.exact(event), Some(1));
    }
    let Count::Unsupported(perfmon::Reason::Refused(refusal)) =
        &counts.get(&events[4]).unwrap().count
    else {
        panic!("{counts:?}");
    };
    assert_eq!(refusal.why(), "all breakpoint registers are in use (most machines have 4)");
    assert_eq!(refusal.errno_number(), Some(rustix::io::Errno::NOSPC.raw_os_error()));
}

/// Check that all of a group are without a value if one can't be had, whatever its place.
#[test]
fn a_group_is_all_or_nothing() {
    if !can_count("a_group_is_all_or_nothing", "page-faults:u") {
        return;
    }
    if perfmon::has_core_pmu() {
        return crate::helper::skipped("a_group_is_all_or_nothing", "this machine has a core PMU");
    }
    let mut session = started("{page-faults:u,cycles:u},{cycles:u,minor-faults:u},task-clock");
    session.read();
    let counts = session.counts();
    for row in counts.iter().take(4) {
        assert!(matches!(row.tally.count, Count::Unsupported(_)), "{row}");
        assert!(row.to_string().contains("ENOENT from perf_event_open"), "{row}");
    }
    assert!(counts.exact("task-clock").is_some_and(|time_ns| time_ns > 0));
}

/// Check that only the thread that loaded the session is counted.
#[test]
fn other_threads_are_not_counted() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let event = stores_to(&WORD);
    if !can_count("other_threads_are_not_counted", &event) {
        return;
    }
    let mut session = Session::new(&event).unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    let store = || WORD.store(1, Ordering::Relaxed);
    let ((), counts) = session.region(|| std::thread::spawn(store).join().unwrap());
    assert_eq!(counts.exact(&event), Some(0));
    let ((), counts) = session.region(store);
    assert_eq!(counts.exact(&event), Some(1));
}

/// Check that a reading is what the tally judges, and that a refused event has none.
#[test]
fn readings_are_what_tallies_judge() {
    let mut session = started("page-faults:u,dummy");
    touch_fresh_pages();
    session.stop().unwrap();
    session.read();
    let reading = session.reading(0).unwrap();
    assert_eq!(session.tally(0), perfmon::Tally::from_reading(reading));
    assert_eq!(session.reading(1), None);
    assert_eq!(session.reading(2), None);
}
