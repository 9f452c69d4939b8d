use std::io::Write;
use std::mem::offset_of;
use std::sync::Arc;

use perfmon_core::{
    Backend, Encoding, Group, Inherit, LoadPlan, PlannedEvent, PmdIndex, Reading, SetId, StartOn,
    Target,
};
use perfmon_data::pmu_type;

use super::kernel_side::layout::Slot;
use super::*;
use crate::backend::{Linux, Loaded};

const SWITCHES: u64 = 3;

fn loaded(backend: &mut Linux, configs: &[u64]) -> Loaded {
    let event = |&config| PlannedEvent {
        set: SetId(0),
        pmd: PmdIndex(0),
        encoding: Arc::new(Encoding {
            pmu_type: pmu_type::SOFTWARE,
            config,
            ..Encoding::default()
        }),
        group: Group::Free,
        period: 0,
    };
    let plan = LoadPlan {
        target: Target::CurrentThread,
        inherit: Inherit::None,
        start_on: StartOn::Call,
        active: SetId(0),
        always: Vec::new(),
        timed: false,
        events: configs.iter().map(event).collect(),
    };
    backend.load(&plan).unwrap().0
}

/// A backend with fast reads, if this machine has any; else says that `name` is skipped.
fn fast(name: &str) -> Option<Linux> {
    let mut backend = Linux::new();
    backend.set_fast_reads(true);
    let path = Fast::load(&[], true).path();
    assert_eq!(path, ReadPath::Group { why: "there is no event".into() });
    match Watched::calling_thread() {
        Ok(_) => Some(backend),
        Err(refusal) => {
            let _ = writeln!(std::io::stderr(), "skipped: {name}: {refusal}");
            None
        }
    }
}

fn slot(watched: &Watched) -> [u8; size_of::<Slot>()] {
    let mut slot = [0; size_of::<Slot>()];
    let map = watched.kernel().loaded.map("SLOTS").unwrap();
    map.raw().lookup(&watched.slot.to_ne_bytes(), &mut slot).unwrap();
    slot
}

fn get(watched: &Watched, offset: usize) -> u64 {
    u64::from_ne_bytes(slot(watched)[offset..offset + 8].try_into().unwrap())
}

/// Sets a word of the slot, as no program does.
fn set(watched: &Watched, offset: usize, value: u64) {
    let mut slot = slot(watched);
    slot[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
    let map = watched.kernel().loaded.map("SLOTS").unwrap();
    map.raw().update(&watched.slot.to_ne_bytes(), &slot).unwrap();
}

fn sleep(times: usize) {
    (0..times).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(200)));
}

/// Check that a slot that stays odd is seen, that the events go on as perf events, and that the readings do not hide the
/// time between.
#[test]
fn a_spoilt_slot_is_not_read() {
    let Some(mut backend) = fast("a_spoilt_slot_is_not_read") else { return };
    let mut loaded = loaded(&mut backend, &[SWITCHES]);
    assert_eq!(loaded.read_path(), ReadPath::Mapped);
    backend.start(&mut loaded, SetId(0)).unwrap();
    sleep(10);
    let mut readings = [Reading::default()];
    backend.read(&mut loaded, &mut readings).unwrap();
    let [good] = readings;
    assert!(good.value >= 10 && good.enabled_ns == good.running_ns, "{good:?}");

    let watched = Watched::calling_thread().unwrap();
    let sequence = get(&watched, offset_of!(Slot, sequence));
    // As a program leaves it that never ends.
    set(&watched, offset_of!(Slot, sequence), sequence | 1);
    assert!(!loaded.read_values(&mut [0]));
    backend.read(&mut loaded, &mut readings).unwrap();
    let [fallen] = readings;
    assert!(matches!(loaded.read_path(), ReadPath::Group { why } if why.contains("not kept")));
    assert_eq!(fallen.value, good.value);
    assert!(fallen.enabled_ns > fallen.running_ns, "{fallen:?}");

    sleep(10);
    backend.stop(&mut loaded, SetId(0)).unwrap();
    backend.read(&mut loaded, &mut readings).unwrap();
    let [last] = readings;
    assert!((10..100).contains(&(last.value - fallen.value)), "{fallen:?} and {last:?}");
    let more = (last.enabled_ns - fallen.enabled_ns, last.running_ns - fallen.running_ns);
    assert_eq!(more.0, more.1, "all of it was counted since");
    sleep(10);
    backend.read(&mut loaded, &mut readings).unwrap();
    assert_eq!(readings, [last]);
}

/// Check that what a program finds out for a thread whose coming to its CPU was not seen, is what the slot would say.
#[test]
fn an_unseen_arrival_is_made_up_for() {
    let Some(_) = fast("an_unseen_arrival_is_made_up_for") else { return };
    let watched = Watched::calling_thread().unwrap();
    sleep(3);
    let counts = |watched: &Watched| watched.counts(&[0; COUNTS]).unwrap();
    let before = counts(&watched);
    set(&watched, offset_of!(Slot, on_since_ns), 0);
    let unseen = counts(&watched);
    assert_eq!(unseen[1..], before[1..]);
    let apart_ns = unseen[0].abs_diff(before[0]);
    assert!(apart_ns < 1_000_000, "{apart_ns}");
    // A move that was not seen either.
    let moves = get(&watched, offset_of!(Slot, moves));
    set(&watched, offset_of!(Slot, moves), moves + 1);
    assert_eq!(counts(&watched)[2], before[2] + 1);
    sleep(1);
    let after = counts(&watched);
    assert!(after[1] > before[1] && after[2] > before[2], "{before:?} and {after:?}");
}
