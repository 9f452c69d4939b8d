//! Sessions on the simulated PMU: what the kernel of a machine without a PMU can't show.

use std::sync::Arc;

use perfmon::{Count, Encoding, Event, Group, Inherit, Part, Reason, Refusal, Session, StartOn};
use perfmon_core::Target;
use perfmon_core::Width;
use perfmon_sim::{Pmu, Script, Sim};

/// A PMU of `counters` counters, on which the events `e1`, `e2`, … occur 1, 2, … times per µs.
fn machine(counters: usize, events: u64) -> Sim {
    let sim = Sim::new(Pmu { counters, width: Width::new(32).unwrap(), slice_ns: 10_000 });
    for config in 1..=events {
        sim.event(config, Script::constant(u16::try_from(config).unwrap()));
    }
    sim
}

fn event(config: u64, group: Group) -> Event {
    let encoding = Encoding { config, ..Encoding::default() };
    Event {
        text: format!("e{config}"),
        item: 0,
        group,
        scale: 1.0,
        unit: "events".into(),
        cpus: None,
        counts_in_threads: true,
        pmu: None,
        encoding: Ok(Arc::new(encoding)),
    }
}

fn free(events: u64) -> Vec<Event> {
    (1..=events).map(|config| event(config, Group::Free)).collect()
}

/// A started session for `events` on the CPUs 0 to `cpus` − 1.
fn started(sim: &Sim, events: Vec<Event>, cpus: u32) -> Session<Sim> {
    let mut session = Session::with_events(sim.clone(), events).unwrap();
    for cpu in 0..cpus {
        let (target, part) = (Target::Cpu(cpu), Part::Cpu(cpu));
        session.load_target(part, target, Inherit::None, StartOn::Call).unwrap();
    }
    session.start().unwrap();
    session
}

/// Check that events that fit are exact, and that the sum over CPUs is the sum of the parts.
#[test]
fn events_that_fit_are_exact() {
    let sim = machine(2, 2);
    let mut session = started(&sim, free(2), 3);
    sim.run_for(1_000_000);
    session.read();
    for (number, per_cpu) in [(0, 1_000), (1, 2_000)] {
        assert_eq!(session.tally(number).count, Count::Exact(3 * per_cpu));
        let parts = session.parts(number, None);
        let expected = [0, 1, 2].map(|cpu| (Part::Cpu(cpu), Count::Exact(per_cpu)));
        assert_eq!(
            parts.into_iter().map(|(part, tally)| (part, tally.count)).collect::<Vec<_>>(),
            expected
        );
    }
}

/// Check that events that share the PMU are estimated with their share, never exact, and that the estimate of a
/// steady event is right.
#[test]
fn events_that_share_the_pmu_are_estimated() {
    let sim = machine(2, 4);
    let mut session = started(&sim, free(4), 1);
    sim.run_for(1_000_000);
    session.read();
    for number in 0..4 {
        let tally = session.tally(number);
        let Count::Estimated(estimate) = &tally.count else { panic!("{tally:?}") };
        let truth = (number as u64 + 1) * 1_000;
        assert!(estimate.value.abs_diff(truth) <= truth / 1_000, "{estimate:?}");
        assert_eq!(estimate.counted, truth / 2);
        assert_eq!(estimate.reason, Reason::SharedPmu);
        assert_eq!((tally.enabled_ns, tally.running_ns), (1_000_000, 500_000));
        assert!((tally.coverage() - 0.5).abs() < 1e-9);
    }
}

/// Check that a group of which one event never gets a counter is named as never scheduled, and is not 0.
#[test]
fn a_starved_group_is_not_counted() {
    let sim = machine(3, 3);
    let mut events = free(3);
    events[0].group = Group::Together(0);
    events[1].group = Group::Together(0);
    let mut session = started(&sim, events, 1);
    sim.starve(2);
    sim.run_for(1_000_000);
    session.read();
    for number in [0, 1] {
        let tally = session.tally(number);
        assert_eq!(tally.count, Count::NotCounted(Reason::NeverScheduled));
        assert!(tally.coverage() < 1e-9);
    }
    assert_eq!(session.tally(2).count, Count::Exact(3_000));
}

/// Check that a starved event spoils the sum, and that its part is named.
#[test]
fn a_starved_part_spoils_the_sum() {
    let sim = machine(2, 2);
    let mut session = started(&sim, free(2), 1);
    sim.starve(2);
    sim.run_for(1_000_000);
    session.read();
    assert_eq!(session.tally(0).count, Count::Exact(1_000));
    assert_eq!(session.tally(1).count.value(), None);
}

