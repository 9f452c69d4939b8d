use super::*;

const FREE: Group = Group::Free;

/// A machine of `counters` counters with events 0 to 9 at 100 per microsecond, slices of 1 µs.
fn machine(counters: usize) -> Sim {
    let sim = Sim::new(Pmu { counters, width: Width::FULL, slice_ns: 1000 });
    (0..10).for_each(|config| sim.event(config, Script::constant(100)));
    sim
}

fn start(sim: &mut Sim, events: &[(u64, Group)]) -> Loaded {
    let (mut loaded, outcomes) = sim.load(&plan(events)).unwrap();
    assert!(outcomes.iter().all(Outcome::is_ok));
    sim.start(&mut loaded, SET0).unwrap();
    loaded
}

/// Check that counters count between start and stop only, and stay readable.
#[test]
fn counts_between_start_and_stop() {
    let mut sim = machine(1);
    let (mut loaded, outcomes) = sim.load(&plan(&[(0, FREE)])).unwrap();
    assert_eq!((outcomes, sim.run_for(500)), (vec![Ok(())], None));
    sim.start(&mut loaded, SET0).unwrap();
    assert_eq!(sim.run_for(300), None);
    sim.stop(&mut loaded, SET0).unwrap();
    assert_eq!(sim.run_for(1000), None);
    assert_eq!(read(&mut sim, &mut loaded, 1), [counted(30, 300, 300)]);
    assert_eq!((sim.now_ns(), sim.occurrences(0, 500, 800)), (1800, Some(30)));
}

/// Check that groups that don't fit take turns, a slice each, and no part of one runs without the rest.
#[test]
fn groups_take_turns() {
    let mut sim = machine(2);
    let mut loaded =
        start(&mut sim, &[(0, FREE), (1, Group::Together(1)), (2, Group::Together(1))]);
    assert_eq!(sim.run_for(1500), None);
    let [alone, together] = [counted(100, 1500, 1000), counted(50, 1500, 500)];
    assert_eq!(read(&mut sim, &mut loaded, 3), [alone, together, together]);
}

/// Check that the first group that does not fit keeps those behind it waiting, as on Linux.
#[test]
fn the_first_misfit_blocks() {
    let mut sim = machine(2);
    let pair = Group::Together(1);
    let mut loaded = start(&mut sim, &[(0, FREE), (1, pair), (2, pair), (3, FREE)]);
    assert_eq!(sim.run_for(1000), None);
    let running: Vec<u64> =
        read(&mut sim, &mut loaded, 4).iter().map(|reading| reading.running_ns).collect();
    assert_eq!(running, [1000, 0, 0, 0]);
}

/// Check that a group can't be had if it is larger than the PMU or has a refused member, that events
/// nobody scripted are refused, and that the rest is had all the same.
#[test]
fn refused_events() {
    let mut sim = machine(2);
    sim.refuse_event(1, Refusal::new("scripted"));
    let [large, broken] = [Group::Together(1), Group::Together(2)];
    let events =
        [(0, large), (2, large), (3, large), (1, broken), (4, broken), (99, FREE), (5, FREE)];
    let (mut loaded, outcomes) = sim.load(&plan(&events)).unwrap();
    let words: Vec<String> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().map_or_else(ToString::to_string, |()| "had".into()))
        .collect();
    let too_large = "its group needs more counters than the PMU has (EINVAL from perf_event_open)";
    let expected = [
        too_large,
        too_large,
        too_large,
        "scripted",
        "another event of its group was refused: scripted",
        "the simulated PMU has no event 0x63 (ENOENT from perf_event_open)",
        "had",
    ];
    assert_eq!(words, expected);
    sim.start(&mut loaded, SET0).unwrap();
    assert_eq!(sim.run_for(100), None);
    let mut readings = vec![counted(7, 7, 7); 7];
    sim.read(&mut loaded, &mut readings).unwrap();
    assert_eq!(readings[..6], [counted(7, 7, 7); 6]);
    assert_eq!(readings[6], counted(10, 100, 100));
}

/// Check that a target can be refused, and that one that has ended is.
#[test]
fn refused_targets() {
    let mut sim = machine(1);
    sim.refuse_target(Target::Cpu(3), Refusal::new("offline"));
    sim.exit_at(THREAD, 100);
    let cpu = LoadPlan { target: Target::Cpu(3), ..plan(&[]) };
    assert_eq!(sim.load(&cpu).unwrap_err(), Refusal::new("offline"));
    assert!(sim.load(&plan(&[])).is_ok());
    assert_eq!(sim.run_for(100), None);
    assert_eq!(sim.load(&plan(&[])).unwrap_err().errno_number(), Some(3));
}

/// Check that an event that starves is enabled and never runs, takes its group with it and stands in
/// nobody's way.
#[test]
fn starvation() {
    let mut sim = machine(1);
    sim.starve(0);
    let mut loaded = start(&mut sim, &[(0, FREE), (1, FREE)]);
    assert_eq!(sim.run_for(4000), None);
    let readings = read(&mut sim, &mut loaded, 2);
    assert_eq!(readings, [counted(0, 4000, 0), counted(400, 4000, 4000)]);
    let starved = Count::NotCounted(Reason::NeverScheduled);
    assert_eq!(Count::from_reading(&readings[0]), starved);
}

