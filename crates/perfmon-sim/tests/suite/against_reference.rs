use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::reference::{RefMessage, Reference, Refused};
use super::*;

const SETS: [u16; 3] = [0, 1, 5];
const PMDS: std::ops::Range<u16> = 0..4;

#[derive(Clone, Debug)]
enum Op {
    Create(u16, SwitchPolicy),
    Delete(u16),
    WritePmc(u16, u16, u64),
    WritePmd(u16, u16, Box<PmdAttributes>),
    Load(bool, u16),
    Start(Option<u16>),
    Stop,
    Restart,
    Unload,
    Run(u64),
    ReadMessage,
}

#[derive(Clone, Debug)]
struct Case {
    bits: u8,
    seed: u64,
    exit_ns: u64,
    flags: ContextFlags,
    ops: Vec<Op>,
}

fn set() -> impl Strategy<Value = u16> {
    prop_oneof![12 => proptest::sample::select(&SETS[..]), 1 => Just(9)]
}

/// Values near the wrap, so that there are overflows, few enough that some fall together; and others.
fn values() -> impl Strategy<Value = u64> {
    let shared = proptest::sample::select(&[1u64, 10, 40, 70][..]).prop_map(u64::wrapping_neg);
    let near = (1..80u64).prop_map(u64::wrapping_neg);
    prop_oneof![3 => shared, 3 => near, 1 => 0..50u64, 1 => any::<u64>()]
}

fn policy() -> impl Strategy<Value = SwitchPolicy> {
    let by_time =
        (0..60u64).prop_map(|timeout_ns| SwitchPolicy::Timeout { timeout_ns, randomised: false });
    prop_oneof![1 => Just(SwitchPolicy::Stay), 2 => by_time, 3 => Just(SwitchPolicy::Overflow)]
}

