//! One measure, and what follows from it for an event.

use super::to_f64;

/// One residence, as a measure sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stay {
    /// The measure at its entry.
    pub(super) begin: u64,
    /// By how much the measure grew from entry to exit.
    pub(super) span: f64,
    /// How much of that belongs to the time in which the event ran.
    pub(super) amount: f64,
    pub(super) count: f64,
}

/// A value and its variance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) value: f64,
    pub(super) variance: f64,
}

/// The sums over all residences but the last ones, which the next may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Measure {
    begin: u64,
    /// The last two residences, the older first, with the gap before each.
    older: Option<(Stay, f64)>,
    last: Option<(Stay, f64)>,
    stays: f64,
    amount: f64,
    count: f64,
    /// Sums of count², count · amount and amount².
    squares: [f64; 3],
    /// What the gaps between residences had, by the mean of the rates around each and by trapezoids.
    gaps: f64,
    trapezoids: f64,
    /// Residences that were predicted, and the sum of the squared errors.
    predicted: f64,
    errors: f64,
    /// The variance of `gaps` as far as residences were predicted.
    variance: f64,
    /// Sums of squared differences of rates: of neighbours, and of those with one between.
    variogram: [f64; 2],
}

impl Stay {
    fn rate(&self) -> f64 {
        if self.amount > 0.0 { self.count / self.amount } else { 0.0 }
    }

    fn uncovered(&self) -> f64 {
        (self.span - self.amount).max(0.0)
    }

    fn end(&self) -> f64 {
        to_f64(self.begin) + self.span
    }
}

impl Measure {
    pub(super) fn new(begin: u64) -> Self {
        Self { begin, ..Self::default() }
    }

    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// The measure over all residences.
    pub(super) fn amount(&self) -> f64 {
        self.amount
    }

    /// Takes note of a residence. Gives what the gap before it had; `otherwise` is taken where this measure stood still in
    /// both residences, and so tells nothing.
    pub(super) fn residence(&mut self, stay: Stay, otherwise: Option<f64>) -> f64 {
        self.stays += 1.0;
        self.amount += stay.amount;
        self.count += stay.count;
        let products =
            [stay.count * stay.count, stay.count * stay.amount, stay.amount * stay.amount];
        self.squares.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
        let Some((last, before_last)) = self.last else {
            let gap =
                (to_f64(stay.begin.saturating_sub(self.begin)) + stay.uncovered() / 2.0).max(0.0);
            let had = gap * stay.rate();
            self.gaps += had;
            self.trapezoids += had;
            self.last = Some((stay, gap));
            return had;
        };
        let gap = (to_f64(stay.begin) - last.end()).max(0.0)
            + (last.uncovered() + stay.uncovered()) / 2.0;
        let amounts = last.amount + stay.amount;
        let had = if amounts > 0.0 {
            gap * (last.count + stay.count) / amounts
        } else {
            otherwise.unwrap_or(0.0)
        };
        self.gaps += had;
        self.trapezoids += trapezoid(&last, &stay, gap);
        self.variogram[0] += (stay.rate() - last.rate()).powi(2);
        if let Some((older, _)) = self.older {
            self.variogram[1] += (stay.rate() - older.rate()).powi(2);
            self.predict([older, last, stay], [before_last, gap]);
        }
        self.older = self.last;
        self.last = Some((stay, gap));
        had
    }

    /// Learns from how well the residence in the middle follows from the others, with the gaps on both sides of it.
    fn predict(&mut self, [before, stay, after]: [Stay; 3], [left, right]: [f64; 2]) {
        let around = before.amount + after.amount;
        let predicted =
            if around > 0.0 { stay.amount * (before.count + after.count) / around } else { 0.0 };
        let error = (stay.count - predicted).powi(2);
        self.predicted += 1.0;
        self.errors += error;
        if stay.amount <= 0.0 || around <= 0.0 {
            return;
        }
        // Rates that change faster than sets do: each residence's error counts by its weight in the gaps around it, and each gap
        // has its own.
        let weight = left / (before.amount + stay.amount) + right / (stay.amount + after.amount);
        let noise = error / (stay.amount + stay.amount * stay.amount / around);
        let fast = noise * (weight * weight * stay.amount + f64::midpoint(left, right));
        // Rates that hold through a gap, but not to the next residence.
        let held = error * f64::midpoint(left * left, right * right) / (stay.amount * stay.amount);
        self.variance += fast.max(held);
    }

