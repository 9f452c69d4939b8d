//! Metrics of the groups that `-g` names, over what was counted.

use std::path::Path;
use std::time::Duration;

use perfmon::metrics::{self, Group, Metric, MetricValue, Operand};
use perfmon::{CpuTimes, Names, Scope, cpus};
use serde::Serialize;

use super::results::EventRow;
use crate::args::Stat;
use crate::exit::Failure;

/// A metric, over the whole scope or one part of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MetricRow {
    pub(crate) group: String,
    pub(crate) metric: String,
    pub(crate) scope: Option<String>,
    pub(crate) comm: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) value: Option<f64>,
    pub(crate) unit: String,
    pub(crate) reason: Option<String>,
    pub(crate) repeats: Option<MetricRepeats>,
}

/// One metric over several runs of a command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct MetricRepeats {
    pub(crate) mean: f64,
    pub(crate) stddev: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The groups that are asked for.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    groups: Vec<Group>,
    across_groups: bool,
}

/// What formulas may be over beside events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) wall: Duration,
    pub(crate) cpu: Option<CpuTimes>,
    pub(crate) cpus: usize,
}

impl Metrics {
    /// The groups that `args` name, whose events `names` must know.
    pub(crate) fn from_args(args: &Stat, names: &Names) -> Result<Self, Failure> {
        let mut groups = Vec::new();
        for name in &args.group {
            let group = group(name)?;
            let complain = |why: String| Failure::new(format!("metrics '{name}': {why}"));
            if group.events.is_empty() {
                return Err(complain("no event in them can be counted".into()));
            }
            names.parse(&group.event_list()).map_err(|error| complain(error.to_string()))?;
            groups.push(group);
        }
        Ok(Self { groups, across_groups: args.across_groups })
    }

    /// The CPU time of `scope`, which only formulas want to know for each interval.
    pub(crate) fn cpu_times(&self, scope: &Scope) -> Option<CpuTimes> {
        if self.groups.is_empty() { None } else { scope.cpu_times() }
    }

    /// The events of each group. They must be the first items of what is counted.
    pub(crate) fn event_lists(&self) -> impl Iterator<Item = String> {
        self.groups.iter().map(Group::event_list)
    }

    /// The metrics of each part of the scope that `rows` are of.
    pub(crate) fn evaluate(&self, rows: &[EventRow], times: &Times) -> Vec<MetricRow> {
        let mut scopes: Vec<&EventRow> = Vec::new();
        for row in rows {
            if !scopes.iter().any(|other| other.scope == row.scope) {
                scopes.push(row);
            }
        }
        let mut metrics = Vec::new();
        for part in scopes {
            let of_part: Vec<&EventRow> = rows.iter().filter(|it| it.scope == part.scope).collect();
            let mut first = 0;
            for group in &self.groups {
                let operand = |variable: &str| match group.index(variable) {
                    Some(place) => count(&of_part, first + place),
                    None => times.operand(variable, part.scope.is_some()),
                };
                let values = group.metrics.iter().map(|metric| {
                    let value = metric.evaluate(&operand, self.across_groups);
                    MetricRow::new(group, metric, part, value)
                });
                metrics.extend(values);
                first += group.events.len();
            }
        }
        metrics
    }
}

/// A group by its name, or by its file.
fn group(name: &str) -> Result<Group, Failure> {
    let path = Path::new(name);
    let is_file =
        name.contains('/') || path.extension().is_some_and(|it| it == "toml" || it == "txt");
    if is_file {
        return Group::load(path).map_err(Failure::new);
    }
    let directories = metrics::directories();
    metrics::find(name, &directories).map_err(|error| {
        let there = metrics::names(&directories).join(", ");
        Failure::new(format!("{error}\nthere are: {there}; or write a file's path"))
    })
}

/// What was counted of item number `item`. A name for events of several PMUs has several rows, and their sum
/// is its count if all are exact: an estimate of one PMU would stand for time on another, too.
fn count(rows: &[&EventRow], item: usize) -> Operand {
    let rows: Vec<&EventRow> = rows.iter().copied().filter(|row| row.item == Some(item)).collect();
    let operand = |row: &EventRow| {
        #[expect(clippy::cast_precision_loss, reason = "a metric is a statistic, not a count")]
        let value = row.value.map(|value| value as f64);
        match value {
            Some(value) if row.state == "exact" => Operand::Exact(value),
            Some(value) => Operand::Estimated(value),
            None => Operand::Missing(row.reason.clone().unwrap_or_else(|| "not counted".into())),
        }
    };
    match rows.as_slice() {
        [] => Operand::Missing("not counted".into()),
        [row] => operand(row),
        several => {
            let mut sum = 0.0;
            for row in several {
                match operand(row) {
                    Operand::Exact(value) => sum += value,
                    Operand::Estimated(_) => {
                        let why = format!(
                            "the count of {} is an estimate, and can't be added",
                            row.event
                        );
                        return Operand::Missing(why);
                    }
                    Operand::Missing(why) => {
                        return Operand::Missing(format!("{}: {why}", row.event));
                    }
                }
            }
            Operand::Exact(sum)
        }
    }
}

impl Times {
    /// The times that `scope` has used.
    pub(crate) fn new(scope: &Scope, wall: Duration, cpu: Option<CpuTimes>) -> Self {
        let online = || cpus::online().map_or(1, |cpus| cpus.len());
        let cpus = match scope {
            Scope::Cpus(cpus) | Scope::Cgroups { cpus: Some(cpus), .. } => cpus.len(),
            Scope::System | Scope::Cgroups { cpus: None, .. } => online(),
            _ => 1,
        };
        Self { wall, cpu, cpus }
    }

