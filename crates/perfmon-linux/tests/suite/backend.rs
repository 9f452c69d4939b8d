use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use perfmon_core::{
    Backend, Encoding, Group, Inherit, LoadPlan, PlannedEvent, PmdIndex, Privilege, Reading,
    Refusal, SetId, StartOn, Target,
};
use perfmon_linux::{Errno, Linux};

use crate::helper::skipped;

const SOFTWARE: u32 = 1;
const BREAKPOINT: u32 = 5;
const PAGE_FAULTS: u64 = 2;
const WRITE: u32 = 2;

fn page_faults() -> Encoding {
    let privilege = Privilege::USER;
    Encoding { pmu_type: SOFTWARE, config: PAGE_FAULTS, privilege, ..Encoding::default() }
}

fn stores_to(word: &AtomicU32) -> Encoding {
    Encoding {
        pmu_type: BREAKPOINT,
        bp_type: WRITE,
        config1: std::ptr::from_ref(word).addr() as u64,
        config2: 4,
        privilege: Privilege::USER,
        ..Encoding::default()
    }
}

fn plan(target: Target, events: Vec<(u16, Encoding)>) -> LoadPlan {
    let planned = |(number, (set, encoding)): (usize, (u16, Encoding))| PlannedEvent {
        set: SetId(set),
        pmd: PmdIndex(u16::try_from(number).unwrap()),
        encoding: Arc::new(encoding),
        group: Group::Free,
        period: 0,
    };
    LoadPlan {
        target,
        inherit: Inherit::None,
        start_on: StartOn::Call,
        active: SetId(0),
        always: Vec::new(),
        timed: false,
        events: events.into_iter().enumerate().map(planned).collect(),
    }
}

fn why(outcome: &Result<(), Refusal>) -> (&str, Option<i32>) {
    let refusal = outcome.as_ref().unwrap_err();
    (refusal.why(), refusal.errno_number())
}

/// Check that each set counts while it is the one that is started, and stands still otherwise.
#[test]
fn sets_count_in_turn() {
    static WORDS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
    let mut linux = Linux::new();
    let events = vec![(0, stores_to(&WORDS[0])), (1, stores_to(&WORDS[1]))];
    let (mut loaded, outcomes) = linux.load(&plan(Target::CurrentThread, events)).unwrap();
    if let Some(Err(refusal)) = outcomes.into_iter().find(Result::is_err) {
        return skipped("sets_count_in_turn", refusal);
    }
    let mut readings = [Reading::default(); 2];
    for (set, expected) in [(0, [3, 0]), (1, [3, 3]), (0, [6, 3])] {
        linux.start(&mut loaded, SetId(set)).unwrap();
        for word in WORDS.iter().cycle().take(6) {
            word.store(1, Ordering::Relaxed);
        }
        linux.stop(&mut loaded, SetId(set)).unwrap();
        linux.read(&mut loaded, &mut readings).unwrap();
        assert_eq!(readings.map(|reading| reading.value), expected, "after set {set}");
        assert!(readings.iter().all(|reading| reading.enabled_ns == reading.running_ns));
    }
    linux.unload(loaded);
}

/// Check that what the kernel refuses is that event's outcome, with errno and words; the others are had.
#[test]
fn outcomes_are_the_events_own() {
    let odd = Encoding { config1: 0x1001, ..stores_to(&AtomicU32::new(0)) };
    let unknown = Encoding { config: 999, ..page_faults() };
    let events = vec![(0, odd), (0, page_faults()), (0, unknown)];
    let (mut loaded, outcomes) = Linux::new().load(&plan(Target::CurrentThread, events)).unwrap();
    if let Err(refusal) = &outcomes[1] {
        return skipped("outcomes_are_the_events_own", refusal);
    }
    if cfg!(target_arch = "x86_64") {
        let expected =
            "the breakpoint's length is not 1, 2, 4 or 8, or its address is no multiple of it";
        assert_eq!(why(&outcomes[0]), (expected, Some(Errno::INVAL.raw_os_error())));
    }
    assert_eq!(why(&outcomes[2]).0, "this machine has no such event");
    // Places of events that were refused are left alone.
    let untouched = Reading { value: 77, ..Reading::default() };
    let mut readings = [untouched; 3];
    Linux::new().read(&mut loaded, &mut readings).unwrap();
    assert_eq!(readings[2], untouched);
    if outcomes[0].is_err() {
        // Some machines watch odd addresses.
        assert_eq!(readings[0], untouched);
    }
    assert_eq!(readings[1].value, 0);
}

/// Check that targets that are not there are refused as a whole.
#[test]
fn missing_targets_are_refused() {
    let refusal = |target| Linux::new().load(&plan(target, vec![(0, page_faults())])).unwrap_err();
    // Above the most that a process id may be.
    let gone = refusal(Target::Thread(5_000_000));
    assert_eq!(gone.why(), "the target has ended");
    assert_eq!(gone.errno_number(), Some(Errno::SRCH.raw_os_error()));
    assert_eq!(refusal(Target::Thread(u32::MAX)).why(), "there is no thread 4294967295");
    let path = Arc::new("/no/such/cgroup".into());
    let cgroup = refusal(Target::Cgroup { path, cpu: 0 });
    assert!(cgroup.why().starts_with("can't open the cgroup /no/such/cgroup: "), "{cgroup}");
}
