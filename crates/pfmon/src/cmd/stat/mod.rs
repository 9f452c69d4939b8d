//! `pfmon stat`: count events.

mod events;
pub(crate) mod metrics;
mod repeat;
pub(crate) mod results;
mod run;
mod scope;
mod sets;
mod sure;
mod watch;

use std::mem::ManuallyDrop;
use std::process::ExitCode;

use perfmon::{Linux, Session, Signal, SignalFd};

use crate::args::{Accounting, Estimator, Stat};
use crate::cmd::names;
use crate::exit::{self, Failure};
use crate::output::{self, Sink};
use metrics::Metrics;
use results::StatResult;
use run::Measurement;

/// Counts as `args` say, prints the results, and gives the exit status.
pub(crate) fn run(args: &Stat) -> Result<ExitCode, Failure> {
    let plan = scope::Plan::from_args(args)?;
    let names = names::of_this_machine(&args.sources)?;
    let metrics = Metrics::from_args(args, &names)?;
    let chosen = events::choose(args, &metrics)?;
    let events = sets::choose(args, &names, &chosen.list)?;
    // The end of the process closes all events at once, which is cheaper than one by one.
    let mut session = ManuallyDrop::new(match events.sets.is_empty() {
        true => Session::with_events(Linux::new(), events.always)?,
        false => Session::with_sets(Linux::new(), events.always, events.sets)?,
    });
    session.set_method(args.sets.estimator.map(Estimator::method));
    session.set_accounting(match args.accounting {
        Accounting::Kernel => perfmon::Accounting::Kernel,
        Accounting::Switch => perfmon::Accounting::Switch,
    });
    let mut sink = Sink::open(args)?;
    let signals = SignalFd::take_over(&[
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
    ])
    .map_err(|errno| Failure::new(format!("can't take over signals: {errno}")))?;

    let mut results = Vec::new();
    let mut failure = None;
    for _ in 0..args.repeat {
        let mut measurement = Measurement::new(args, &plan, &metrics, &signals);
        match measurement.run(&mut session, &mut sink) {
            Ok(mut result) => {
                result.notes.extend(chosen.note.iter().chain(&events.notes).cloned());
                results.push(result);
            }
            // What the runs before have measured is not lost.
            Err(failed) if !results.is_empty() => failure = Some(failed),
            Err(failed) => return Err(failed),
        }
        let is_sure = args.sets.max_error.is_some_and(|limit| sure::of_runs(&results, limit));
        if failure.is_some() || measurement.interrupted() || is_sure {
            break;
        }
    }
    let is_sure = args.sets.max_error.is_none_or(|limit| sure::of_runs(&results, limit));
    let result = repeat::combine(results);
    output::result(&mut sink, args, &result)?;
    failure.map_or_else(|| Ok(exit_code(args, &result, is_sure)), Err)
}

fn exit_code(args: &Stat, result: &StatResult, is_sure: bool) -> ExitCode {
    let missing = result.events.iter().any(|event| event.value.is_none());
    if args.strict && missing {
        return exit::NOT_ALL_COUNTED.into();
    }
    match result.exit_status.unwrap_or(0) {
        0 if !is_sure => exit::NOT_SURE.into(),
        status => status.into(),
    }
}
