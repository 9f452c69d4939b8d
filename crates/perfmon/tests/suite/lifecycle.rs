use std::sync::atomic::{AtomicU32, Ordering};

use perfmon::{Count, Reason, Scope, Session};

use crate::helper::{alone, can_count, descriptors, started, stores_to};

fn store(word: &AtomicU32, times: u32) {
    (0..times).for_each(|value| word.store(value, Ordering::Relaxed));
}

/// Check that nothing moves between two reads without events, and that every event does between reads with.
#[test]
fn reads_without_events_are_equal() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let event = stores_to(&WORD);
    if !can_count("reads_without_events_are_equal", &event) {
        return;
    }
    let mut session = started(&event);
    store(&WORD, 5);
    for stores in [0, 0, 1, 0] {
        session.read();
        let before = session.snapshot();
        store(&WORD, stores);
        session.read();
        assert_eq!(session.tally_since(0, &before).count.exact(), Some(u64::from(stores)));
    }
    assert_eq!(session.counts().exact(&event), Some(6));
}

/// Check that counting goes on after a stop where it stopped, and that nothing counts in between.
#[test]
fn a_stopped_session_goes_on() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let event = stores_to(&WORD);
    if !can_count("a_stopped_session_goes_on", &event) {
        return;
    }
    let mut session = Session::new(&event).unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    store(&WORD, 3);
    session.read();
    assert_eq!(session.tally(0).count, Count::NotCounted(Reason::NeverStarted));
    for round in 1..=3 {
        session.start().unwrap();
        store(&WORD, 10);
        session.stop().unwrap();
        store(&WORD, 100);
        session.read();
        assert_eq!(session.counts().exact(&event), Some(round * 10));
    }
}

/// Check that steps out of order are errors, not counts.
#[test]
fn steps_out_of_order_are_refused() {
    let mut session = Session::new("task-clock").unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    assert!(
        session.load(&Scope::Threads(vec![])).is_ok(),
        "loading again replaces what was loaded"
    );
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    session.stop().unwrap();
    session.unload();
    session.read();
    assert_eq!(session.tally(0).count.value(), None);
}

/// Check that each region is counted from its own start.
#[test]
fn regions_are_independent() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let event = stores_to(&WORD);
    if !can_count("regions_are_independent", &event) {
        return;
    }
    let mut session = started(&event);
    for stores in [7, 0, 3] {
        let (value, counts) = session.region(|| {
            store(&WORD, stores);
            stores
        });
        assert_eq!((value, counts.exact(&event)), (stores, Some(u64::from(stores))));
    }
}

/// Check that a closure is counted in one call, with its value.
#[test]
fn a_closure_is_measured() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let event = stores_to(&WORD);
    if !can_count("a_closure_is_measured", &event) {
        return;
    }
    let body = || {
        store(&WORD, 99);
        "value"
    };
    let (value, counts) = perfmon::measure(&event, body).unwrap();
    assert_eq!((value, counts.exact(&event)), ("value", Some(99)));
}

/// Check that 200 loads leave no descriptor behind, and that each counts right.
#[test]
fn loading_again_leaks_nothing() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    alone("lifecycle::loading_again_leaks_nothing", || {
        let event = stores_to(&WORD);
        if !can_count("loading_again_leaks_nothing", &event) {
            return;
        }
        let mut session = Session::new(&format!("task-clock,{event},page-faults:u")).unwrap();
        let mut round = || {
            session.load(&Scope::CurrentThread).unwrap();
            session.start().unwrap();
            let ((), counts) = session.region(|| store(&WORD, 4));
            assert_eq!(counts.exact(&event), Some(4));
            session.unload();
        };
        // Each software event in use may be kept open once.
        round();
        let before = descriptors();
        (0..200).for_each(|_| round());
        assert_eq!(descriptors(), before);
    });
}

/// Check that reading allocates nothing; and that an allocation would be noticed.
#[test]
fn reading_allocates_nothing() {
    let mut session =
        started("task-clock,page-faults:u,{minor-faults:u,major-faults:u},context-switches:u");
    let reads = allocation_counter::measure(|| (0..100).for_each(|_| session.read()));
    assert_eq!(reads.count_total, 0);
    let counts = allocation_counter::measure(|| drop(session.counts()));
    assert!(counts.count_total > 0);
}
