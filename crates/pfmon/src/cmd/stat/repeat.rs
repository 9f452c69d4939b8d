//! Several runs of one command made into one result.

use super::metrics::{MetricRepeats, MetricRow};
use super::results::{EventRow, Repeats, StatResult};

/// The result of all `runs` (at least one): means over the runs, with their spread.
pub(crate) fn combine(mut runs: Vec<StatResult>) -> StatResult {
    let count = runs.len();
    let mut result = runs.remove(0);
    if count == 1 {
        return result;
    }
    let mean_of = |first: Option<u64>, of: &dyn Fn(&StatResult) -> Option<u64>| {
        let all: Option<Vec<u64>> = std::iter::once(first).chain(runs.iter().map(of)).collect();
        all.map(|all| rounded(mean(&all)))
    };
    result.wall_ns = mean_of(Some(result.wall_ns), &|run| Some(run.wall_ns)).unwrap_or(0);
    result.user_ns = mean_of(result.user_ns, &|run| run.user_ns);
    result.system_ns = mean_of(result.system_ns, &|run| run.system_ns);
    let failed = |run: &StatResult| run.exit_status.filter(|&status| status != 0);
    result.exit_status =
        failed(&result).or_else(|| runs.iter().find_map(failed)).or(result.exit_status);
    result.runs = u32::try_from(count).unwrap_or(u32::MAX);
    for (number, row) in result.events.iter_mut().enumerate() {
        let rows: Vec<&EventRow> = runs.iter().filter_map(|run| run.events.get(number)).collect();
        combine_rows(row, &rows);
    }
    for (number, row) in result.metrics.iter_mut().enumerate() {
        let rows: Vec<&MetricRow> = runs.iter().filter_map(|run| run.metrics.get(number)).collect();
        combine_metrics(row, &rows);
    }
    for run in runs {
        for note in run.notes {
            if !result.notes.contains(&note) {
                result.notes.push(note);
            }
        }
    }
    result
}

fn combine_rows(row: &mut EventRow, others: &[&EventRow]) {
    let worst = others.iter().find(|other| other.value.is_none() && row.value.is_some());
    let worst = worst
        .or_else(|| others.iter().find(|other| row.state == "exact" && other.state != "exact"));
    let (state, reason) =
        worst.map_or((row.state, row.reason.clone()), |worst| (worst.state, worst.reason.clone()));
    let all: Option<Vec<u64>> =
        std::iter::once(row.value).chain(others.iter().map(|other| other.value)).collect();
    let enabled: u64 = row.enabled_ns + others.iter().map(|other| other.enabled_ns).sum::<u64>();
    let running: u64 = row.running_ns + others.iter().map(|other| other.running_ns).sum::<u64>();
    let runs = others.len() as u64 + 1;
    (row.state, row.reason) = (state, reason);
    (row.enabled_ns, row.running_ns) = (enabled / runs, running / runs);
    row.coverage = match (&all, enabled) {
        (None, _) => 0.0,
        (Some(_), 0) => 1.0,
        (Some(_), _) => to_f64(running) / to_f64(enabled),
    };
    (row.stderr, row.interval95, row.residences) = (None, None, None);
    row.value = all.as_ref().map(|all| rounded(mean(all)));
    row.repeats = all.map(|all| Repeats {
        mean: mean(&all),
        stddev: standard_deviation(&all),
        min: all.iter().copied().min().unwrap_or(0),
        max: all.iter().copied().max().unwrap_or(0),
    });
}

/// The mean of a metric is that of its values, not a formula over mean counts.
fn combine_metrics(row: &mut MetricRow, others: &[&MetricRow]) {
    let worst = others.iter().find(|other| other.value.is_none() && row.value.is_some());
    let worst = worst
        .or_else(|| others.iter().find(|other| row.state == "exact" && other.state != "exact"));
    if let Some(worst) = worst {
        (row.state, row.reason) = (worst.state, worst.reason.clone());
    }
    let all: Option<Vec<f64>> =
        std::iter::once(row.value).chain(others.iter().map(|other| other.value)).collect();
    row.repeats = all.map(|all| MetricRepeats {
        mean: all.iter().sum::<f64>() / to_f64(all.len() as u64),
        stddev: deviation(&all),
        min: all.iter().copied().fold(f64::INFINITY, f64::min),
        max: all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    });
    row.value = row.repeats.as_ref().map(|repeats| repeats.mean);
}

