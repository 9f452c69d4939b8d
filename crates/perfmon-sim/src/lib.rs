//! A simulated PMU: the test bed of perfmon.
//!
//! [`Sim`] implements perfmon's [`Backend`](perfmon_core::Backend) on a machine that exists in
//! memory. The model can't tell it from the kernel, and a test can: it knows what really
//! happened.
//!
//! - **Time is virtual.** It passes only in [`Sim::run_until`] and [`Sim::run_for`], in
//!   nanoseconds from 0. Nothing reads a clock and nothing is random, so the same calls give the
//!   same numbers.
//! - **Events follow scripts.** An event is known by its
//!   [`config`](perfmon_core::Encoding::config); its [`Script`] says how often it occurs, at most
//!   once a nanosecond. [`Script::seeded`] draws one from a seed, which replays it.
//!   [`Sim::occurrences`] is the truth to compare a count with.
//! - **Counters are few and narrow**, as a [`Pmu`] says. Each context has the machine's counters
//!   to itself (its thread runs on a CPU of its own). If the events of its started sets don't
//!   fit, their groups take turns as on Linux: each [`slice_ns`](Pmu::slice_ns) another group is
//!   first in line, a group has all its counters or none, and those behind the first group that
//!   does not fit wait. Readings tell enabled and running time, as the kernel does.
//! - **A counter interrupts** at each half of its range, as Linux drivers have it, so that no
//!   wrap goes unseen, and once it has counted what it is [armed](Sim::set_alarm) for. Time stops at
//!   the interrupt, with the counters as they stood in it, until the test has dealt with it.
//!   [`Driver`] does so as a tool should.
//! - **Faults are made to order**: [refused events](Sim::refuse_event), [refused
//!   targets](Sim::refuse_target), [events that starve](Sim::starve) and [targets that
//!   end](Sim::exit_at), with the errno that Linux has for each.
//!
//! What it does not have: targets that sleep, targets that create others (inheritance changes
//! nothing), interrupts that come late, and several contexts that compete for one CPU's counters.
//!
//! ```
//! use std::sync::Arc;
//! use perfmon_core::*;
//! use perfmon_sim::{Pmu, Script, Sim};
//!
//! // Two counters for three events, each of which occurs 10 times a microsecond.
//! let mut sim = Sim::new(Pmu { counters: 2, ..Pmu::default() });
//! let mut context = Context::new(Arc::new(sim.description()), ContextFlags::default()).unwrap();
//! for index in 0..3 {
//!     sim.event(u64::from(index), Script::constant(10));
//!     let encoding = Encoding { config: u64::from(index), ..Encoding::default() };
//!     context.write_pmc(SetId(0), PmcIndex(index), Arc::new(encoding), Group::Free).unwrap();
//!     context.write_pmd(SetId(0), PmdIndex(index), 0).unwrap();
//! }
//! let plan = context.load(Target::Thread(1), Inherit::None, StartOn::Call).unwrap();
//! let (mut loaded, outcomes) = sim.load(&plan).unwrap();
//! context.accept(&outcomes);
//! sim.start(&mut loaded, context.start().unwrap()).unwrap();
//! assert_eq!(sim.run_for(9_000_000), None);
//!
//! let mut readings = vec![Reading::default(); plan.events.len()];
//! sim.read(&mut loaded, &mut readings).unwrap();
//! context.fold(&mut readings);
//! let Reading { value, enabled_ns, running_ns, .. } = readings[0];
//! assert_eq!((value, enabled_ns, running_ns), (60_000, 9_000_000, 6_000_000));
//! let Count::Estimated(estimate) = Count::from_reading(&readings[0]) else { unreachable!() };
//! assert_eq!(estimate.value, sim.occurrences(0, 0, 9_000_000).unwrap());
//! ```

#![forbid(unsafe_code)]

mod driver;
mod machine;
mod schedule;
mod script;
mod sim;

pub use driver::{Driver, DriverError};
pub use machine::{ContextId, CounterInterrupt};
pub use perfmon_core::SplitMix64;
pub use script::{OCCURRENCES_PER_US_MAX, Script, Segment};
pub use sim::{Loaded, Pmu, Sim};
