//! How results look: a table, JSON or CSV. Nothing is computed here.

mod csv;
mod sink;
mod table;

pub(crate) use sink::Sink;

use crate::args::Stat;
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

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string(value).map_err(Failure::new)?;
    text.push('\n');
    Ok(text)
}
