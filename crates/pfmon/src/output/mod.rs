//! How results look: text for people, JSON or CSV. Nothing is computed here.

mod csv;
mod doctor;
mod explain;
mod fit;
mod list;
mod pmu;
mod sink;
mod table;
mod text;

pub(crate) use sink::Sink;

use crate::args::{List, Stat};
use crate::cmd::doctor::results::DoctorResult;
use crate::cmd::explain::results::ExplainResult;
use crate::cmd::fit::results::FitResult;
use crate::cmd::list::results::ListResult;
use crate::cmd::pmu::results::PmuResult;
use crate::cmd::stat::results::{Interval, StatResult};
use crate::exit::Failure;

/// Prints the result of `stat`.
pub(crate) fn result(sink: &mut Sink, args: &Stat, result: &StatResult) -> Result<(), Failure> {
    let text = if args.json {
        json(result)?
    } else if args.csv {
        csv::result(result, args.interval.is_some())
    } else {
        table::result(result, sink.colour())
    };
    sink.write(&text)
}

/// Prints what was counted in one interval.
pub(crate) fn interval(sink: &mut Sink, args: &Stat, interval: &Interval) -> Result<(), Failure> {
    let text = if args.json {
        json(interval)?
    } else if args.csv {
        csv::interval(interval, sink.is_fresh())
    } else {
        table::interval(interval, sink.is_fresh(), sink.colour())
    };
    sink.write(&text)
}

/// Prints the result of `list`; `about` knows what a PMU is.
pub(crate) fn list<'d>(
    sink: &mut Sink,
    args: &List,
    result: &ListResult<'_>,
    about: &dyn Fn(&str) -> Option<&'d str>,
) -> Result<(), Failure> {
    let text = match args.common.json {
        true => json(result)?,
        false => list::table(result, about, args.masks, sink.colour()),
    };
    sink.write(&text)
}

/// Prints the result of `explain`.
pub(crate) fn explain(
    sink: &mut Sink,
    as_json: bool,
    result: &ExplainResult,
) -> Result<(), Failure> {
    let text = if as_json { json(result)? } else { explain::text(result, sink.colour()) };
    sink.write(&text)
}

/// Prints the result of `fit`.
pub(crate) fn fit(sink: &mut Sink, as_json: bool, result: &FitResult) -> Result<(), Failure> {
    let text = if as_json { json(result)? } else { fit::text(result) };
    sink.write(&text)
}

/// Prints the result of `pmu`.
pub(crate) fn pmu(sink: &mut Sink, as_json: bool, result: &PmuResult) -> Result<(), Failure> {
    let text = if as_json { json(result)? } else { pmu::text(result, sink.colour()) };
    sink.write(&text)
}

/// Prints the result of `doctor`.
pub(crate) fn doctor(sink: &mut Sink, as_json: bool, result: &DoctorResult) -> Result<(), Failure> {
    let text = if as_json { json(result)? } else { doctor::text(result, sink.colour()) };
    sink.write(&text)
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string(value).map_err(Failure::new)?;
    text.push('\n');
    Ok(text)
}