/// Check that a refused event is unsupported with its reason, and does not sink the others.
#[test]
fn a_refused_event_does_not_sink_the_others() {
    let sim = machine(2, 2);
    let refusal = Refusal::new("broken by the test");
    sim.refuse_event(2, refusal.clone());
    let mut session = started(&sim, free(2), 2);
    sim.run_for(1_000_000);
    session.read();
    assert_eq!(session.tally(0).count, Count::Exact(2_000));
    // The same reason everywhere is not that of a part.
    assert_eq!(session.tally(1).count, Count::Unsupported(Reason::Refused(refusal)));
}

/// Check that intervals add up to the total, also across wraps of a 32-bit counter.
#[test]
fn intervals_add_up_across_wraps() {
    let sim = Sim::new(Pmu { counters: 1, width: Width::new(12).unwrap(), slice_ns: 10_000 });
    sim.event(1, Script::constant(1_000));
    let mut session = started(&sim, free(1), 1);
    let mut before = session.snapshot();
    let mut sum = 0;
    for _ in 0..50 {
        // 2,000 occurrences. The counter interrupts before it wraps; a look then is enough.
        let end_ns = sim.now_ns() + 2_000;
        while sim.run_until(end_ns).is_some() {
            session.read();
        }
        session.read();
        sum += session.tally_since(0, &before).count.exact().unwrap();
        before = session.snapshot();
    }
    assert_eq!(sum, 100_000);
    assert_eq!(session.tally(0).count, Count::Exact(100_000));
}

/// Check that counts of a target that ended stay, and that one that is gone can't be loaded.
#[test]
fn counts_outlive_the_target() {
    let sim = machine(2, 1);
    let target = Target::Thread(7);
    sim.exit_at(target.clone(), 400_000);
    let mut session = Session::with_events(sim.clone(), free(1)).unwrap();
    session.load_target(Part::Thread(7), target.clone(), Inherit::None, StartOn::Call).unwrap();
    session.start().unwrap();
    sim.run_for(1_000_000);
    session.read();
    assert_eq!(session.tally(0).count, Count::Exact(400));
    assert!(session.load_target(Part::Thread(7), target, Inherit::None, StartOn::Call).is_err());
}

/// Check that what never started says so.
#[test]
fn what_never_started_says_so() {
    let sim = machine(1, 1);
    let mut session = Session::with_events(sim.clone(), free(1)).unwrap();
    session.load_target(Part::Cpu(0), Target::Cpu(0), Inherit::None, StartOn::Call).unwrap();
    sim.run_for(1_000);
    session.read();
    assert_eq!(session.tally(0).count, Count::NotCounted(Reason::NeverStarted));
}

/// Check that a read that fails has its reason, and spoils neither what was read before nor what comes after: for
/// contexts that are started by a call, and for trees, which are started by a reading.
#[test]
fn a_failed_read_spoils_nothing() {
    for inherit in [Inherit::None, Inherit::Tree] {
        let sim = machine(1, 1);
        let mut session = Session::with_events(sim.clone(), free(1)).unwrap();
        let target = Target::Thread(7);
        session.load_target(Part::Thread(7), target, inherit, StartOn::Call).unwrap();
        // Not counted: nothing was started.
        sim.run_for(300_000);
        let refusal = Refusal::new("broken by the test");
        sim.refuse_reads(Some(refusal.clone()));
        if inherit.follows() {
            assert!(session.start().is_err());
        }
        sim.refuse_reads(None);
        session.start().unwrap();
        sim.run_for(100_000);
        session.read();
        let before = session.snapshot();
        sim.refuse_reads(Some(refusal.clone()));
        session.read();
        assert_eq!(session.tally(0).count, Count::NotCounted(Reason::Refused(refusal)));
        assert_eq!(session.snapshot(), before);
        sim.refuse_reads(None);
        sim.run_for(20_000);
        session.read();
        assert_eq!(session.tally(0).count, Count::Exact(120), "{inherit:?}");
        assert_eq!(session.tally_since(0, &before).count, Count::Exact(20), "{inherit:?}");
        // What happens while it is stopped is not counted.
        session.stop().unwrap();
        sim.run_for(50_000);
        session.start().unwrap();
        sim.run_for(1_000);
        session.read();
        assert_eq!(session.tally(0).count, Count::Exact(121), "{inherit:?}");
    }
}
