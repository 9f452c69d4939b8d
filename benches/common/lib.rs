//! What both benchmarks share: shuffled rounds, ratios within a round, and their tables.

use std::fmt::Write;

/// One thing that is measured, with what each round gave.
#[derive(Debug)]
pub struct Case {
    /// What it is.
    pub name: String,
    /// One figure a round.
    pub values: Vec<f64>,
}

impl Case {
    /// A case without figures yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), values: Vec::new() }
    }
}

/// Pseudo-random numbers for the order of cases (xorshift64).
#[derive(Debug)]
pub struct Order(u64);

impl Order {
    /// The same orders for the same `seed`, which must not be 0.
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// The numbers 0 to `n - 1` in some order.
    pub fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for last in (1..n).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            order.swap(last, (self.0 % (last as u64 + 1)) as usize);
        }
        order
    }
}

/// The `q`-quantile of `values`, between neighbours by their distance; NaN of none.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q * last as f64;
    let (low, share) = (place as usize, place.fract());
    let high = (low + 1).min(last);
    sorted[low] * (1.0 - share) + sorted[high] * share
}

/// The median.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The ratios of `a` to `b`, round by round.
pub fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

/// Median and quartiles, as `m (q1-q3)`.
pub fn spread(values: &[f64], digits: usize) -> String {
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|q| quantile(values, q));
    format!("{middle:.digits$} ({low:.digits$}-{high:.digits$})")
}

/// A table of `cases` with their ratios to each of `references` (names of cases).
pub fn table(
    title: &str,
    unit: &str,
    digits: usize,
    cases: &[Case],
    references: &[&str],
) -> String {
    let mut text = format!("\n{title}\n\n| case | {unit} |");
    for name in references {
        let _ = write!(text, " x {name} |");
    }
    text += "\n| --- | --- |";
    text += &" --- |".repeat(references.len());
    text.push('\n');
    for case in cases {
        let _ = write!(text, "| {} | {} |", case.name, spread(&case.values, digits));
        for name in references {
            let reference = cases.iter().find(|case| case.name == *name);
            let ratio =
                reference.map(|reference| spread(&ratios(&case.values, &reference.values), 3));
            let _ = write!(text, " {} |", ratio.unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

/// The value of option `name` on the command line.
pub fn option(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.next().and_then(|_| args.next())
}

/// The number that option `name` gives, or `default`.
///
/// # Panics
/// The option's value is no number.
pub fn number(name: &str, default: usize) -> usize {
    option(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} takes a number, not '{text}'"))
    })
}

/// Kernel, processors and their number, in one line.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let info = read("/proc/cpuinfo");
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(':').nth(1)).unwrap_or("unknown processor");
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    format!("Linux {}, {}, {cpus} CPUs, load {load}", kernel.trim(), model.trim())
}
