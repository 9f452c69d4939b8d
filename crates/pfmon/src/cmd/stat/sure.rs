//! How sure estimates are.

use super::results::{EventRow, StatResult};

/// Whether every event of `rows` that has turns is known to `limit`, a share of its value.
pub(crate) fn of_rows(rows: &[EventRow], limit: f64) -> bool {
    rows.iter().filter(|row| row.set.is_some()).all(|row| of_values(&[row], limit))
}

/// Whether the mean over `runs` is, for every event.
pub(crate) fn of_runs(runs: &[StatResult], limit: f64) -> bool {
    let Some(first) = runs.first() else { return false };
    (0..first.events.len()).all(|number| {
        let rows: Vec<&EventRow> = runs.iter().filter_map(|run| run.events.get(number)).collect();
        rows.iter().all(|row| row.set.is_none()) || of_values(&rows, limit)
    })
}

/// Whether the mean of these values of one event is. Errors of different runs have nothing to do with each other.
fn of_values(rows: &[&EventRow], limit: f64) -> bool {
    let (mut sum, mut squares) = (0.0, 0.0);
    for row in rows {
        #[expect(clippy::cast_precision_loss, reason = "a statistic, not a count")]
        let value = row.value.map(|value| value as f64);
        match (row.state, value, row.half_width()) {
            // What can't be counted is never known better.
            ("unsupported", ..) => return true,
            ("exact", Some(value), _) => sum += value,
            (_, Some(value), Some(half)) => {
                sum += value;
                squares += half * half;
            }
            _ => return false,
        }
    }
    squares.sqrt() <= limit * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: u64, half: f64) -> EventRow {
        EventRow {
            state: "estimated",
            set: Some(0),
            interval95: Some([0.0, value as f64 + half]),
            ..EventRow::time("event", Some(value))
        }
    }

    /// Check that a value is known to its half-width, and a mean of runs better than each, to the digit.
    #[test]
    fn runs_make_surer() {
        let (good, bad) = (row(1000, 19.0), row(1000, 30.0));
        assert!(of_rows(&[row(1000, 20.0)], 0.02));
        assert!(!of_rows(&[good.clone(), bad.clone()], 0.02));
        assert!(!of_values(&[&bad], 0.02));
        // √2 · 30 of 2000 are 2.12 %, √3 · 30 of 3000 are 1.73 %.
        assert!(!of_values(&[&bad, &bad], 0.02));
        assert!(of_values(&[&bad, &bad, &bad], 0.02));
        let missing = EventRow { value: None, state: "not_counted", ..good };
        assert!(!of_rows(&[missing], 0.5));
    }
}
