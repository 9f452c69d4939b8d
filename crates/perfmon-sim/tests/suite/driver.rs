use super::*;

/// A started driver on a machine of 8-bit counters with one event (PMD 0) at one a nanosecond and one
/// (PMD 1) at half that, `pmd` written to PMD 0.
fn started(pmd: PmdAttributes) -> (Sim, Driver) {
    let sim = Sim::new(Pmu { width: width(8), ..Pmu::default() });
    let mut driver = Driver::new(&sim, ContextFlags::default(), 1).unwrap();
    for (index, rate) in [(0, 1000), (1, 500)] {
        sim.event(u64::from(index), Script::constant(rate));
        let event = Arc::new(encoding(u64::from(index)));
        driver.context_mut().write_pmc(SET0, PmcIndex(index), event, Group::Free).unwrap();
        driver.context_mut().write_pmd(SET0, PmdIndex(index), 0).unwrap();
    }
    driver.context_mut().write_pmd_attributes(SET0, PmdIndex(0), &pmd).unwrap();
    assert_eq!(driver.load(THREAD, SET0), Ok(vec![Ok(()); 2]));
    driver.start(None).unwrap();
    (sim, driver)
}

fn values(driver: &mut Driver) -> [u64; 2] {
    driver.sync().unwrap();
    [0, 1].map(|index| driver.context().read_pmd(SET0, PmdIndex(index)).unwrap().value)
}

/// Check that 64-bit values are exact over many wraps of narrow counters, which are no overflows.
#[test]
fn values_are_exact_over_wraps() {
    let (_, mut driver) = started(PmdAttributes { value: 10, ..Default::default() });
    let interrupts = driver.run_for(10_000).unwrap();
    assert_eq!(values(&mut driver), [10_010, 5_000]);
    // 10000 / 128 half ranges; those of PMD 1 (every 256 ns) fall on instants of PMD 0's.
    assert_eq!(interrupts, vec![Interrupt::default(); 78]);
}

/// Check that a period ends at its last event, the other values are those of that instant, and each restart
/// begins the next one there.
#[test]
fn periods_are_exact() {
    let period = 1000u64.wrapping_neg();
    let pmd =
        PmdAttributes { value: period, long_reset: period, notify: true, ..Default::default() };
    let (sim, mut driver) = started(pmd);
    for round in 1..=5 {
        let overflows: Vec<_> = driver.run_for(2000).unwrap();
        let overflows: Vec<_> = overflows.iter().filter(|interrupt| interrupt.notify).collect();
        assert_eq!(overflows.len(), 1);
        // 1000 ns of each round were masked.
        assert_eq!((sim.now_ns(), values(&mut driver)), (round * 2000, [0, round * 500]));
        assert_eq!(driver.context().set_info(SET0).unwrap().active_duration_ns, round * 1000);
        driver.restart().unwrap();
        assert!(matches!(driver.context_mut().next_message(), Some(Message::Overflow(_))));
    }
    assert_eq!(driver.restart(), Err(ModelError::NoRestartGranted.into()));
}

/// Check that a target's end unloads the context with its last counts and an end message, and that
/// it can't be loaded again, which counts no run.
#[test]
fn end_of_the_target() {
    let (sim, mut driver) = started(PmdAttributes::default());
    sim.exit_at(THREAD, 777);
    assert!(driver.run_for(2000).is_ok());
    assert_eq!(driver.context().state(), State::Unloaded);
    assert_eq!(values(&mut driver), [777, 388]);
    assert_eq!(driver.context_mut().next_message(), Some(Message::End));
    let gone = driver.load(THREAD, SET0).unwrap_err();
    assert_eq!(gone.to_string(), "no such thread (ESRCH from perf_event_open)");
    let info = driver.context().set_info(SET0).unwrap();
    assert_eq!((info.runs, info.active_duration_ns), (1, 777));
}

/// Check that sets that are left by time share it, and that each counts in its own turn only.
#[test]
fn sets_share_the_time() {
    let (_, mut driver) = started(PmdAttributes::default());
    driver.unload().unwrap();
    for (set, timeout_ns) in [(0, 100), (1, 300)] {
        let set = SetId(set);
        let policy = SwitchPolicy::Timeout { timeout_ns, randomised: false };
        driver.context_mut().create_set(set, policy).unwrap();
        let event = Arc::new(encoding(0));
        driver.context_mut().write_pmc(set, PmcIndex(0), event, Group::Free).unwrap();
        driver.context_mut().write_pmd(set, PmdIndex(0), 0).unwrap();
    }
    driver.load(THREAD, SET0).unwrap();
    driver.start(None).unwrap();
    assert!(driver.run_for(4150).is_ok());
    driver.stop().unwrap();
    driver.sync().unwrap();
    let facts = [0, 1].map(|set| {
        let info = driver.context().set_info(SetId(set)).unwrap();
        let value = driver.context().read_pmd(SetId(set), PmdIndex(0)).unwrap().value;
        (info.runs, info.active_duration_ns, value)
    });
    assert_eq!(facts, [(11, 1100, 1100), (11, 3050, 3050)]);
}
