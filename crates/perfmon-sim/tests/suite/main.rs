//! The facts of the simulated PMU, and the model on it against a plain reference.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod against_reference;
mod driver;
mod estimates;
mod machine;
mod reference;

use std::sync::Arc;

use perfmon_core::*;
use perfmon_sim::*;
use proptest::test_runner::{Config, RngSeed};

const SET0: SetId = SetId(0);
const THREAD: Target = Target::Thread(1);

/// The same cases in each run; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` choose others.
fn config() -> Config {
    let default = Config::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    Config { failure_persistence: None, rng_seed, ..default }
}

fn width(bits: u8) -> Width {
    Width::new(bits).unwrap()
}

fn encoding(config: u64) -> Encoding {
    Encoding { config, ..Encoding::default() }
}

/// A plan for `THREAD` of events in set 0, each with its group.
fn plan(events: &[(u64, Group)]) -> LoadPlan {
    let events = events.iter().zip(0..).map(|(&(config, group), pmd)| PlannedEvent {
        set: SET0,
        pmd: PmdIndex(pmd),
        encoding: Arc::new(encoding(config)),
        group,
        period: 0,
    });
    LoadPlan {
        target: THREAD,
        inherit: Inherit::None,
        start_on: StartOn::Call,
        active: SET0,
        always: Vec::new(),
        timed: false,
        events: events.collect(),
    }
}

fn read(sim: &mut Sim, loaded: &mut Loaded, count: usize) -> Vec<Reading> {
    let mut readings = vec![Reading::default(); count];
    sim.read(loaded, &mut readings).unwrap();
    readings
}

fn counted(value: u64, enabled_ns: u64, running_ns: u64) -> Reading {
    Reading { value, enabled_ns, running_ns, in_error: false }
}