fn attributes() -> impl Strategy<Value = Box<PmdAttributes>> {
    let registers = || {
        let some = proptest::collection::vec(PMDS, 1..3).prop_map(RegisterSet::from_iter);
        prop_oneof![3 => Just(RegisterSet::EMPTY), 1 => some]
    };
    let resets = (values(), values(), any::<bool>(), prop_oneof![Just(0), Just(7), Just(0xff)]);
    let rest = (values(), any::<bool>(), registers(), registers(), 0..3u64);
    (resets, rest).prop_map(|((long_reset, short_reset, random, random_mask), rest)| {
        let (value, notify, reset_pmds, sample_pmds, switch_count) = rest;
        Box::new(PmdAttributes {
            value,
            long_reset,
            short_reset,
            notify,
            random,
            random_mask,
            reset_pmds,
            sample_pmds,
            event_id: 0,
            switch_count,
        })
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (set(), policy()).prop_map(|(set, policy)| Op::Create(set, policy)),
        1 => set().prop_map(Op::Delete),
        4 => (set(), PMDS, 0..3u64).prop_map(|(set, pmc, event)| Op::WritePmc(set, pmc, event)),
        4 => (set(), PMDS, attributes()).prop_map(|(set, pmd, new)| Op::WritePmd(set, pmd, new)),
        4 => (any::<bool>(), set()).prop_map(|(is_self, set)| Op::Load(is_self, set)),
        4 => proptest::option::weighted(0.3, set()).prop_map(Op::Start),
        1 => Just(Op::Stop),
        8 => Just(Op::Restart),
        1 => Just(Op::Unload),
        10 => (0..250u64).prop_map(Op::Run),
        1 => Just(Op::ReadMessage),
    ]
}

/// A programmed context first, so that most cases count, then anything.
fn case() -> impl Strategy<Value = Case> {
    let programmed = (policy(), policy(), attributes(), attributes(), attributes(), attributes())
        .prop_map(|(policy0, policy1, a, b, c, d)| {
            let mut ops = vec![Op::Create(0, policy0), Op::Create(1, policy1)];
            for (set, pmd, new) in [(0, 0, a), (0, 1, b), (1, 0, c), (1, 1, d)] {
                ops.push(Op::WritePmc(set, pmd, u64::from(pmd)));
                ops.push(Op::WritePmd(set, pmd, new));
            }
            ops.extend([Op::Load(false, 0), Op::Start(None), Op::Run(100)]);
            ops
        });
    let ops =
        (prop_oneof![1 => Just(vec![]), 6 => programmed], proptest::collection::vec(op(), 0..50));
    let flags = (any::<bool>(), any::<bool>()).prop_map(|(notify_block, no_overflow_message)| {
        ContextFlags { notify_block, no_overflow_message, system_wide: false }
    });
    let exit_ns = prop_oneof![3 => Just(u64::MAX), 1 => 0..1500u64];
    (1..=64u8, any::<u64>(), exit_ns, flags, ops).prop_map(|(bits, seed, exit_ns, flags, ops)| {
        Case { bits, seed, exit_ns, flags, ops: [ops.0, ops.1].concat() }
    })
}

fn target(is_self: bool) -> Target {
    if is_self { Target::CurrentThread } else { THREAD }
}

fn refused(error: DriverError) -> Refused {
    match error {
        DriverError::Refused(_) => Refused::NoTarget,
        DriverError::Model(error) => match error {
            ModelError::Busy { .. } => Refused::Busy,
            ModelError::NotLoaded { .. } => Refused::NotLoaded,
            ModelError::NoSuchSet(_) => Refused::NoSet,
            ModelError::ZeroTimeout(_) => Refused::NoTimeout,
            ModelError::NoRestartGranted => Refused::NoRestart,
            ModelError::Conflict(_) => Refused::Conflict,
            other => panic!("no operation here is refused so: {other}"),
        },
    }
}

fn perform(driver: &mut Driver, op: &Op) -> Result<(), Refused> {
    driver.sync().unwrap();
    let context = driver.context_mut();
    let done = match *op {
        Op::Create(set, policy) => context.create_set(SetId(set), policy).map_err(Into::into),
        Op::Delete(set) => context.delete_set(SetId(set)).map_err(Into::into),
        Op::WritePmc(set, pmc, event) => context
            .write_pmc(SetId(set), PmcIndex(pmc), Arc::new(encoding(event)), Group::Free)
            .map_err(Into::into),
        Op::WritePmd(set, pmd, ref new) => {
            context.write_pmd_attributes(SetId(set), PmdIndex(pmd), new).map_err(Into::into)
        }
        Op::Load(is_self, set) => driver.load(target(is_self), SetId(set)).map(drop),
        Op::Start(set) => driver.start(set.map(SetId)),
        Op::Stop => driver.stop(),
        Op::Restart => driver.restart(),
        Op::Unload => driver.unload(),
        Op::Run(duration_ns) => driver.run_for(duration_ns).map(drop),
        Op::ReadMessage => Ok(()),
    };
    done.map_err(refused)
}

fn perform_plainly(reference: &mut Reference, op: &Op) -> Result<(), Refused> {
    match *op {
        Op::Create(set, policy) => reference.create(set, policy),
        Op::Delete(set) => reference.delete(set),
        Op::WritePmc(set, pmc, event) => reference.write_pmc(set, pmc, event),
        Op::WritePmd(set, pmd, ref new) => reference.write_pmd(set, pmd, new),
        Op::Load(is_self, set) => reference.load(is_self, set),
        Op::Start(set) => reference.start(set),
        Op::Stop => reference.stop(),
        Op::Restart => reference.restart(),
        Op::Unload => {
            reference.unload();
            Ok(())
        }
        Op::Run(duration_ns) => {
            reference.run(duration_ns);
            Ok(())
        }
        Op::ReadMessage => Ok(()),
    }
}

fn plain_message(message: Message) -> RefMessage {
    match message {
        Message::Overflow(OverflowMessage { set, overflowed_pmds, .. }) => {
            RefMessage::Overflow(set.0, overflowed_pmds.iter().collect())
        }
        Message::End => RefMessage::End,
    }
}

/// Compares all that can be seen of a context.
fn compare(context: &Context, reference: &Reference) -> Result<(), TestCaseError> {
    prop_assert_eq!(context.state(), reference.state);
    prop_assert_eq!(context.is_started(), reference.started);
    if context.state() != State::Unloaded {
        prop_assert_eq!(context.active_set().0, reference.active);
    }
    let sets = context.sets();
    prop_assert!(sets.iter().map(|set| set.id.0).eq(reference.sets.keys().copied()));
    for (set, plain) in sets.iter().zip(reference.sets.values()) {
        let info = context.set_info(set.id).unwrap();
        prop_assert_eq!(info.policy, plain.policy);
        prop_assert_eq!(info.runs, plain.runs);
        prop_assert_eq!(info.active_duration_ns, plain.duration_ns);
        prop_assert_eq!(info.timeout_left_ns, plain.left_ns);
        prop_assert!(info.overflowed_pmds.iter().eq(plain.overflowed.iter().copied()));
        prop_assert!(set.pmds().iter().map(|pmd| pmd.index.0).eq(plain.pmds.keys().copied()));
        for (&index, pmd) in &plain.pmds {
            let expected = PmdValue {
                value: u64::try_from(pmd.value).unwrap(),
                last_reset_value: pmd.last_reset_value,
                switch_count_left: pmd.switches_left,
            };
            prop_assert_eq!(context.read_pmd(set.id, PmdIndex(index)), Ok(expected));
        }
    }
    Ok(())
}

fn run(case: &Case) -> Result<BTreeMap<&'static str, u32>, TestCaseError> {
    let sim = Sim::new(Pmu { counters: 64, width: width(case.bits), slice_ns: 70 });
    // PMDs 0 and 1 often wrap at the same instant: their events are the same.
    let seeds = [case.seed, case.seed, !case.seed];
    let scripts: Vec<Script> = seeds.iter().map(|&seed| Script::seeded(seed, 4, 50)).collect();
    (0..).zip(&scripts).for_each(|(config, script)| sim.event(config, script.clone()));
    [true, false].iter().for_each(|&is_self| sim.exit_at(target(is_self), case.exit_ns));
    let mut driver = Driver::new(&sim, case.flags, case.seed).unwrap();
    let mut reference = Reference::new(case.flags, scripts, case.exit_ns, case.seed);
    for (place, op) in case.ops.iter().enumerate() {
        let outcomes = [perform(&mut driver, op), perform_plainly(&mut reference, op)];
        prop_assert_eq!(outcomes[0], outcomes[1], "operation {}: {:?}", place, op);
        if matches!(op, Op::ReadMessage) {
            let message = driver.context_mut().next_message().map(plain_message);
            prop_assert_eq!(message, reference.messages.pop_front());
        }
        driver.sync().unwrap();
        compare(driver.context(), &reference)
            .map_err(|error| TestCaseError::fail(format!("operation {place}, {op:?}: {error}")))?;
    }
    let rest = std::iter::from_fn(|| driver.context_mut().next_message()).map(plain_message);
    prop_assert!(rest.eq(reference.messages));
    Ok(reference.happened)
}

