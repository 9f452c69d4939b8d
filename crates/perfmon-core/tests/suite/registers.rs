use std::sync::Arc;

use super::*;

fn attributes(value: u64) -> PmdAttributes {
    PmdAttributes { value, ..PmdAttributes::default() }
}

/// Check that a write is refused for each register that is not there, in perfmon2's words, and then
/// changes nothing.
#[test]
fn writes_are_refused() {
    let mut context = context();
    let event = Arc::new(Encoding::default());
    let no_set = ModelError::NoSuchSet(SET1);
    let no_pmc = ModelError::NoSuchPmc(PmcIndex(4));
    let write = context.write_pmc(SET0, PmcIndex(4), Arc::clone(&event), Group::Free);
    assert_eq!(write, Err(no_pmc.clone()));
    assert_eq!(context.write_pmc(SET1, PmcIndex(0), event, Group::Free), Err(no_set.clone()));
    assert_eq!(context.write_pmd(SET1, PMD0, 1), Err(no_set.clone()));
    let no_pmd = |index| Err(ModelError::NoSuchPmd(PmdIndex(index)));
    assert_eq!(context.write_pmd(SET0, PmdIndex(4), 1), no_pmd(4));
    let mut write = |pmd| context.write_pmd_attributes(SET0, PMD0, &pmd);
    assert_eq!(
        write(PmdAttributes { sample_pmds: registers(&[1, 9]), ..attributes(1) }),
        no_pmd(9)
    );
    assert_eq!(write(PmdAttributes { reset_pmds: registers(&[8]), ..attributes(1) }), no_pmd(8));
    let read_only = ModelError::ReadOnly(PmdIndex(3));
    let reset_pmds = registers(&[1, 3]);
    assert_eq!(write(PmdAttributes { reset_pmds, ..attributes(1) }), Err(read_only.clone()));
    assert_eq!(context.sets(), [EventSet::new(SET0, SwitchPolicy::Stay)]);
    for error in [no_set, no_pmc, read_only, ModelError::NoSuchPmd(PMD0)] {
        assert_eq!(error.errno_name(), "EINVAL");
    }
}

/// Check that a write stores all attributes, and a write of the value leaves them.
#[test]
fn attributes_are_kept() {
    let mut context = context();
    let written = PmdAttributes {
        value: 1,
        long_reset: 2,
        short_reset: 3,
        notify: true,
        random: true,
        random_mask: 4,
        reset_pmds: registers(&[1]),
        sample_pmds: registers(&[2]),
        event_id: 5,
        switch_count: 6,
    };
    context.write_pmd_attributes(SET0, PMD0, &written).unwrap();
    context.write_pmd(SET0, PMD0, 7).unwrap();
    let pmd = context.sets()[0].pmd(PMD0).unwrap();
    let kept = PmdAttributes {
        value: pmd.counter.value(),
        long_reset: pmd.long_reset,
        short_reset: pmd.short_reset,
        notify: pmd.notify,
        random: pmd.random,
        random_mask: pmd.random_mask,
        reset_pmds: pmd.reset_pmds,
        sample_pmds: pmd.sample_pmds,
        event_id: pmd.event_id,
        switch_count: pmd.switch_count,
    };
    assert_eq!(kept, PmdAttributes { value: 7, ..written });
    let expected = PmdValue { value: 7, last_reset_value: 7, switch_count_left: 6 };
    assert_eq!(context.read_pmd(SET0, PMD0), Ok(expected));
}

/// Check that PMDs named by a written one come into use at 0, in this set only, and that no other
/// PMD can be read.
#[test]
fn named_pmds_come_into_use() {
    let mut context = context();
    context.create_set(SET1, SwitchPolicy::Stay).unwrap();
    context.write_pmd(SET0, PMD1, 11).unwrap();
    let sample_pmds = registers(&[1, 3]);
    let pmd = PmdAttributes { sample_pmds, reset_pmds: registers(&[2]), ..attributes(10) };
    context.write_pmd_attributes(SET0, PMD0, &pmd).unwrap();
    let values = [0, 1, 2, 3].map(|index| value(&context, SET0, PmdIndex(index)));
    assert_eq!(values, [10, 11, 0, 0]);
    assert_eq!(context.read_pmd(SET1, PMD0), Err(ModelError::NoSuchPmd(PMD0)));
    assert_eq!(context.read_pmd(SetId(2), PMD0), Err(ModelError::NoSuchSet(SetId(2))));
    assert_eq!(context.read_pmd(SET0, PmdIndex(4)), Err(ModelError::NoSuchPmd(PmdIndex(4))));
}

/// Check that a read-only PMD keeps its value, whichever way it is written.
#[test]
fn read_only_pmd_keeps_its_value() {
    let mut context = context();
    context.write_pmd(SET0, PmdIndex(3), 5).unwrap();
    context.write_pmd_attributes(SET0, PmdIndex(3), &attributes(5)).unwrap();
    let expected = PmdValue { value: 0, last_reset_value: 0, switch_count_left: 0 };
    assert_eq!(context.read_pmd(SET0, PmdIndex(3)), Ok(expected));
}

/// Check that a loaded context takes values as of the last fold, but no PMC, and no new PMD that would
/// count if only the backend knew of it.
#[test]
fn writes_to_a_loaded_context() {
    let mut context = context();
    program(&mut context, SET0, 0, 100);
    context.write_pmc(SET0, PmcIndex(1), Arc::new(Encoding::default()), Group::Free).unwrap();
    load(&mut context);
    context.start().unwrap();
    assert_eq!(fold(&mut context, [5]), [105]);
    context.write_pmd(SET0, PMD0, 1000).unwrap();
    assert_eq!(fold(&mut context, [7]), [1002]);

    let write = context.write_pmc(SET0, PmcIndex(0), Arc::new(Encoding::default()), Group::Free);
    let busy = |step| Err(ModelError::Busy { step, state: State::Loaded });
    assert_eq!(write, busy("write_pmc"));
    assert_eq!(write.unwrap_err().errno_name(), "EBUSY");
    let first_use = "the first use of a PMD with an event";
    assert_eq!(context.write_pmd(SET0, PMD1, 1), busy(first_use));
    let naming = PmdAttributes { sample_pmds: registers(&[1, 2]), ..attributes(0) };
    assert_eq!(context.write_pmd_attributes(SET0, PMD0, &naming), busy(first_use));
    assert_eq!(context.sets()[0].pmds().len(), 1);
    // PMD 2 has no event, so it stands still in any case.
    context.write_pmd(SET0, PmdIndex(2), 9).unwrap();
    assert_eq!(fold(&mut context, [8]), [1003]);
    assert_eq!(value(&context, SET0, PmdIndex(2)), 9);
}
