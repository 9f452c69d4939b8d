use std::fmt;

use crate::{Reading, Refusal};

/// What a counter says: a number, and how far to trust it, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Count {
    /// Every occurrence was counted.
    Exact(u64),
    /// The event ran for part of the time; the value is an estimate of the whole.
    Estimated(Estimate),
    /// The event exists here, but was not counted.
    NotCounted(Reason),
    /// The event can't be counted here.
    Unsupported(Reason),
}

/// An estimate of a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate, in occurrences (nanoseconds for clocks).
    pub value: u64,
    /// Occurrences that were really counted.
    pub counted: u64,
    /// How it was made.
    pub method: Method,
    /// Residences of the event's set that it was made from; `None` if the kernel rotated.
    pub residences: Option<u64>,
    /// Standard error of `value`, where it is known.
    pub stderr: Option<f64>,
    /// 95 % interval of the true count, lowest and highest, where it is known.
    pub interval95: Option<[f64; 2]>,
    /// Why this is an estimate.
    pub reason: Reason,
}

/// How an estimate follows from what was counted while the event's set was active (docs/estimators.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The mean rate over all that was counted holds for all of the time.
    Time,
    /// The rate changes evenly from one residence to the next.
    Trapezoid,
    /// Between two residences the rate is the mean of both.
    Neighbours,
    /// As [`Neighbours`](Self::Neighbours), but for each count of a reference instead of each nanosecond: an event that
    /// counts all the time, by its number among the references.
    Reference(usize),
}

/// What makes an estimate's interval doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Too few residences to judge by.
    FewResidences,
    /// What the residences say of the references is not what these counted: the target's phases seem to be in step with the
    /// rotation of the sets.
    InStep,
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FewResidences => {
                "too few residences to know the error: run longer, or with a shorter dwell"
            }
            Self::InStep => {
                "phases in step with the sets: the interval may miss the truth; randomise the dwell"
            }
        })
    }
}

/// Why a count is not exact.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The event shared the PMU: it ran for part of the time for which it was enabled.
    SharedPmu,
    /// The event's set took turns with others; by which method the estimate was made, and what to beware of.
    OtherSets(String, Option<Caution>),
    /// The event's set was never active.
    SetNeverActive,
    /// The event was enabled, but never got onto the PMU.
    NeverScheduled,
    /// Counting never started.
    NeverStarted,
    /// The kernel took the event off the PMU for good (a pinned event that could not be scheduled).
    InError,
    /// The kernel or the backend said no.
    Refused(Refusal),
    /// One part of a sum (named) has no count, for the reason behind it.
    Part(String, Box<Reason>),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedPmu => f.write_str("shared the PMU: ran for part of the time, value scaled by time"),
            Self::OtherSets(by, None) => write!(f, "in turn with other sets; {by}"),
            Self::OtherSets(by, Some(caution)) => write!(f, "in turn with other sets; {by}; {caution}"),
            Self::SetNeverActive => {
                f.write_str("its set was never active: run longer, or with a shorter dwell")
            }
            Self::NeverScheduled => f.write_str(
                "enabled, but never got onto the PMU: too few counters for its group, or all taken; \
                 try fewer events or smaller groups",
            ),
            Self::NeverStarted => f.write_str("counting never started"),
            Self::InError => f.write_str(
                "pinned, and the kernel could not keep it on the PMU; try without the modifier D",
            ),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Part(part, reason) => write!(f, "{part}: {reason}"),
        }
    }
}

impl Count {
    /// The count that `reading` stands for, of an event that was started.
    ///
    /// A target that never ran while the event was enabled has exactly 0 occurrences.
    pub fn from_reading(reading: &Reading) -> Self {
        let &Reading { value, enabled_ns, running_ns, in_error } = reading;
        if in_error {
            Self::NotCounted(Reason::InError)
        } else if running_ns >= enabled_ns {
            Self::Exact(value)
        } else if running_ns == 0 {
            Self::NotCounted(Reason::NeverScheduled)
        } else {
            Self::Estimated(Estimate {
                value: scaled(value, enabled_ns, running_ns),
                counted: value,
                method: Method::Time,
                residences: None,
                stderr: None,
                interval95: None,
                reason: Reason::SharedPmu,
            })
        }
    }