    /// By how much a prediction errs, squared; `None` without any.
    pub(super) fn prediction_error(&self) -> Option<f64> {
        (self.predicted > 1.0 && self.amount > 0.0).then(|| self.errors / self.predicted)
    }

    /// The same of predictions by the mean rate.
    pub(super) fn mean_error(&self) -> Option<f64> {
        (self.stays > 2.0 && self.amount > 0.0).then(|| self.residuals() / (self.stays - 1.0))
    }

    /// The sum of the squared errors of counts predicted by the mean rate.
    fn residuals(&self) -> f64 {
        let rate = self.count / self.amount;
        let [counts, products, amounts] = self.squares;
        (counts - 2.0 * rate * products + rate * rate * amounts).max(0.0)
    }

    fn total(&self, now: u64) -> f64 {
        to_f64(now.saturating_sub(self.begin)).max(self.amount)
    }

    /// The mean rate holds for all of the time.
    pub(super) fn by_mean(&self, now: u64) -> Option<Sum> {
        let total = self.total(now);
        if self.amount <= 0.0 {
            return None;
        }
        let factor = total / self.amount;
        // A sample of clusters from a finite population.
        let spread =
            if self.stays > 1.0 { self.residuals() * self.stays / (self.stays - 1.0) } else { 0.0 };
        let variance = factor * factor * spread * (1.0 - 1.0 / factor).max(0.0);
        Some(Sum { value: self.count * factor, variance })
    }

    pub(super) fn by_neighbours(&self, now: u64) -> Option<Sum> {
        self.with_tail(now, self.gaps)
    }

    pub(super) fn by_trapezoid(&self, now: u64) -> Option<Sum> {
        self.with_tail(now, self.trapezoids)
    }

    /// The gap behind the last residence has its rate.
    fn with_tail(&self, now: u64, gaps: f64) -> Option<Sum> {
        let (last, _) = self.last.filter(|_| self.amount > 0.0)?;
        let tail = (to_f64(now) - last.end()).max(0.0) + last.uncovered() / 2.0;
        // As many gaps as there are residences, and not all of these were predicted.
        let all = if self.predicted > 0.0 { (self.stays + 1.0) / self.predicted } else { 0.0 };
        let variance = self.variance * all * self.slowness_factor();
        Some(Sum { value: self.count + gaps + tail * last.rate(), variance })
    }

    /// Rates that change much more slowly than sets do err less between residences than residences do: of a step at a
    /// random place in a gap of length g the variance is g²/12 of its height squared, while predictions say g²/2.
    fn slowness_factor(&self) -> f64 {
        let [near, far] = self.variogram;
        if near <= 0.0 || self.stays < 4.0 {
            return 1.0;
        }
        let ratio = (far / (self.stays - 2.0)) / (near / (self.stays - 1.0));
        // 1 for rates that forget, 2 for those that wander; what chance may add is not believed.
        let slow = (ratio - 1.0 - 1.5 / self.stays.sqrt()).clamp(0.0, 1.0);
        1.0 - slow * 5.0 / 6.0
    }
}

/// What a gap had if the rate changes evenly from the middle of one residence to that of the next.
fn trapezoid(last: &Stay, stay: &Stay, gap: f64) -> f64 {
    let from = last.amount / 2.0;
    let length = from + gap + stay.amount / 2.0;
    if length <= 0.0 {
        return 0.0;
    }
    let slope = (stay.rate() - last.rate()) / length;
    gap * (last.rate() + slope * (from + gap / 2.0))
}
