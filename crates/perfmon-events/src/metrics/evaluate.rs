use perfmon_core::{Count, Refusal};

use super::formula::Formula;
use super::group::Metric;

/// What a variable of a formula stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// Every occurrence was counted. Also for numbers that are no counts, such as `wall_s`.
    Exact(f64),
    /// The event shared the PMU; the value stands for the whole time.
    Estimated(f64),
    /// There is no number, and why.
    Missing(String),
}

impl From<&Count> for Operand {
    #[expect(clippy::cast_precision_loss, reason = "a metric is a statistic, not a count")]
    fn from(count: &Count) -> Self {
        match count {
            Count::Exact(value) => Self::Exact(*value as f64),
            Count::Estimated(estimate) => Self::Estimated(estimate.value as f64),
            Count::NotCounted(reason) | Count::Unsupported(reason) => {
                Self::Missing(reason.to_string())
            }
        }
    }
}

/// What a metric says: a number, and how far to trust it, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// All its counts are exact.
    Exact(f64),
    /// A count is an estimate, so the metric is one.
    Estimated(f64),
    /// The formula has no value for these counts (`'cycles' is 0`).
    Undefined(String),
    /// The number would not be true, or the formula needs what is not offered.
    Refused(Refusal),
    /// One of its events has no count: which, and why.
    Missing(String),
}

impl MetricValue {
    /// The number, exact or estimated; `None` if there is none.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Exact(value) | Self::Estimated(value) => Some(*value),
            Self::Undefined(_) | Self::Refused(_) | Self::Missing(_) => None,
        }
    }
}

impl Metric {
    /// The metric's value, given what its variables stand for: a count's number (nanoseconds for the
    /// clocks) for a variable of the group's events, and a number for a built-in one.
    ///
    /// As soon as one of the events is estimated, all of them must have run together: other counts
    /// stand for other parts of the time. With `across_groups` they need not, and the result is an
    /// estimate.
    pub fn evaluate(&self, value: &dyn Fn(&str) -> Operand, across_groups: bool) -> MetricValue {
        let formula = match self.formula() {
            Ok(formula) => formula,
            Err(refusal) => return MetricValue::Refused(refusal.clone()),
        };
        let mut values = Vec::new();
        let mut estimated = Vec::new();
        for variable in formula.variables() {
            match value(variable) {
                Operand::Exact(value) => values.push(value),
                Operand::Estimated(value) => {
                    values.push(value);
                    estimated.push(variable);
                }
                Operand::Missing(why) => {
                    return MetricValue::Missing(format!("'{variable}': {why}"));
                }
            }
        }
        if !across_groups && let Some(refusal) = self.ran_apart(formula, &estimated) {
            return MetricValue::Refused(refusal);
        }
        match formula.value(&values) {
            Ok(value) if estimated.is_empty() => MetricValue::Exact(value),
            Ok(value) => MetricValue::Estimated(value),
            Err(why) => MetricValue::Undefined(why),
        }
    }

    /// Two events of the formula that did not run together, one of which is estimated.
    fn ran_apart(&self, formula: &Formula, estimated: &[&str]) -> Option<Refusal> {
        estimated.iter().find_map(|&estimate| {
            let together = self.together(estimate)?;
            let is_apart = |variable: &&str| {
                let other = self.together(variable);
                *variable != estimate && other.is_some_and(|it| it.is_none() || it != together)
            };
            let other = formula.variables().find(is_apart)?;
            let why = format!(
                "'{estimate}' and '{other}' did not run together: '{estimate}' shared the PMU, and \
                 its count is estimated from another part of the time"
            );
            let hint = "count them in one group, or ask for it with --across-groups";
            Some(Refusal::new(why).hint(hint))
        })
    }
}
