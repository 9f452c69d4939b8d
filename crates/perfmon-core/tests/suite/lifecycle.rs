use super::*;

/// Check which steps each state refuses, and with which errno.
#[test]
fn states_refuse_steps() {
    let mut context = context();
    let not_loaded = ModelError::NotLoaded { step: "start" };
    assert_eq!(context.start(), Err(not_loaded.clone()));
    assert_eq!(context.start_set(Some(SET0), &mut not_random), Err(not_loaded));
    assert_eq!(context.stop().unwrap_err().errno_name(), "EINVAL");
    assert_eq!(context.restart(&mut not_random).unwrap_err().errno_name(), "EBUSY");
    context.unload();
    assert_eq!(context.state(), State::Unloaded);

    load(&mut context);
    assert_eq!((context.state(), context.is_started()), (State::Loaded, false));
    let again = context.load(THREAD, Inherit::None, StartOn::Call).unwrap_err();
    assert_eq!(again, ModelError::Busy { step: "load", state: State::Loaded });
    assert_eq!(again.errno_name(), "EBUSY");
    assert_eq!(again.to_string(), "the context is Loaded; load needs it unloaded");
    assert_eq!(context.restart(&mut not_random), Err(ModelError::NoRestartGranted));
    let no_set = ModelError::NoSuchSet(SetId(7));
    assert_eq!(context.start_set(Some(SetId(7)), &mut not_random), Err(no_set));
    assert!(!context.is_started());

    assert_eq!((context.start(), context.start()), (Ok(SET0), Ok(SET0)));
    assert!(context.is_counting());
    assert_eq!((context.stop(), context.stop()), (Ok(SET0), Ok(SET0)));
    assert!(!context.is_counting());
    context.unload();
    assert_eq!((context.state(), context.is_started()), (State::Unloaded, false));
}

/// Check that a target must be of the context's kind, and that no thread blocks itself.
#[test]
fn targets_must_fit() {
    let flags = |system_wide, notify_block| ContextFlags {
        system_wide,
        notify_block,
        ..Default::default()
    };
    let load = |flags, target, set| {
        let mut context = Context::new(description(), flags).unwrap();
        let plan = context.load_set(target, Inherit::None, StartOn::Call, set);
        assert_eq!(plan.is_ok(), context.state() == State::Loaded);
        plan.map(|plan| plan.target)
    };
    assert_eq!(load(flags(false, false), THREAD, SET0), Ok(THREAD));
    assert_eq!(load(flags(true, false), Target::Cpu(0), SET0), Ok(Target::Cpu(0)));
    assert_eq!(load(flags(false, true), THREAD, SET0), Ok(THREAD));
    for (flags, target) in [
        (flags(false, false), Target::Cpu(0)),
        (flags(true, false), THREAD),
        (flags(false, true), Target::CurrentThread),
    ] {
        let refused = load(flags, target, SET0).unwrap_err();
        assert!(matches!(refused, ModelError::Conflict(_)));
        assert_eq!(refused.errno_name(), "EINVAL");
    }
    assert_eq!(load(flags(false, false), THREAD, SET1), Err(ModelError::NoSuchSet(SET1)));
    assert!(Context::new(description(), flags(true, true)).is_err());
}

/// Check that a plan has the events of used PMDs with a programmed PMC, by set and PMD.
#[test]
fn plan_has_used_events() {
    let mut context = context();
    context.create_set(SET1, SwitchPolicy::Stay).unwrap();
    program(&mut context, SET1, 2, 0);
    program(&mut context, SET1, 0, 0);
    program(&mut context, SET0, 1, 0);
    context.write_pmd(SET0, PMD0, 0).unwrap();
    context.write_pmc(SET1, PmcIndex(1), Arc::new(Encoding::default()), Group::Free).unwrap();
    let events = load(&mut context).events;
    let planned: Vec<_> = events.iter().map(|event| (event.set.0, event.pmd.0)).collect();
    assert_eq!(planned, [(0, 1), (1, 0), (1, 2)]);
    assert_eq!(events[2].encoding.config, 2);
}

/// Check that a PMD without an event stands still and takes no other PMD's reading.
#[test]
fn fold_skips_pmds_without_an_event() {
    let mut context = context();
    context.write_pmd(SET0, PMD0, 50).unwrap();
    program(&mut context, SET0, 1, 0);
    context.write_pmd(SET0, PmdIndex(2), 70).unwrap();
    program(&mut context, SET0, 3, 0);
    assert_eq!(load(&mut context).events.len(), 2);
    context.start().unwrap();
    assert_eq!(fold(&mut context, [7, 9]), [7, 9]);
    let values = [0, 1, 2, 3].map(|index| value(&context, SET0, PmdIndex(index)));
    assert_eq!(values, [50, 7, 70, 9]);
}

