use super::*;

const ORIGIN: Origin = Origin { process: 1, thread: 2, cpu: 3, ip: 4 };

/// A started context whose PMDs 0 and 1 count, with `pmd` written to PMD 0 in `policy`.
fn started(policy: SwitchPolicy, pmd: PmdAttributes) -> Context {
    started_with(ContextFlags::default(), policy, pmd)
}

fn started_with(flags: ContextFlags, policy: SwitchPolicy, pmd: PmdAttributes) -> Context {
    let mut context = Context::new(description(), flags).unwrap();
    context.create_set(SET0, policy).unwrap();
    program(&mut context, SET0, 0, 0);
    program(&mut context, SET0, 1, 0);
    context.write_pmd_attributes(SET0, PMD0, &pmd).unwrap();
    load(&mut context);
    context.start().unwrap();
    context
}

/// A PMD that overflows after 10 events and notifies.
fn notifying() -> PmdAttributes {
    let period = |events: u64| events.wrapping_neg();
    PmdAttributes {
        value: period(10),
        long_reset: period(20),
        short_reset: period(30),
        notify: true,
        ..PmdAttributes::default()
    }
}

fn interrupt(context: &mut Context, pmds: &[u16]) -> Interrupt {
    context.interrupt(&registers(pmds), ORIGIN, &mut not_random)
}

fn masking(pmds: &[u16], notify: bool) -> Interrupt {
    Interrupt {
        overflowed_pmds: registers(pmds),
        mask: true,
        notify,
        block: false,
        orders: Orders { stop: Some(SET0), start: None },
    }
}

/// Check that a wrap of the raw counter is no overflow; only one of the 64-bit value is.
#[test]
fn raw_wrap_is_no_overflow() {
    let mut context = started(SwitchPolicy::Stay, PmdAttributes { value: 0, ..notifying() });
    fold(&mut context, [255, 0]);
    assert_eq!(fold(&mut context, [0, 0]), [256, 0]);
    assert_eq!(interrupt(&mut context, &[0]), Interrupt::default());
    assert_eq!(context.state(), State::Loaded);
}

/// Check what a notification does: masks, queues one message, wakes, grants one restart, loads nothing.
#[test]
fn notification() {
    let mut context = started(SwitchPolicy::Stay, notifying());
    assert_eq!(fold(&mut context, [10, 4]), [0, 4]);
    assert_eq!(interrupt(&mut context, &[0, 1]), masking(&[0], true));
    assert_eq!(context.state(), State::Masked);
    assert_eq!(context.set_info(SET0).unwrap().overflowed_pmds, registers(&[0]));
    let message = OverflowMessage { set: SET0, overflowed_pmds: registers(&[0]), origin: ORIGIN };
    assert_eq!(context.next_message(), Some(Message::Overflow(message)));
    assert_eq!(context.next_message(), None);
    assert_eq!(context.read_pmd(SET0, PMD0).unwrap().last_reset_value, 10u64.wrapping_neg());

    let resumed = Orders { stop: None, start: Some(SET0) };
    assert_eq!(context.restart(&mut not_random), Ok(resumed));
    assert_eq!(context.state(), State::Loaded);
    let long = 20u64.wrapping_neg();
    let expected = PmdValue { value: long, last_reset_value: long, switch_count_left: 0 };
    assert_eq!(context.read_pmd(SET0, PMD0), Ok(expected));
    assert_eq!(value(&context, SET0, PMD1), 4);
    assert_eq!(context.restart(&mut not_random), Err(ModelError::NoRestartGranted));
}

/// Check that masked values are frozen whatever the counters do, and counting resumes from them.
#[test]
fn masked_values_are_frozen() {
    let mut context = started(SwitchPolicy::Stay, notifying());
    fold(&mut context, [10, 4]);
    let _ = interrupt(&mut context, &[0]);
    for raw in [[15, 9], [250, 100], [3, 200]] {
        assert_eq!(fold(&mut context, raw), [0, 4]);
    }
    let _ = context.restart(&mut not_random).unwrap();
    assert_eq!(fold(&mut context, [5, 210]), [18u64.wrapping_neg(), 14]);
}

/// Check that an overflow which nobody asked to hear of masks for good: no restart is granted.
#[test]
fn saturation() {
    let mut context = started(SwitchPolicy::Stay, PmdAttributes { notify: false, ..notifying() });
    fold(&mut context, [12, 0]);
    assert_eq!(interrupt(&mut context, &[0]), masking(&[0], false));
    assert_eq!(context.next_message(), None);
    assert_eq!(context.restart(&mut not_random), Err(ModelError::NoRestartGranted));
    assert_eq!(context.state(), State::Masked);
}

