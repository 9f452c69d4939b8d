use proptest::prelude::*;

use super::*;

/// What is dishonest about `count`, made from `reading`, of an event that occurred `truth` times at a
/// constant rate.
fn dishonesty(reading: &Reading, count: &Count, truth: u64) -> Option<&'static str> {
    let full = reading.running_ns == reading.enabled_ns;
    match count {
        Count::Exact(_) if !full => Some("exact, but the event did not run all the time"),
        Count::Exact(value) if *value != truth => Some("exact, but wrong"),
        Count::Estimated(_) if full => Some("estimated, but the event ran all the time"),
        Count::Estimated(estimate) if estimate.value.abs_diff(truth) > 1 => Some("a bad estimate"),
        Count::Estimated(estimate) if estimate.counted > truth => {
            Some("more counted than occurred")
        }
        Count::NotCounted(_) if reading.running_ns > 0 => Some("not counted, but the event ran"),
        Count::Unsupported(_) => Some("unsupported, but the event was had"),
        _ => None,
    }
}

/// Check that the check of honesty objects to each kind of lie.
#[test]
fn lies_are_found() {
    let estimated = |value, counted| {
        let reason = Reason::SharedPmu;
        let method = perfmon_core::Method::Time;
        let (stderr, interval95, residences) = (None, None, None);
        Count::Estimated(Estimate {
            value,
            counted,
            method,
            residences,
            stderr,
            interval95,
            reason,
        })
    };
    let [full, part, none] = [100, 40, 0].map(|running_ns| counted(40, 100, running_ns));
    let never = || Count::NotCounted(Reason::NeverScheduled);
    for (reading, honest) in [(full, Count::Exact(40)), (part, estimated(101, 40)), (none, never())]
    {
        assert_eq!(dishonesty(&reading, &honest, if reading == full { 40 } else { 100 }), None);
    }
    for (reading, lie) in [
        (part, Count::Exact(100)),
        (none, Count::Exact(0)),
        (full, Count::Exact(99)),
        (full, estimated(100, 100)),
        (part, estimated(98, 40)),
        (part, estimated(100, 101)),
        (part, never()),
        (part, Count::Unsupported(Reason::NeverScheduled)),
    ] {
        assert!(dishonesty(&reading, &lie, 100).is_some(), "{lie:?} of {reading:?} passed");
    }
}

/// Events by their rate and group (0 is none).
fn events() -> impl Strategy<Value = Vec<(u16, u16)>> {
    proptest::collection::vec((0..=OCCURRENCES_PER_US_MAX, 0u16..4), 1..12)
}

proptest! {
    #![proptest_config(crate::config())]

    /// Check that events of constant rate are counted exactly if they fit and estimated within rounding
    /// if they take turns, that a group runs as one, and that no more run at once than there are
    /// counters.
    #[test]
    fn shared_pmu(
        events in events(),
        counters in 1usize..6,
        slice_us in 1u64..20,
        runs_us in proptest::collection::vec(0u64..100, 1..6),
    ) {
        let mut sim = Sim::new(Pmu { counters, width: Width::FULL, slice_ns: slice_us * 1000 });
        let mut planned = Vec::new();
        for (config, &(rate, group)) in (0..).zip(&events) {
            sim.event(config, Script::constant(rate));
            planned.push((config, if group == 0 { Group::Free } else { Group::Together(group) }));
        }
        let (mut loaded, outcomes) = sim.load(&plan(&planned)).unwrap();
        let mut enabled_ns = 0;
        for run_us in runs_us {
            sim.start(&mut loaded, SET0).unwrap();
            prop_assert_eq!(sim.run_for(run_us * 1000), None);
            sim.stop(&mut loaded, SET0).unwrap();
            prop_assert_eq!(sim.run_for(7000), None);
            enabled_ns += run_us * 1000;
        }
        let readings = read(&mut sim, &mut loaded, events.len());
        let all = || planned.iter().zip(&readings).zip(&outcomes);
        for ((&(config, group), reading), outcome) in all() {
            let size = planned.iter().filter(|(_, other)| *other == group).count();
            prop_assert_eq!(outcome.is_ok(), group == Group::Free || size <= counters);
            if outcome.is_err() {
                prop_assert_eq!(*reading, Reading::default());
                continue;
            }
            prop_assert_eq!(reading.enabled_ns, enabled_ns);
            let truth = sim.occurrences(config, 0, enabled_ns).unwrap();
            prop_assert_eq!(dishonesty(reading, &Count::from_reading(reading), truth), None);
            for ((&(_, mate), other), _) in all() {
                if mate == group && group != Group::Free {
                    prop_assert_eq!(reading.running_ns, other.running_ns);
                }
            }
        }
        let running_ns: u64 = readings.iter().map(|reading| reading.running_ns).sum();
        prop_assert!(running_ns <= enabled_ns * counters as u64);
    }

    /// Check that the sum over contexts is the sum of what occurred, exact or within rounding, and that
    /// one starved part leaves it without a value.
    #[test]
    fn sums_over_contexts(
        rates in proptest::collection::vec(1..=OCCURRENCES_PER_US_MAX, 1..4),
        contexts in 1u32..5,
        starved: bool,
    ) {
        let mut sim = Sim::new(Pmu { counters: 2, width: Width::FULL, slice_ns: 1000 });
        let configs: Vec<u64> = (0..).take(rates.len()).collect();
        configs.iter().zip(&rates).for_each(|(&config, &rate)| sim.event(config, Script::constant(rate)));
        if starved {
            sim.starve(0);
        }
        let plan = plan(&configs.iter().map(|&config| (config, Group::Free)).collect::<Vec<_>>());
        let mut all = Vec::new();
        for thread in 0..contexts {
            let target = Target::Thread(thread);
            let (mut loaded, _) = sim.load(&LoadPlan { target, ..plan.clone() }).unwrap();
            sim.start(&mut loaded, SET0).unwrap();
            all.push(loaded);
        }
        prop_assert_eq!(sim.run_for(30_000), None);
        let mut sums = vec![Tally::zero(); rates.len()];
        for (loaded, thread) in all.iter_mut().zip(0..) {
            let readings = read(&mut sim, loaded, rates.len());
            for (sum, reading) in sums.iter_mut().zip(&readings) {
                sum.add(&Tally::from_reading(reading), &format!("thread {thread}"));
            }
        }
        for (&config, sum) in configs.iter().zip(&sums) {
            let truth = sim.occurrences(config, 0, 30_000).unwrap() * u64::from(contexts);
            if starved && config == 0 {
                let part = Reason::Part("thread 0".into(), Box::new(Reason::NeverScheduled));
                prop_assert_eq!(&sum.count, &Count::NotCounted(part));
                continue;
            }
            let competing = rates.len() - usize::from(starved);
            prop_assert_eq!(sum.count.exact().is_some(), competing <= 2);
            let error = sum.count.value().unwrap().abs_diff(truth);
            let rounding = if competing <= 2 { 0 } else { u64::from(contexts) };
            prop_assert!(error <= rounding);
        }
    }
}