/// Check that a refused event, and one in error, leave their PMD and their reading alone, however often
/// a buffer is used again.
#[test]
fn fold_skips_events_without_a_count() {
    let mut context = context();
    (0..3).for_each(|index| program(&mut context, SET0, index, 100));
    load(&mut context);
    context.accept(&[Ok(()), Err(Refusal::new("no")), Ok(())]);
    context.start().unwrap();
    let reading = |value, in_error| Reading { value, in_error, ..Reading::default() };
    let mut readings = [reading(1, false), reading(55, false), reading(66, true)];
    context.fold(&mut readings);
    assert_eq!(readings.map(|reading| reading.value), [101, 55, 66]);
    readings[0].value = 3;
    context.fold(&mut readings);
    let values = [0, 1, 2].map(|index| value(&context, SET0, PmdIndex(index)));
    assert_eq!(values, [103, 100, 100]);
}

/// Check that narrow counters are 64 bits wide to the reader.
#[test]
fn narrow_counters_carry() {
    let mut context = context();
    program(&mut context, SET0, 0, u64::MAX - 300);
    load(&mut context);
    context.start().unwrap();
    let values = [200, 100, 10, 9].map(|raw| fold(&mut context, [raw])[0]);
    // 200, then 156 on past 2⁸, then 166 on past 2⁸ and 2⁶⁴, then 255 on.
    assert_eq!(values, [u64::MAX - 100, 55, 221, 476]);
}

/// Check that values stay after unload and carry on at the next load, elsewhere and from raw 0.
#[test]
fn counts_carry_on_from_load_to_load() {
    let mut context = context();
    program(&mut context, SET0, 0, 10);
    load(&mut context);
    context.start().unwrap();
    fold(&mut context, [200]);
    context.unload();
    assert_eq!(value(&context, SET0, PMD0), 210);
    assert_eq!(fold(&mut context, [255]), [210]);
    context.load(Target::Thread(2), Inherit::None, StartOn::Call).unwrap();
    context.start().unwrap();
    assert_eq!(fold(&mut context, [3]), [213]);
    let expected = PmdValue { value: 213, last_reset_value: 10, switch_count_left: 0 };
    assert_eq!(context.read_pmd(SET0, PMD0), Ok(expected));
    assert_eq!(context.set_info(SET0).unwrap().runs, 2);
}

/// Check that a load that the backend could not carry out leaves no run behind.
#[test]
fn undone_load_counts_no_run() {
    let mut context = context();
    context.undo_load();
    load(&mut context);
    context.undo_load();
    assert_eq!((context.state(), context.set_info(SET0).unwrap().runs), (State::Unloaded, 0));
}

/// Check that an exec starts a context, in the set that is active, and that a load starts none of several sets.
#[test]
fn exec_starts() {
    let mut context = context();
    let load = |context: &mut Context| context.load(THREAD, Inherit::Tree, StartOn::Exec);
    let plan = load(&mut context).unwrap();
    assert_eq!((plan.inherit, plan.start_on), (Inherit::Tree, StartOn::Exec));
    assert!(context.is_started());
    context.unload();
    context.create_set(SET1, SwitchPolicy::Stay).unwrap();
    context.create_set(SetId(7), SwitchPolicy::Always).unwrap();
    let plan = context.load_set(THREAD, Inherit::Tree, StartOn::Exec, SET1).unwrap();
    assert_eq!((plan.active, plan.always), (SET1, vec![SetId(7)]));
    context.unload();
    let loaded = context.load(THREAD, Inherit::Tree, StartOn::Load);
    assert!(matches!(loaded, Err(ModelError::Conflict(_))));
    let takes_none = context.load_set(THREAD, Inherit::None, StartOn::Call, SetId(7));
    assert!(matches!(takes_none, Err(ModelError::Conflict(_))));
}

/// Check that the end of another thread unloads with an end message, that of one's own without.
#[test]
fn end_of_the_target() {
    for (target, message) in [(THREAD, Some(Message::End)), (Target::CurrentThread, None)] {
        let mut context = context();
        context.target_ended();
        assert_eq!(context.next_message(), None);
        context.load(target, Inherit::None, StartOn::Call).unwrap();
        context.target_ended();
        assert_eq!((context.state(), context.next_message()), (State::Unloaded, message));
    }
}
