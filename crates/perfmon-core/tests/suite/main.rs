//! The model's facts: perfmon2's rules, one test each, and properties against plain references.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod counters;
mod estimates;
mod lifecycle;
mod overflow;
mod registers;
mod sets;

use std::sync::Arc;

use perfmon_core::*;
use proptest::test_runner::{Config, RngSeed};

const SET0: SetId = SetId(0);
const SET1: SetId = SetId(1);
const PMD0: PmdIndex = PmdIndex(0);
const PMD1: PmdIndex = PmdIndex(1);
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

/// Four 8-bit counters; PMD 3 can't be written.
fn description() -> Arc<Description> {
    let width = Width::new(8).unwrap();
    let pmds = (0..4).map(|index| {
        (PmdIndex(index), PmdDescription { width, pmc: PmcIndex(index), read_only: index == 3 })
    });
    Arc::new(Description::new("test", (0..4).collect(), pmds))
}

fn context() -> Context {
    Context::new(description(), ContextFlags::default()).unwrap()
}

fn registers(indices: &[u16]) -> RegisterSet {
    indices.iter().copied().collect()
}

/// Writes the PMC and the value of PMD `index`.
fn program(context: &mut Context, set: SetId, index: u16, value: u64) {
    let encoding = Arc::new(Encoding { config: u64::from(index), ..Encoding::default() });
    context.write_pmc(set, PmcIndex(index), encoding, Group::Free).unwrap();
    context.write_pmd(set, PmdIndex(index), value).unwrap();
}

fn load(context: &mut Context) -> LoadPlan {
    context.load(THREAD, Inherit::None, StartOn::Call).unwrap()
}

/// Folds raw values and returns what became of them.
fn fold<const N: usize>(context: &mut Context, raw: [u64; N]) -> [u64; N] {
    let mut readings = raw.map(|value| Reading { value, ..Reading::default() });
    context.fold(&mut readings);
    readings.map(|reading| reading.value)
}

fn value(context: &Context, set: SetId, index: PmdIndex) -> u64 {
    context.read_pmd(set, index).unwrap().value
}

fn not_random() -> u64 {
    panic!("nothing here is randomised")
}
