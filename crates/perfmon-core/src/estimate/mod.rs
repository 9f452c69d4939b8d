//! Estimates of events that counted for part of the time, from the residences of their sets (docs/estimators.md).

mod measure;

use crate::{Caution, Count, Estimate, Method, Reason};
use measure::{Measure, Stay};

/// Fewer residences tell nothing of the error.
const RESIDENCES_MIN: u64 = 5;

/// Estimates one event of a set from its residences, in memory that does not grow with them.
///
/// It is told of *measures*: numbers that are known at every moment, the target's own time in nanoseconds first, then
/// the counts of references.
///
/// ```
/// use perfmon_core::{Estimator, Method};
///
/// // Counted in a fifth of the time, once every 10 ns.
/// let mut estimator = Estimator::new(&[0]);
/// for round in 0..10 {
///     estimator.residence(&[round * 500], &[round * 500 + 100], &[100], 10);
/// }
/// let estimate = estimator.estimate(&[5000], Some(Method::Time)).unwrap();
/// assert_eq!((estimate.value, estimate.counted, estimate.coverage), (500.0, 100, 0.2));
/// ```
#[derive(Clone, Debug)]
pub struct Estimator {
    /// One for each of the measures.
    measures: Vec<Measure>,
    counted: u64,
    residences: u64,
}

/// An estimate, with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetEstimate {
    /// The estimate in occurrences, no less than was counted.
    pub value: f64,
    /// Occurrences that were counted.
    pub counted: u64,
    /// Standard error of `value`.
    pub stderr: f64,
    /// Half the width of the 95 % interval.
    pub half_width95: f64,
    /// The share of the time in which the event was counted, 0 to 1.
    pub coverage: f64,
    /// How many residences it is made from.
    pub residences: u64,
    /// How it was made.
    pub method: Method,
    /// Why the interval may be wrong.
    pub caution: Option<Caution>,
}

impl Estimator {
    /// An estimator that knows nothing yet; `begin` is what the measures said when observation began.
    pub fn new(begin: &[u64]) -> Self {
        let measures = begin.iter().map(|&begin| Measure::new(begin)).collect();
        Self { measures, counted: 0, residences: 0 }
    }

    /// Takes note of one residence, in which the event counted `count`. The measures were taken just before its entry and
    /// just after its exit; `within` is how much of each fell to the time in which the event ran: the nanoseconds, and the
    /// counts of references that were switched together with it. What of a reference's is not known (`within` is shorter)
    /// is taken to be as the time's. Residences come in order.
    pub fn residence(&mut self, entry: &[u64], exit: &[u64], within: &[u64], count: u64) {
        self.counted = self.counted.saturating_add(count);
        let span = |number: usize| Some(exit.get(number)?.saturating_sub(*entry.get(number)?));
        let ran_ns = within.first().copied().unwrap_or(0);
        let Some(span_ns) = span(0).filter(|&span_ns| span_ns > 0 && ran_ns > 0) else { return };
        // Of a reference's count, as much as the event ran of the time.
        let share = (to_f64(ran_ns) / to_f64(span_ns)).min(1.0);
        self.residences += 1;
        let mut gap_by_time = None;
        for (number, measure) in self.measures.iter_mut().enumerate() {
            let (Some(&begin), Some(span)) = (entry.get(number), span(number)) else { continue };
            let stay = Stay {
                begin,
                span: to_f64(span),
                amount: within
                    .get(number)
                    .map_or(to_f64(span) * share, |it| to_f64(*it))
                    .min(to_f64(span)),
                count: to_f64(count),
            };
            let gap = measure.residence(stay, gap_by_time);
            gap_by_time.get_or_insert(gap);
        }
    }

    /// How many residences there were.
    pub fn residences(&self) -> u64 {
        self.residences
    }

