//! Estimates of events whose truth is known, in virtual time.

use perfmon_core::{Estimator, Method, SplitMix64};

/// Steps of virtual time: 0.1 ms each, 4 s in all.
const STEPS: usize = 40_000;
const STEP_NS: u64 = 100_000;
/// The mean dwell, in steps.
const DWELL: u64 = 100;
const RUNS: u64 = 150;

/// Cumulative counts, by step.
type Course = Vec<u64>;

/// A rate in occurrences a step, at a step, from numbers drawn for the run.
type Profile = fn(step: usize, random: &mut Random) -> f64;

struct Random {
    bits: SplitMix64,
    /// Drawn once a run.
    phase: f64,
    /// What a process of its own remembers.
    level: f64,
    until: f64,
}

impl Random {
    fn new(seed: u64) -> Self {
        let mut random = Self { bits: SplitMix64::new(seed), phase: 0.0, level: 0.0, until: 0.0 };
        random.phase = random.unit();
        random
    }

    fn unit(&mut self) -> f64 {
        (self.bits.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

fn course(profile: Profile, random: &mut Random) -> Course {
    let mut sum = 0.0;
    let mut counts = vec![0];
    for step in 0..STEPS {
        sum += profile(step, random).max(0.0);
        counts.push(sum as u64);
    }
    counts
}

fn seconds(step: usize) -> f64 {
    step as f64 * 1e-4
}

fn square(step: usize, period_s: f64, random: &Random) -> f64 {
    let phase = (seconds(step) / period_s + random.phase).fract();
    if phase < 0.5 { 80.0 } else { 20.0 }
}

const PROFILES: [(&str, Profile); 12] = [
    ("constant", |_, _| 50.0),
    ("noise", |_, random| 50.0 + 15.0 * random.normal()),
    ("ramp", |step, _| 20.0 + 15.0 * seconds(step)),
    ("square 400 ms", |step, random| square(step, 0.4, random)),
    ("square 40 ms", |step, random| square(step, 0.04, random)),
    ("square 1 ms", |step, random| square(step, 0.001, random)),
    ("sine 150 ms", |step, random| {
        50.0 + 30.0 * (std::f64::consts::TAU * (seconds(step) / 0.15 + random.phase)).sin()
    }),
    ("two phases of 200 ms, noisy", |step, random| {
        square(step, 0.4, random) + 10.0 * random.normal()
    }),
    ("telegraph 60 ms", |step, random| telegraph(step, 600.0, random)),
    ("telegraph 1 s", |step, random| telegraph(step, 10_000.0, random)),
    ("autoregressive", |_, random| {
        random.level = 0.999 * random.level + 0.03 * random.normal();
        50.0 * random.level.exp()
    }),
    ("bursts", |step, random| {
        if step as f64 >= random.until {
            random.until = step as f64 - 400.0 * random.unit().max(1e-9).ln();
            random.level = if random.level > 5.0 { 5.0 } else { 10.0 / random.unit().max(0.02) };
        }
        random.level
    }),
];

fn telegraph(step: usize, mean_steps: f64, random: &mut Random) -> f64 {
    if step as f64 >= random.until {
        random.until = step as f64 - mean_steps * random.unit().max(1e-9).ln();
        random.level = if random.level > 50.0 { 20.0 } else { 80.0 };
    }
    random.level
}

/// How runs of one profile went.
#[derive(Default)]
struct Outcome {
    runs: f64,
    covered: f64,
    error: f64,
    half_width: f64,
}

impl Outcome {
    fn note(&mut self, value: f64, half_width: f64, truth: f64) {
        self.runs += 1.0;
        self.covered += f64::from(u8::from((value - truth).abs() <= half_width));
        self.error += (value - truth).abs() / truth;
        self.half_width += half_width / truth;
    }
}

/// Counts one event in the first of `sets` sets, whose stays are `randomised`, with `references` counted all the time.
fn observe(
    event: &Course,
    references: &[&Course],
    sets: u64,
    randomised: bool,
    random: &mut Random,
) -> (Estimator, Vec<u64>) {
    let measures = |step: usize| {
        let counts = references.iter().map(|course| course[step]);
        std::iter::once(step as u64 * STEP_NS).chain(counts).collect::<Vec<u64>>()
    };
    let mut estimator = Estimator::new(&measures(0));
    let mut step = 0;
    let mut set = random.bits.next_u64() % sets;
    while step < STEPS {
        let dwell =
            if randomised { DWELL / 2 + random.bits.next_u64() % (DWELL + 1) } else { DWELL };
        let end = (step + dwell as usize).min(STEPS);
        if set == 0 {
            let ran_ns = (end - step) as u64 * STEP_NS;
            estimator.residence(
                &measures(step),
                &measures(end),
                &[ran_ns],
                event[end] - event[step],
            );
        }
        step = end;
        set = (set + 1) % sets;
    }
    (estimator, measures(STEPS))
}

/// Check that intervals cover the truth as often as they say, and are not much wider than they must be.
#[test]
fn intervals_cover_the_truth() {
    for sets in [2, 4, 8] {
        let mut all = Outcome::default();
        for (name, profile) in PROFILES {
            let mut outcome = Outcome::default();
            for run in 0..RUNS {
                let mut random = Random::new(run * 7919 + sets);
                let event = course(profile, &mut random);
                let (estimator, now) = observe(&event, &[], sets, true, &mut random);
                let estimate = estimator.estimate(&now, Some(Method::Neighbours)).unwrap();
                outcome.note(estimate.value, estimate.half_width95, event[STEPS] as f64);
            }
            let Outcome { runs, covered, error, half_width } = outcome;
            println!(
                "{sets} sets, {name:28} covered {:5.1} %  error {:7.4} %  half-width / error {:6.2}",
                covered / runs * 100.0,
                error / runs * 100.0,
                half_width / error
            );
            all.runs += runs;
            all.covered += covered;
        }
        println!("{sets} sets: {:.1} %", all.covered / all.runs * 100.0);
    }
}