    /// The number, exact or estimated; `None` if there is none.
    pub fn value(&self) -> Option<u64> {
        match self {
            Self::Exact(value) | Self::Estimated(Estimate { value, .. }) => Some(*value),
            Self::NotCounted(_) | Self::Unsupported(_) => None,
        }
    }

    /// The number if it is exact.
    pub fn exact(&self) -> Option<u64> {
        match self {
            Self::Exact(value) => Some(*value),
            _ => None,
        }
    }

    /// Why the count is not exact; `None` if it is.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Exact(_) => None,
            Self::Estimated(Estimate { reason, .. })
            | Self::NotCounted(reason)
            | Self::Unsupported(reason) => Some(reason),
        }
    }
}

/// `value` scaled from the time it ran to the time it was enabled, rounded to nearest.
fn scaled(value: u64, enabled_ns: u64, running_ns: u64) -> u64 {
    let running = u128::from(running_ns);
    let product = u128::from(value) * u128::from(enabled_ns);
    u64::try_from((product + running / 2) / running).unwrap_or(u64::MAX)
}

/// A count with the times behind it, and the sum of several.
///
/// A sum is exact if all its parts are, estimated if a part is, and has no value if a part has none:
/// the reason then names that part.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// What the counter says.
    pub count: Count,
    /// Nanoseconds for which the event was enabled, added up over the parts.
    pub enabled_ns: u64,
    /// Nanoseconds for which the event was on the PMU, added up over the parts.
    pub running_ns: u64,
}

impl Tally {
    /// The tally of one reading of an event that was started.
    pub fn from_reading(reading: &Reading) -> Self {
        Self {
            count: Count::from_reading(reading),
            enabled_ns: reading.enabled_ns,
            running_ns: reading.running_ns,
        }
    }

    /// A tally without a value.
    pub fn without_value(count: Count) -> Self {
        Self { count, enabled_ns: 0, running_ns: 0 }
    }

    /// The sum of nothing: exactly 0.
    pub fn zero() -> Self {
        Self { count: Count::Exact(0), enabled_ns: 0, running_ns: 0 }
    }

    /// The share of the enabled time for which the event ran, 0 to 1.
    ///
    /// 1 for a target that never ran while the event was enabled (nothing was missed), 0 for a count
    /// without a value.
    pub fn coverage(&self) -> f64 {
        if self.count.value().is_none() {
            0.0
        } else if self.enabled_ns == 0 {
            1.0
        } else {
            ratio(self.running_ns, self.enabled_ns).min(1.0)
        }
    }