/// Sample standard deviation (n − 1); 0 of a single value.
fn standard_deviation(values: &[u64]) -> f64 {
    deviation(&values.iter().copied().map(to_f64).collect::<Vec<f64>>())
}

fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / to_f64(values.len() as u64);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / to_f64(values.len() as u64 - 1)).sqrt()
}

fn mean(values: &[u64]) -> f64 {
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a mean, not a count")]
    let sum = sum as f64;
    sum / to_f64(values.len() as u64)
}

#[expect(clippy::cast_precision_loss, reason = "a statistic, not a count")]
fn to_f64(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of u64 fits")]
fn rounded(mean: f64) -> u64 {
    mean.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: Option<u64>, wall_ns: u64, exit_status: u8) -> StatResult {
        let state = if value.is_some() { "exact" } else { "not_counted" };
        let row = EventRow {
            item: Some(0),
            event: "cs".into(),
            scope: None,
            comm: None,
            state,
            value,
            unit: "events".into(),
            scale: 1.0,
            enabled_ns: 10,
            running_ns: 10,
            coverage: 1.0,
            stderr: None,
            interval95: None,
            set: None,
            method: None,
            residences: None,
            reason: value.is_none().then(|| "why".into()),
            repeats: None,
        };
        StatResult {
            schema: super::super::results::RESULT_SCHEMA,
            scope: String::new(),
            command: None,
            exit_status: Some(exit_status),
            wall_ns,
            user_ns: Some(wall_ns),
            system_ns: None,
            events: vec![row],
            metrics: Vec::new(),
            runs: 1,
            sets: None,
            notes: vec!["a note".into()],
        }
    }

    /// Check means, spread and status over runs against numbers worked out by hand.
    #[test]
    fn runs_become_means() {
        let result = combine(vec![run(Some(2), 10, 0), run(Some(4), 20, 3), run(Some(9), 30, 5)]);
        let row = &result.events[0];
        assert_eq!((row.value, row.state, result.runs), (Some(5), "exact", 3));
        let repeats = row.repeats.as_ref().unwrap();
        assert_eq!((repeats.mean, repeats.min, repeats.max), (5.0, 2, 9));
        assert!((repeats.stddev - 13.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((result.wall_ns, result.user_ns, result.system_ns), (20, Some(20), None));
        assert_eq!(result.notes, ["a note"]);
        assert_eq!(result.exit_status, Some(3));
    }

    /// Check that a metric's mean is that of its values, and that a run without one leaves none.
    #[test]
    fn metrics_of_runs_become_means() {
        let row = |value: Option<f64>| MetricRow {
            group: "g".into(),
            metric: "m".into(),
            scope: None,
            comm: None,
            state: if value.is_some() { "exact" } else { "undefined" },
            value,
            unit: "x".into(),
            reason: value.is_none().then(|| "why".into()),
            repeats: None,
        };
        let run = |value| StatResult { metrics: vec![row(value)], ..run(Some(1), 1, 0) };
        let metric = combine(vec![run(Some(1.0)), run(Some(2.0))]).metrics.remove(0);
        let repeats = MetricRepeats { mean: 1.5, stddev: 0.5_f64.sqrt(), min: 1.0, max: 2.0 };
        assert_eq!((metric.value, metric.repeats), (Some(1.5), Some(repeats)));
        let metric = combine(vec![run(Some(1.0)), run(None)]).metrics.remove(0);
        assert_eq!((metric.value, metric.state), (None, "undefined"));
        assert_eq!((metric.reason.as_deref(), metric.repeats), (Some("why"), None));
    }

    /// Check that a run without a count leaves the whole without one.
    #[test]
    fn one_run_without_a_count_spoils_the_mean() {
        let result = combine(vec![run(Some(2), 10, 0), run(None, 20, 0)]);
        let row = &result.events[0];
        assert_eq!(
            (row.value, row.state, row.reason.as_deref()),
            (None, "not_counted", Some("why"))
        );
        assert!(row.repeats.is_none());
    }
}