/// Check that a pinned event runs all the time, and is in error if it can't.
#[test]
fn pinned_events() {
    let mut sim = machine(1);
    let mut plan = plan(&[(0, FREE), (1, FREE)]);
    plan.events[1].encoding = Arc::new(Encoding { pinned: true, ..encoding(1) });
    let (mut loaded, _) = sim.load(&plan).unwrap();
    sim.start(&mut loaded, SET0).unwrap();
    assert_eq!(sim.run_for(3000), None);
    let expected = [counted(0, 3000, 0), counted(300, 3000, 3000)];
    assert_eq!(read(&mut sim, &mut loaded, 2), expected);
    sim.starve(1);
    assert_eq!(sim.run_for(1000), None);
    let readings = read(&mut sim, &mut loaded, 2);
    assert_eq!(Count::from_reading(&readings[1]), Count::NotCounted(Reason::InError));
    assert_eq!(readings[0], counted(100, 4000, 1000));
}

/// Check that counts and times freeze at the target's end, in the middle of a run.
#[test]
fn early_exit() {
    let mut sim = machine(1);
    sim.exit_at(THREAD, 250);
    sim.exit_at(Target::Thread(2), 50);
    let mut loaded = start(&mut sim, &[(0, FREE)]);
    assert_eq!(sim.run_for(10_000), None);
    assert_eq!(read(&mut sim, &mut loaded, 1), [counted(25, 250, 250)]);
}

/// Check that an exec starts what waits for it, once.
#[test]
fn exec() {
    let mut sim = machine(1);
    let (mut loaded, _) =
        sim.load(&LoadPlan { start_on: StartOn::Exec, ..plan(&[(0, FREE)]) }).unwrap();
    assert_eq!(sim.run_for(100), None);
    sim.exec(&Target::Thread(2));
    assert_eq!(sim.run_for(100), None);
    sim.exec(&THREAD);
    assert_eq!(sim.run_for(100), None);
    sim.stop(&mut loaded, SET0).unwrap();
    sim.exec(&THREAD);
    assert_eq!(sim.run_for(100), None);
    assert_eq!(read(&mut sim, &mut loaded, 1), [counted(10, 100, 100)]);
}

/// Check that a narrow counter interrupts at each half of its range, at that instant.
#[test]
fn narrow_counters_interrupt() {
    let mut sim = Sim::new(Pmu { width: width(4), ..Pmu::default() });
    sim.event(0, Script::constant(1000));
    let mut loaded = start(&mut sim, &[(0, FREE)]);
    let mut seen = Vec::new();
    while let Some(interrupt) = sim.run_until(40) {
        assert_eq!((interrupt.context, interrupt.set), (loaded.id(), SET0));
        seen.push((interrupt.time_ns, interrupt.pmds.iter().collect::<Vec<_>>()));
        assert_eq!(read(&mut sim, &mut loaded, 1)[0].value, interrupt.time_ns % 16);
    }
    assert_eq!(seen, [8, 16, 24, 32, 40].map(|time_ns| (time_ns, vec![0])));
    assert_eq!(read(&mut sim, &mut loaded, 1), [counted(8, 40, 40)]);
}

/// Check that an armed counter interrupts once, that several at one instant make one interrupt, and that
/// nothing comes of a counter that was disarmed.
#[test]
fn armed_counters_interrupt() {
    let mut sim = machine(4);
    let mut loaded = start(&mut sim, &[(0, FREE), (1, FREE), (2, FREE), (3, FREE)]);
    for (place, after) in [(0, Some(5)), (1, Some(5)), (2, Some(3)), (3, Some(0))] {
        sim.set_alarm(&mut loaded, place, after);
    }
    sim.set_alarm(&mut loaded, 2, None);
    let interrupt = sim.run_until(1000).unwrap();
    assert_eq!((interrupt.time_ns, interrupt.pmds), (50, [0, 1].into_iter().collect()));
    assert_eq!(read(&mut sim, &mut loaded, 4), [counted(5, 50, 50); 4]);
    assert_eq!(sim.run_until(1000), None);
}

/// Check that contexts share the time and nothing else, and that a dropped one is forgotten with its
/// interrupts.
#[test]
fn contexts_are_independent() {
    let mut sim = machine(1);
    let mut first = start(&mut sim, &[(0, FREE)]);
    let mut second = start(&mut sim, &[(1, FREE)]);
    assert_ne!(first.id(), second.id());
    sim.set_alarm(&mut first, 0, Some(1));
    sim.set_alarm(&mut second, 0, Some(1));
    assert_eq!(sim.clone().run_for(100).map(|interrupt| interrupt.context), Some(first.id()));
    drop(second);
    assert_eq!(sim.run_for(90), None);
    assert_eq!(read(&mut sim, &mut first, 1), [counted(10, 100, 100)]);
    sim.unload(first);
    assert_eq!(sim.run_for(100), None);
}