    /// Adds `other`, which is called `part` should it have no value.
    pub fn add(&mut self, other: &Self, part: &dyn fmt::Display) {
        self.enabled_ns = self.enabled_ns.saturating_add(other.enabled_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
        let sum = match (&self.count, &other.count) {
            // A sum that lacks a part already stays without a value.
            (Count::NotCounted(_) | Count::Unsupported(_), _) => return,
            (_, Count::NotCounted(reason)) => {
                Count::NotCounted(Reason::Part(part.to_string(), Box::new(reason.clone())))
            }
            (_, Count::Unsupported(reason)) => {
                Count::Unsupported(Reason::Part(part.to_string(), Box::new(reason.clone())))
            }
            (Count::Exact(a), Count::Exact(b)) => Count::Exact(a.wrapping_add(*b)),
            (Count::Estimated(estimate), Count::Exact(value))
            | (Count::Exact(value), Count::Estimated(estimate)) => Count::Estimated(Estimate {
                value: estimate.value.saturating_add(*value),
                counted: estimate.counted.saturating_add(*value),
                interval95: estimate
                    .interval95
                    .map(|[low, high]| [low + to_f64(*value), high + to_f64(*value)]),
                ..estimate.clone()
            }),
            (Count::Estimated(a), Count::Estimated(b)) => Count::Estimated(a.plus(b)),
        };
        self.count = sum;
    }
}

impl Estimate {
    /// The sum of two estimates whose errors have nothing to do with each other.
    fn plus(&self, other: &Self) -> Self {
        let value = self.value.saturating_add(other.value);
        let counted = self.counted.saturating_add(other.counted);
        let half = |it: &Self| it.interval95.map(|[_, high]| high - to_f64(it.value));
        let interval95 = half(self).zip(half(other)).map(|(a, b)| {
            let half = a.hypot(b);
            [(to_f64(value) - half).max(to_f64(counted)), to_f64(value) + half]
        });
        // The more doubtful of both speaks for the sum.
        let is_cautious = |it: &Self| matches!(it.reason, Reason::OtherSets(_, Some(_)));
        let spokesman = if is_cautious(other) && !is_cautious(self) { other } else { self };
        Self {
            value,
            counted,
            method: spokesman.method,
            residences: self.residences.zip(other.residences).map(|(a, b)| a.saturating_add(b)),
            stderr: self.stderr.zip(other.stderr).map(|(a, b)| a.hypot(b)),
            interval95,
            reason: spokesman.reason.clone(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a statistic, not a count")]
fn to_f64(value: u64) -> f64 {
    value as f64
}

fn ratio(part: u64, whole: u64) -> f64 {
    to_f64(part) / to_f64(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(value: u64, enabled_ns: u64, running_ns: u64) -> Reading {
        Reading { value, enabled_ns, running_ns, in_error: false }
    }

    /// Check that each case of times gives its state, and that 0 is said only where it is true.
    #[test]
    fn state_follows_times() {
        assert_eq!(Count::from_reading(&reading(7, 10, 10)), Count::Exact(7));
        assert_eq!(Count::from_reading(&reading(0, 0, 0)), Count::Exact(0));
        assert_eq!(
            Count::from_reading(&reading(0, 10, 0)),
            Count::NotCounted(Reason::NeverScheduled)
        );
        let Count::Estimated(estimate) = Count::from_reading(&reading(7, 10, 4)) else { panic!() };
        assert_eq!((estimate.value, estimate.counted), (18, 7)); // 17.5, to nearest
        let in_error = Reading { in_error: true, ..reading(0, 10, 10) };
        assert_eq!(Count::from_reading(&in_error), Count::NotCounted(Reason::InError));
    }

    /// Check that scaling never overflows nor wraps.
    #[test]
    fn scaling_saturates() {
        assert_eq!(scaled(u64::MAX, 3, 1), u64::MAX);
        assert_eq!(scaled(1 << 63, 3, 2), (1 << 62) * 3);
    }

    /// Check that a sum is as good as its worst part, and that the part is named.
    #[test]
    fn sum_is_as_good_as_its_worst_part() {
        let mut sum = Tally::zero();
        sum.add(&Tally::from_reading(&reading(7, 10, 10)), &"cpu 0");
        assert_eq!(sum, Tally { count: Count::Exact(7), enabled_ns: 10, running_ns: 10 });
        sum.add(&Tally::from_reading(&reading(2, 10, 5)), &"cpu 1");
        assert_eq!((sum.count.value(), sum.count.exact(), sum.coverage()), (Some(11), None, 0.75));
        sum.add(&Tally::from_reading(&reading(0, 10, 0)), &"cpu 2");
        assert_eq!((sum.count.value(), sum.coverage()), (None, 0.0));
        let expected = Reason::Part("cpu 2".into(), Box::new(Reason::NeverScheduled));
        assert_eq!(sum.count.reason(), Some(&expected));
        sum.add(&Tally::from_reading(&reading(7, 10, 10)), &"cpu 3");
        assert_eq!(sum.count.value(), None);
    }
}