/// Check that interrupts while masked, stopped or unloaded are spurious, and that an overflow in flight
/// at the stop is in the value and never processed.
#[test]
fn spurious_interrupts() {
    let mut context = started(SwitchPolicy::Stay, notifying());
    context.stop().unwrap();
    assert_eq!(fold(&mut context, [11, 0]), [1, 0]);
    assert_eq!(interrupt(&mut context, &[0]), Interrupt::default());
    context.start().unwrap();
    assert_eq!(interrupt(&mut context, &[0]), Interrupt::default());

    context.write_pmd(SET0, PMD0, u64::MAX).unwrap();
    fold(&mut context, [12, 0]);
    assert!(interrupt(&mut context, &[0]).mask);
    assert_eq!(interrupt(&mut context, &[0]), Interrupt::default());
    context.unload();
    assert_eq!(interrupt(&mut context, &[0]), Interrupt::default());
}

/// Check that an overflow that a read sees first is still processed by its interrupt, unless the PMD is
/// written in between.
#[test]
fn reads_before_the_interrupt() {
    let mut context = started(SwitchPolicy::Stay, notifying());
    fold(&mut context, [11, 0]);
    context.start().unwrap();
    assert_eq!(fold(&mut context, [12, 0]), [2, 0]);
    assert_eq!(interrupt(&mut context, &[0]), masking(&[0], true));

    let mut context = started(SwitchPolicy::Stay, notifying());
    fold(&mut context, [11, 0]);
    context.write_pmd(SET0, PMD0, 0).unwrap();
    assert_eq!(interrupt(&mut context, &[0]), Interrupt::default());
}

/// Check that a restart resets the overflowed PMDs and those they name, takes random bits off, and reports
/// what it loaded.
#[test]
fn reset_pmds_and_randomisation() {
    let pmd = PmdAttributes {
        reset_pmds: registers(&[1, 2]),
        random: true,
        random_mask: 0xf0,
        ..notifying()
    };
    let mut context = started(SwitchPolicy::Stay, pmd);
    context
        .write_pmd_attributes(SET0, PMD1, &PmdAttributes { long_reset: 77, ..Default::default() })
        .unwrap();
    fold(&mut context, [10, 4]);
    let _ = interrupt(&mut context, &[0]);
    let mut drawn = 0;
    let mut random = || {
        drawn += 1;
        0xffff_ff5a
    };
    let _ = context.restart(&mut random).unwrap();
    let values = [0, 1, 2].map(|index| context.read_pmd(SET0, PmdIndex(index)).unwrap());
    let expected = [20u64.wrapping_neg() - 0x50, 77, 0];
    assert_eq!(values.map(|pmd| pmd.value), expected);
    assert_eq!(values.map(|pmd| pmd.last_reset_value), expected);
    assert_eq!(drawn, 1);
}

/// Check that stop leaves a masked context masked, that a start waits for the restart, and that a
/// restart starts nothing that is stopped.
#[test]
fn start_and_stop_while_masked() {
    let mut context = started(SwitchPolicy::Stay, notifying());
    fold(&mut context, [10, 0]);
    let _ = interrupt(&mut context, &[0]);
    context.stop().unwrap();
    assert_eq!(context.state(), State::Masked);
    assert_eq!(context.start_set(None, &mut not_random), Ok(Orders::default()));
    assert_eq!((context.state(), context.is_counting()), (State::Masked, false));
    context.stop().unwrap();
    assert_eq!(context.restart(&mut not_random), Ok(Orders::default()));
    assert_eq!((context.state(), context.is_started()), (State::Loaded, false));
}

/// Check that unloading forgets the right to restart and keeps messages, and that the next load empties
/// the queue and forgets overflows.
#[test]
fn unload_and_load_after_an_overflow() {
    let mut context = started(SwitchPolicy::Stay, notifying());
    fold(&mut context, [10, 0]);
    let _ = interrupt(&mut context, &[0]);
    let mut kept = context.clone();
    context.unload();
    assert_eq!(context.restart(&mut not_random), Err(ModelError::NoRestartGranted));
    assert!(context.next_message().is_some());

    kept.unload();
    load(&mut kept);
    assert_eq!(kept.next_message(), None);
    assert!(kept.set_info(SET0).unwrap().overflowed_pmds.is_empty());
    let quiet = PmdAttributes { notify: false, ..notifying() };
    kept.write_pmd_attributes(SET0, PMD0, &quiet).unwrap();
    kept.start().unwrap();
    fold(&mut kept, [10, 0]);
    assert_eq!(interrupt(&mut kept, &[0]), masking(&[0], false));
    assert_eq!(kept.restart(&mut not_random), Err(ModelError::NoRestartGranted));
}

/// Check that an overflow which was seen and not processed when its set was left is forgotten when the
/// set becomes active again.
#[test]
fn overflow_in_flight_at_a_switch() {
    let mut context = started(SwitchPolicy::Stay, notifying());
    context.unload();
    context.create_set(SET1, SwitchPolicy::Stay).unwrap();
    load(&mut context);
    context.start().unwrap();
    assert_eq!(fold(&mut context, [11, 0]), [1, 0]);
    for set in [SET1, SET0] {
        assert!(context.start_set(Some(set), &mut not_random).is_ok());
    }
    assert_eq!(interrupt(&mut context, &[0]), Interrupt::default());
    assert_eq!(value(&context, SET0, PMD0), 1);
}