    /// Occurrences that were counted.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// The estimate for the time up to `now`, by `method`, or by the one that predicts the event's own residences best from
    /// those around them. `None` if the event never ran, or there is no such reference.
    pub fn estimate(&self, now: &[u64], method: Option<Method>) -> Option<SetEstimate> {
        let none = Self::new(&self.measures.iter().map(|it| it.begin()).collect::<Vec<_>>());
        let then: Vec<u64> = self.measures.iter().map(Measure::begin).collect();
        self.estimate_since(now, &none, &then, method)
    }

    /// The estimate for the time since `then`, at which this estimator was `earlier`: the estimates of intervals add up to
    /// that of all of them.
    pub fn estimate_since(
        &self,
        now: &[u64],
        earlier: &Self,
        then: &[u64],
        method: Option<Method>,
    ) -> Option<SetEstimate> {
        let method = method.unwrap_or_else(|| self.best());
        let number = match method {
            Method::Time | Method::Trapezoid | Method::Neighbours => 0,
            Method::Reference(number) => number + 1,
        };
        let (measure, before) = (self.measures.get(number)?, earlier.measures.get(number)?);
        let time_ns = to_f64(now.first()?.saturating_sub(*then.first()?));
        let (now, then) = (*now.get(number)?, *then.get(number)?);
        let (whole, part) = match method {
            Method::Time => (measure.by_mean(now)?, before.by_mean(then)),
            Method::Trapezoid => (measure.by_trapezoid(now)?, before.by_trapezoid(then)),
            _ => (measure.by_neighbours(now)?, before.by_neighbours(then)),
        };
        let part = part.unwrap_or_default();
        let counted = self.counted.saturating_sub(earlier.counted);
        let residences = self.residences.saturating_sub(earlier.residences);
        let value = (whole.value - part.value).max(to_f64(counted));
        let stderr = (whole.variance - part.variance).max(0.0).sqrt();
        let (time, before) = (self.measures.first()?, earlier.measures.first()?);
        let ran = time.amount() - before.amount();
        let coverage = if time_ns > ran { ran / time_ns } else { 1.0 };
        let few = self.residences < RESIDENCES_MIN;
        Some(SetEstimate {
            value,
            counted,
            stderr,
            half_width95: (stderr * quantile95(self.residences)).max(if coverage < 1.0 {
                1.0
            } else {
                0.0
            }),
            coverage,
            residences,
            method,
            caution: few.then_some(Caution::FewResidences),
        })
    }

    /// The method that predicts residences best from those around them.
    fn best(&self) -> Method {
        let errors = self.measures.iter().enumerate().filter_map(|(number, measure)| {
            let method =
                if number == 0 { Method::Neighbours } else { Method::Reference(number - 1) };
            Some((method, measure.prediction_error()?))
        });
        let by_mean =
            self.measures.first().and_then(Measure::mean_error).map(|it| (Method::Time, it));
        let best = errors.chain(by_mean).min_by(|(_, a), (_, b)| a.total_cmp(b));
        best.map_or(Method::Time, |(method, _)| method)
    }
}

impl SetEstimate {
    /// The count; `by` says in words how it was made.
    pub fn to_count(&self, by: String) -> Count {
        let value = rounded(self.value).max(self.counted);
        Count::Estimated(Estimate {
            value,
            counted: self.counted,
            method: self.method,
            residences: Some(self.residences),
            stderr: Some(self.stderr),
            interval95: Some([
                (to_f64(value) - self.half_width95).max(to_f64(self.counted)),
                to_f64(value) + self.half_width95,
            ]),
            reason: Reason::OtherSets(by, self.caution),
        })
    }
}

/// How many standard errors half a 95 % interval has, known from so many residences: Student's, by Cornish and Fisher's
/// first terms.
fn quantile95(residences: u64) -> f64 {
    const NORMAL: f64 = 1.96;
    // Successive differences have about two thirds of the degrees of freedom.
    let freedom = to_f64(residences.saturating_sub(2)).max(1.0) / 1.5;
    NORMAL
        + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom)
        + (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / (96.0 * freedom.powi(2))
}

#[expect(clippy::cast_precision_loss, reason = "a statistic, not a count")]
fn to_f64(value: u64) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is too large saturates"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}