/// Check that the model on the simulated machine, with counters of any width, and the plain reference agree
/// on values, states, errors and messages, whatever is done; and that all there is happens often enough.
#[test]
fn model_agrees_with_reference() {
    let happened = RefCell::new(BTreeMap::new());
    let default = config();
    let cases = default.cases * 4;
    let mut runner = TestRunner::new(Config { cases, ..default });
    let result = runner.run(&case(), |case| {
        for (what, count) in run(&case)? {
            *happened.borrow_mut().entry(what).or_insert(0) += count;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    for what in [
        "end",
        "load",
        "load with another set",
        "long reset",
        "notification",
        "notification without message",
        "restart",
        "restart with a switch",
        "saturation",
        "several overflows at once",
        "short reset",
        "start while masked",
        "start with another set",
        "switch by overflow",
        "switch by time",
    ] {
        let count = happened.borrow().get(what).copied().unwrap_or(0);
        assert!(count >= cases / 100, "{what}: happened {count} times only");
    }
}

/// Check that the comparison objects when the two are told different things.
#[test]
fn differences_are_found() {
    let flags = ContextFlags::default();
    let differs = |op: &Op, other: &Op| {
        let sim = Sim::new(Pmu::default());
        let script = Script::constant(500);
        sim.event(0, script.clone());
        let mut driver = Driver::new(&sim, flags, 0).unwrap();
        let mut reference = Reference::new(flags, vec![script], u64::MAX, 0);
        let pmd = Box::new(PmdAttributes { value: 1, ..PmdAttributes::default() });
        let ops =
            [Op::WritePmc(0, 0, 0), Op::WritePmd(0, 0, pmd), Op::Load(false, 0), Op::Start(None)];
        for op in &ops {
            assert_eq!(perform(&mut driver, op), Ok(()));
            assert_eq!(perform_plainly(&mut reference, op), Ok(()));
        }
        assert!(compare(driver.context(), &reference).is_ok());
        perform(&mut driver, op).unwrap();
        perform_plainly(&mut reference, other).unwrap();
        driver.sync().unwrap();
        compare(driver.context(), &reference).is_err()
    };
    assert!(!differs(&Op::Run(100), &Op::Run(100)));
    assert!(differs(&Op::Run(100), &Op::Run(102)));
    assert!(differs(&Op::Run(0), &Op::Stop));
    assert!(differs(&Op::Unload, &Op::Stop));
}