/// Check that the ninth unread message is not queued, notifies nobody and grants no restart.
#[test]
fn message_queue_is_bounded() {
    let pmd = PmdAttributes { long_reset: u64::MAX, value: u64::MAX, ..notifying() };
    let mut context = started(SwitchPolicy::Stay, pmd);
    for raw in 1..=8 {
        fold(&mut context, [raw, 0]);
        assert!(interrupt(&mut context, &[0]).notify);
        let _ = context.restart(&mut not_random).unwrap();
    }
    fold(&mut context, [9, 0]);
    assert_eq!(interrupt(&mut context, &[0]), masking(&[0], false));
    assert_eq!(context.restart(&mut not_random), Err(ModelError::NoRestartGranted));
    // The end is told in any case.
    context.target_ended();
    assert_eq!(std::iter::from_fn(|| context.next_message()).count(), 9);
}

/// Check that a context without messages notifies and grants all the same, and never runs full.
#[test]
fn no_overflow_message() {
    let flags = ContextFlags { no_overflow_message: true, ..ContextFlags::default() };
    let pmd = PmdAttributes { long_reset: u64::MAX, value: u64::MAX, ..notifying() };
    let mut context = started_with(flags, SwitchPolicy::Stay, pmd);
    for raw in 1..=20 {
        fold(&mut context, [raw, 0]);
        assert!(interrupt(&mut context, &[0]).notify);
        assert_eq!(context.next_message(), None);
        let _ = context.restart(&mut not_random).unwrap();
    }
}

/// Check that a notification blocks the thread if the context is made so.
#[test]
fn notify_block() {
    let flags = ContextFlags { notify_block: true, ..ContextFlags::default() };
    let mut context = started_with(flags, SwitchPolicy::Stay, notifying());
    fold(&mut context, [10, 0]);
    assert!(interrupt(&mut context, &[0]).block);
    let quiet = PmdAttributes { notify: false, ..notifying() };
    let mut context = started_with(flags, SwitchPolicy::Stay, quiet);
    fold(&mut context, [10, 0]);
    assert!(!interrupt(&mut context, &[0]).block);
}

/// Check that a set is left at the overflow for which a PMD's count runs out, and that its own PMDs get
/// their short values when its turn comes again.
#[test]
fn switch_by_overflow() {
    let pmd = PmdAttributes { notify: false, switch_count: 1, ..notifying() };
    let mut context = started(SwitchPolicy::Overflow, pmd);
    context.unload();
    context.create_set(SET1, SwitchPolicy::Timeout { timeout_ns: 5, randomised: false }).unwrap();
    load(&mut context);
    context.start().unwrap();
    fold(&mut context, [10, 0]);
    let switched = interrupt(&mut context, &[0]);
    let to_set_1 = Orders { stop: Some(SET0), start: Some(SET1) };
    let expected = Interrupt { mask: false, orders: to_set_1, ..masking(&[0], false) };
    assert_eq!((switched, context.state()), (expected, State::Loaded));
    let left = |context: &Context| {
        let pmd = context.read_pmd(SET0, PMD0).unwrap();
        (pmd.value, pmd.switch_count_left)
    };
    assert_eq!(left(&context), (0, 0));

    context.elapse(5);
    let orders = context.timeout(&mut not_random);
    assert_eq!(orders, Orders { stop: Some(SET1), start: Some(SET0) });
    assert_eq!(left(&context), (30u64.wrapping_neg(), 1));
}

/// Check that a switch asked for together with a notification waits for the restart, which uses long
/// values.
#[test]
fn deferred_switch() {
    let pmd = PmdAttributes { switch_count: 1, ..notifying() };
    let mut context = started(SwitchPolicy::Overflow, pmd);
    context.unload();
    context.create_set(SET1, SwitchPolicy::Stay).unwrap();
    load(&mut context);
    context.start().unwrap();
    fold(&mut context, [10, 0]);
    assert_eq!(interrupt(&mut context, &[0]), masking(&[0], true));
    assert_eq!(context.active_set(), SET0);
    let resumed = Orders { stop: None, start: Some(SET1) };
    assert_eq!(context.restart(&mut not_random), Ok(resumed));
    assert_eq!(value(&context, SET0, PMD0), 0);
    let orders = context.start_set(Some(SET0), &mut not_random);
    assert_eq!(orders, Ok(Orders { stop: Some(SET1), start: Some(SET0) }));
    assert_eq!(value(&context, SET0, PMD0), 20u64.wrapping_neg());
}

/// Check that an overflow before the one that switches masks, as in perfmon2: no switch was asked for.
#[test]
fn overflow_before_the_switch_masks() {
    let pmd = PmdAttributes { notify: false, switch_count: 2, ..notifying() };
    let mut context = started(SwitchPolicy::Overflow, pmd);
    fold(&mut context, [10, 0]);
    assert_eq!(interrupt(&mut context, &[0]), masking(&[0], false));
    assert_eq!(context.read_pmd(SET0, PMD0).unwrap().switch_count_left, 1);
}