    /// A built-in variable, for a part of the scope if `is_part`.
    fn operand(&self, variable: &str, is_part: bool) -> Operand {
        let cpu = |of: fn(&CpuTimes) -> Duration| match &self.cpu {
            _ if is_part => Operand::Missing("not known for a part of the scope".into()),
            Some(cpu) => Operand::Exact(of(cpu).as_secs_f64()),
            None => Operand::Missing(
                "not known: of a command only at its end, else a target has ended, or gives none"
                    .into(),
            ),
        };
        match variable {
            "wall_s" => Operand::Exact(self.wall.as_secs_f64()),
            #[expect(clippy::cast_precision_loss, reason = "there are fewer CPUs than 2^52")]
            "cpus" => Operand::Exact(if is_part { 1.0 } else { self.cpus as f64 }),
            "user_s" => cpu(|cpu| cpu.user),
            "system_s" => cpu(|cpu| cpu.system),
            _ => Operand::Missing("not known".into()),
        }
    }
}

impl MetricRow {
    fn new(group: &Group, metric: &Metric, part: &EventRow, value: MetricValue) -> Self {
        let number = value.value();
        let (state, reason) = match value {
            MetricValue::Exact(_) => ("exact", None),
            MetricValue::Estimated(_) => ("estimated", None),
            MetricValue::Undefined(why) => ("undefined", Some(why)),
            MetricValue::Refused(refusal) => ("refused", Some(refusal.to_string())),
            MetricValue::Missing(why) => ("not_counted", Some(why)),
        };
        Self {
            group: group.name.clone(),
            metric: metric.name.clone(),
            scope: part.scope.clone(),
            comm: part.comm.clone(),
            state,
            value: number,
            unit: metric.unit.clone(),
            reason,
            repeats: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = r#"
format = 1
name = "test"
about = "A test"
together = [["a", "b"]]
[events]
a = "page-faults"
b = "minor-faults"
c = "task-clock"
[[metric]]
name = "a per b"
formula = "a / b"
unit = "x"
[[metric]]
name = "a per c"
formula = "a / c"
unit = "x"
[[metric]]
name = "rate"
formula = "a / wall_s / cpus"
unit = "1/s"
[[metric]]
name = "user"
formula = "user_s"
unit = "s"
"#;

    fn row(item: usize, state: &'static str, value: u64, scope: Option<&str>) -> EventRow {
        EventRow {
            item: Some(item),
            state,
            scope: scope.map(str::to_owned),
            ..EventRow::time("event", Some(value))
        }
    }

    fn evaluate(rows: &[EventRow], across_groups: bool) -> Vec<(Option<f64>, &'static str)> {
        let groups = vec![Group::from_toml(GROUP, "test.toml").unwrap()];
        let metrics = Metrics { groups, across_groups };
        let cpu = CpuTimes { user: Duration::from_secs(3), ..CpuTimes::default() };
        let times = Times { wall: Duration::from_secs(2), cpu: Some(cpu), cpus: 4 };
        let rows = metrics.evaluate(rows, &times);
        rows.iter().map(|row| (row.value, row.state)).collect()
    }

    /// Check numbers worked out by hand.
    #[test]
    fn formulas_are_over_counts_and_times() {
        let rows = [row(0, "exact", 80, None), row(1, "exact", 40, None), row(2, "exact", 0, None)];
        let expected = [
            (Some(2.0), "exact"),
            (None, "undefined"),
            (Some(10.0), "exact"),
            (Some(3.0), "exact"),
        ];
        assert_eq!(evaluate(&rows, false), expected);
    }

    /// Check that an estimate goes only with what ran together with it, unless asked for.
    #[test]
    fn events_that_ran_apart_are_refused() {
        let rows = [
            row(0, "estimated", 80, None),
            row(1, "estimated", 40, None),
            row(2, "exact", 5, None),
        ];
        let states = |across| evaluate(&rows, across)[..3].to_vec();
        let together = (Some(2.0), "estimated");
        let rate = (Some(10.0), "estimated");
        assert_eq!(states(false), [together, (None, "refused"), rate]);
        assert_eq!(states(true), [together, (Some(16.0), "estimated"), rate]);
    }

    /// Check that each part of a scope has its own metrics, for one CPU, and that no count is borrowed.
    #[test]
    fn parts_have_their_own_metrics() {
        let rows = [
            row(0, "exact", 8, Some("CPU 0")),
            row(0, "exact", 6, Some("CPU 1")),
            row(1, "exact", 2, Some("CPU 0")),
        ];
        let missing = (None, "not_counted");
        let expected = [
            (Some(4.0), "exact"),
            missing,
            (Some(4.0), "exact"),
            missing,
            missing,
            missing,
            (Some(3.0), "exact"),
            missing,
        ];
        assert_eq!(evaluate(&rows, false), expected);
    }

    /// Check that the counts of several core types are added up only if they are exact.
    #[test]
    fn exact_counts_of_several_pmus_are_added_up() {
        let exact = [row(0, "exact", 8, None), row(0, "exact", 6, None), row(1, "exact", 2, None)];
        assert_eq!(evaluate(&exact, true)[0], (Some(7.0), "exact"));
        let mixed =
            [row(0, "exact", 8, None), row(0, "estimated", 6, None), row(1, "exact", 2, None)];
        assert_eq!(evaluate(&mixed, true)[0], (None, "not_counted"));
    }
}
