use crate::helper::skipped;
use perfmon_core::{Encoding, Privilege};
use perfmon_linux::{Opened, Permissions, Trial, has_core_pmu};

/// `PERF_TYPE_SOFTWARE`: `PERF_COUNT_SW_PAGE_FAULTS`, in user mode.
fn faults_user() -> Encoding {
    Encoding { pmu_type: 1, config: 2, privilege: Privilege::USER, ..Encoding::default() }
}

/// Check that an event opens as asked where this user may, and in user mode only where he may not.
#[test]
fn events_open_as_far_as_this_user_may() {
    let trial = Trial::new();
    assert_eq!(trial.open(&faults_user(), None).unwrap(), Opened::AsAsked);
    let everywhere = Encoding { privilege: Privilege::default(), ..faults_user() };
    let expected = match Permissions::current().kernel_allowed() {
        true => Opened::AsAsked,
        false => Opened::UserOnly,
    };
    assert_eq!(trial.open(&everywhere, None).unwrap(), expected);
    assert_eq!(trial.open_as_asked(&everywhere, None).is_ok(), expected == Opened::AsAsked);
}

/// Check what the kernel takes as a group: its own events, but not more than can be read at once.
#[test]
fn groups_are_the_kernels_to_judge() {
    let trial = Trial::new();
    let event = faults_user();
    let together = |count: usize| trial.together(&vec![(&event, None); count]);
    assert_eq!(together(0), Ok(true));
    assert_eq!(together(1), Ok(true));
    assert_eq!(together(200), Ok(true));
    // A read of 2100 events, 8 bytes each, is longer than 16 KiB.
    match together(2100) {
        Err(refusal) if refusal.errno_number().is_none() => {
            skipped("groups_are_the_kernels_to_judge", refusal);
        }
        fits => assert_eq!(fits, Ok(false)),
    }
}

/// Check that an event that does not open by itself is an error, and no misfit.
#[test]
fn what_does_not_open_is_an_error() {
    let unknown = Encoding { pmu_type: u32::MAX, ..Encoding::default() };
    let event = faults_user();
    let trial = Trial::new();
    for events in [vec![(&unknown, None)], vec![(&event, None), (&unknown, None)]] {
        let refusal = trial.together(&events).unwrap_err();
        assert!(refusal.errno_number().is_some(), "{refusal}");
    }
    if !has_core_pmu() {
        let cycles = Encoding { privilege: Privilege::USER, ..Encoding::default() };
        let refusal = trial.open(&cycles, None).unwrap_err();
        assert_eq!(refusal.errno_name(), Some("ENOENT"), "{refusal}");
    }
}

/// Check that a thread's events go where one of their group counts, and that two CPUs are no group.
#[test]
fn a_group_is_in_one_place() {
    let trial = Trial::new();
    let event = faults_user();
    let (first, second) = ([0], [1]);
    if let Err(refusal) = trial.open_as_asked(&event, Some(&first)) {
        return skipped("a_group_is_in_one_place", refusal);
    }
    let together = |cpus: &[Option<&[u32]>]| {
        trial.together(&cpus.iter().map(|cpus| (&event, *cpus)).collect::<Vec<_>>())
    };
    assert_eq!(together(&[None, Some(&first), None]), Ok(true));
    assert_eq!(together(&[Some(&first), None]), Ok(true));
    assert_eq!(together(&[Some(&first), Some(&second)]), Ok(false));
}
