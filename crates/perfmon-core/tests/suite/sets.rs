use super::*;

const BY_TIME: SwitchPolicy = SwitchPolicy::Timeout { timeout_ns: 100, randomised: false };

/// Check that sets are kept in order of their numbers, and that creation and deletion need an unloaded
/// context.
#[test]
fn create_and_delete() {
    let mut context = context();
    for id in [9, 3, 5] {
        context.create_set(SetId(id), SwitchPolicy::Stay).unwrap();
    }
    context.delete_set(SetId(3)).unwrap();
    let ids: Vec<u16> = context.sets().iter().map(|set| set.id.0).collect();
    assert_eq!(ids, [0, 5, 9]);
    assert_eq!(context.delete_set(SetId(3)), Err(ModelError::NoSuchSet(SetId(3))));
    let zero = SwitchPolicy::Timeout { timeout_ns: 0, randomised: false };
    assert_eq!(context.create_set(SET1, zero), Err(ModelError::ZeroTimeout(SET1)));
    assert_eq!(ModelError::ZeroTimeout(SET1).errno_name(), "EINVAL");
    assert_eq!(
        context.create_set(SET1, SwitchPolicy::Timeout { timeout_ns: 1, randomised: false }),
        Ok(())
    );

    load(&mut context);
    let busy = |step| Err(ModelError::Busy { step, state: State::Loaded });
    assert_eq!(context.create_set(SetId(2), BY_TIME), busy("create_set"));
    assert_eq!(context.delete_set(SetId(5)), busy("delete_set"));
}

/// Check that set 0 can be deleted, after which a load has to name another.
#[test]
fn set_0_is_no_exception() {
    let mut context = context();
    context.create_set(SET1, SwitchPolicy::Stay).unwrap();
    context.delete_set(SET0).unwrap();
    let load = context.load(THREAD, Inherit::None, StartOn::Call);
    assert_eq!(load, Err(ModelError::NoSuchSet(SET0)));
    context.load_set(THREAD, Inherit::None, StartOn::Call, SET1).unwrap();
    assert_eq!(context.start(), Ok(SET1));
}

/// Check that creating a set that exists changes it: new policy, no runs, no events, the same PMDs.
#[test]
fn create_changes_a_set_that_exists() {
    let mut context = context();
    program(&mut context, SET0, 0, 42);
    load(&mut context);
    context.start().unwrap();
    context.elapse(5);
    context.unload();
    let info = context.set_info(SET0).unwrap();
    assert_eq!((info.runs, info.active_duration_ns, info.timeout_left_ns), (1, 5, 0));
    context.create_set(SET0, BY_TIME).unwrap();
    let expected = SetInfo {
        id: SET0,
        policy: BY_TIME,
        overflowed_pmds: RegisterSet::EMPTY,
        runs: 0,
        timeout_left_ns: 100,
        active_duration_ns: 0,
        available_pmcs: registers(&[0, 1, 2, 3]),
        available_pmds: registers(&[0, 1, 2, 3]),
    };
    assert_eq!(context.set_info(SET0), Ok(expected));
    assert!(context.sets()[0].pmcs().is_empty());
    assert_eq!(value(&context, SET0, PMD0), 42);
    assert_eq!(context.set_info(SET1), Err(ModelError::NoSuchSet(SET1)));
}

/// Check that a set counts a run each time it becomes active: by load, start, and switch, but not by a
/// start of the active set.
#[test]
fn runs() {
    let mut context = context();
    context.create_set(SET0, BY_TIME).unwrap();
    context.create_set(SET1, BY_TIME).unwrap();
    let runs = |context: &Context| [SET0, SET1].map(|set| context.set_info(set).unwrap().runs);
    context.load_set(THREAD, Inherit::None, StartOn::Call, SET1).unwrap();
    assert_eq!((runs(&context), context.active_set()), ([0, 1], SET1));
    let start = |stop, start| Ok(Orders { stop, start: Some(start) });
    assert_eq!(context.start_set(Some(SET1), &mut not_random), start(None, SET1));
    assert_eq!(runs(&context), [0, 1]);
    assert_eq!(context.start_set(Some(SET0), &mut not_random), start(Some(SET1), SET0));
    assert_eq!(runs(&context), [1, 1]);
    context.elapse(100);
    let orders = context.timeout(&mut not_random);
    assert_eq!(orders, Orders { stop: Some(SET0), start: Some(SET1) });
    assert_eq!(runs(&context), [1, 2]);
    context.stop().unwrap();
    assert_eq!(context.start_set(Some(SET0), &mut not_random), start(None, SET0));
    assert_eq!(runs(&context), [2, 2]);
}

/// Check that time passes for the set that counts only, that a start restarts its timeout in full, and
/// that sets take turns.
#[test]
fn timeouts() {
    let mut context = context();
    context.create_set(SET1, BY_TIME).unwrap();
    context.create_set(SetId(2), SwitchPolicy::Stay).unwrap();
    context.load_set(THREAD, Inherit::None, StartOn::Call, SET1).unwrap();
    let times = |context: &Context| {
        let info = context.set_info(SET1).unwrap();
        (info.active_duration_ns, info.timeout_left_ns)
    };
    context.elapse(10);
    assert_eq!(times(&context), (0, 100));
    context.start().unwrap();
    context.elapse(10);
    assert_eq!(times(&context), (10, 90));
    context.start().unwrap();
    assert_eq!(times(&context), (10, 100));
    context.elapse(99);
    assert_eq!(context.timeout(&mut not_random), Orders::default());
    context.elapse(1);
    assert_eq!(times(&context), (110, 0));
    let orders = context.timeout(&mut not_random);
    assert_eq!(orders, Orders { stop: Some(SET1), start: Some(SetId(2)) });
    context.elapse(1000);
    assert_eq!(context.timeout(&mut not_random), Orders::default());
    assert_eq!(context.active_set(), SetId(2));
}

/// Check that the last set is followed by the first, and that a lone set follows itself and counts a run.
#[test]
fn sets_take_turns() {
    let mut context = context();
    context.create_set(SET0, BY_TIME).unwrap();
    load(&mut context);
    context.start().unwrap();
    context.elapse(100);
    assert_eq!(context.timeout(&mut not_random), Orders::default());
    let info = context.set_info(SET0).unwrap();
    assert_eq!((info.runs, info.timeout_left_ns), (2, 100));
    context.unload();
    context.create_set(SetId(7), BY_TIME).unwrap();
    context.load_set(THREAD, Inherit::None, StartOn::Call, SetId(7)).unwrap();
    context.start().unwrap();
    context.elapse(100);
    let orders = context.timeout(&mut not_random);
    assert_eq!(orders, Orders { stop: Some(SetId(7)), start: Some(SET0) });
}
