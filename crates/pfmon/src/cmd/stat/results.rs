//! What `stat` found, as it is printed: the fields are those of docs/schema.md.

use std::collections::HashMap;

use perfmon::{Count, Event, Method, Part, Session, SetId, SetStats, Snapshot, Tally};
use serde::Serialize;

use super::metrics::MetricRow;
use crate::args::Stat;

/// One result of `pfmon stat`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StatResult {
    pub(crate) schema: &'static str,
    pub(crate) scope: String,
    pub(crate) command: Option<Vec<String>>,
    pub(crate) exit_status: Option<u8>,
    pub(crate) wall_ns: u64,
    pub(crate) user_ns: Option<u64>,
    pub(crate) system_ns: Option<u64>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) metrics: Vec<MetricRow>,
    pub(crate) runs: u32,
    pub(crate) sets: Option<Turns>,
    pub(crate) notes: Vec<String>,
}

/// What was counted in one interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interval {
    pub(crate) schema: &'static str,
    /// End of the interval, since counting began.
    pub(crate) time_ns: u64,
    pub(crate) events: Vec<EventRow>,
    pub(crate) metrics: Vec<MetricRow>,
}

/// How the turns of event sets went.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Turns {
    pub(crate) sets: Vec<SetRow>,
    pub(crate) residences: u64,
    pub(crate) uncovered_ns: u64,
    pub(crate) uncovered_max_ns: u64,
    pub(crate) time_ns: u64,
}

/// An event set.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SetRow {
    pub(crate) set: u16,
    pub(crate) events: String,
}

/// One event, or one part of its scope.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EventRow {
    /// The item of the list of events that it comes from; `None` for times.
    #[serde(skip)]
    pub(crate) item: Option<usize>,
    pub(crate) event: String,
    pub(crate) scope: Option<String>,
    pub(crate) comm: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) value: Option<u64>,
    pub(crate) unit: String,
    /// One count is so many units.
    pub(crate) scale: f64,
    pub(crate) enabled_ns: u64,
    pub(crate) running_ns: u64,
    pub(crate) coverage: f64,
    pub(crate) stderr: Option<f64>,
    pub(crate) interval95: Option<[f64; 2]>,
    /// The event's set, if it takes turns.
    pub(crate) set: Option<u16>,
    pub(crate) method: Option<&'static str>,
    pub(crate) residences: Option<u64>,
    pub(crate) reason: Option<String>,
    pub(crate) repeats: Option<Repeats>,
}

/// One event over several runs of a command.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Repeats {
    pub(crate) mean: f64,
    pub(crate) stddev: f64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

pub(crate) const RESULT_SCHEMA: &str = "pfmon.stat/1";
pub(crate) const INTERVAL_SCHEMA: &str = "pfmon.stat-interval/1";

/// The rows of all events, split up as `args` say; since `snapshot`, if one is given.
pub(crate) fn rows(session: &Session, args: &Stat, snapshot: Option<&Snapshot>) -> Vec<EventRow> {
    let mut rows = Vec::new();
    for (number, event) in session.events().iter().enumerate() {
        let set = session.set_of(number).map(|set| set.0);
        let row = |scope, tally: &Tally| EventRow { set, ..EventRow::new(event, scope, tally) };
        let sums = split(args, session.parts(number, snapshot));
        if sums.is_empty() {
            rows.push(row(
                None,
                &match snapshot {
                    Some(snapshot) => session.tally_since(number, snapshot),
                    None => session.tally(number),
                },
            ));
        }
        for Sum { part, scope, tally } in sums {
            let comm = session.comm(&part);
            rows.push(EventRow { comm, ..row(Some(scope), &tally) });
        }
    }
    rows
}

/// What was counted in parts of a scope that make one row.
struct Sum {
    part: Part,
    scope: String,
    tally: Tally,
}

/// Adds up the parts that make one row; no rows if all parts are added up. Several cgroups never are.
fn split(args: &Stat, parts: Vec<(Part, Tally)>) -> Vec<Sum> {
    let mut sums: Vec<Sum> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (part, tally) in parts {
        let scope = match &part {
            Part::Cgroup(directory, _) if !args.per_cpu => {
                format!("cgroup:{}", directory.display())
            }
            part if args.per_thread || args.per_process || args.per_cpu => part.to_string(),
            _ => continue,
        };
        match places.get(&scope).and_then(|&place| sums.get_mut(place)) {
            Some(sum) => sum.tally.add(&tally, &part),
            None => {
                places.insert(scope.clone(), sums.len());
                sums.push(Sum { part, scope, tally });
            }
        }
    }
    sums
}

/// The method's word.
fn method(method: Method) -> &'static str {
    match method {
        Method::Time => "time",
        Method::Trapezoid => "trapezoid",
        Method::Neighbours => "neighbours",
        Method::Reference(_) => "reference",
    }
}

impl Turns {
    /// Those of `session`, if it has sets.
    pub(crate) fn of(session: &Session) -> Option<Self> {
        let SetStats { residences, uncovered_ns, uncovered_max_ns, time_ns } =
            session.set_stats()?;
        let row = |(set, events): (SetId, &str)| SetRow { set: set.0, events: events.to_owned() };
        let sets = session.sets().map(row).collect();
        Some(Self { sets, residences, uncovered_ns, uncovered_max_ns, time_ns })
    }
}

impl EventRow {
    /// Half the width of the 95 % interval, where that is known: upwards, as downwards it ends at what was counted.
    pub(crate) fn half_width(&self) -> Option<f64> {
        let ([_, high], value) = (self.interval95?, self.value?);
        #[expect(clippy::cast_precision_loss, reason = "a statistic, not a count")]
        Some(high - value as f64)
    }

    fn new(event: &Event, scope: Option<String>, tally: &Tally) -> Self {
        let (state, estimate) = match &tally.count {
            Count::Exact(_) => ("exact", None),
            Count::Estimated(estimate) => ("estimated", Some(estimate)),
            Count::NotCounted(_) => ("not_counted", None),
            Count::Unsupported(_) => ("unsupported", None),
        };
        Self {
            item: Some(event.item),
            event: event.text.clone(),
            scope,
            comm: None,
            state,
            value: tally.count.value(),
            unit: event.unit.to_string(),
            scale: event.scale,
            enabled_ns: tally.enabled_ns,
            running_ns: tally.running_ns,
            coverage: tally.coverage(),
            stderr: estimate.and_then(|it| it.stderr),
            interval95: estimate.and_then(|it| it.interval95),
            set: None,
            method: estimate.map(|it| method(it.method)),
            residences: estimate.and_then(|it| it.residences),
            reason: tally.count.reason().map(ToString::to_string),
            repeats: None,
        }
    }

    /// A time as a row of its own.
    pub(crate) fn time(name: &str, value: Option<u64>) -> Self {
        Self {
            item: None,
            event: name.into(),
            scope: None,
            comm: None,
            state: if value.is_some() { "exact" } else { "not_counted" },
            value,
            unit: "ns".into(),
            scale: 1.0,
            enabled_ns: 0,
            running_ns: 0,
            coverage: if value.is_some() { 1.0 } else { 0.0 },
            stderr: None,
            interval95: None,
            set: None,
            method: None,
            residences: None,
            reason: None,
            repeats: None,
        }
    }
}
