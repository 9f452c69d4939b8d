//! Event sets that take turns.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use perfmon::Method;

use super::parse_time;

/// Event sets that take turns, where there are more events than counters.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Event sets")]
pub(crate) struct SetArgs {
    /// Counts these events in turn with those of other sets (docs/estimators.md); may be repeated. Those of -e count all the time
    #[arg(long, value_name = "LIST")]
    pub(crate) set: Vec<String>,

    /// Takes sets from a file (docs/sets.md), or those of a file of --residences
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "auto_sets"])]
    pub(crate) sets: Option<PathBuf>,

    /// Splits the events of -e and -g into the fewest sets that fit on the PMU
    #[arg(long, conflicts_with = "set")]
    pub(crate) auto_sets: bool,

    /// How long a set stays: a thread's own time, or wall time on CPUs and for process trees [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "switch_on")]
    pub(crate) dwell: Option<Duration>,

    /// Draws each stay from half the dwell to half as much again, so that it never falls in step with the program [default: yes with --auto-sets]
    #[arg(long, value_name = "yes|no", value_parser = parse_yes, num_args = 0..=1, default_missing_value = "yes", require_equals = true)]
    pub(crate) randomise_dwell: Option<bool>,

    /// Leaves each set after N occurrences of EVENT, which joins the sets that lack it
    #[arg(long, value_name = "EVENT:N", value_parser = parse_switch_on)]
    pub(crate) switch_on: Option<SwitchOn>,

    /// How estimates are made [default: for each event what predicts its own counts best]
    #[arg(long, value_name = "METHOD", value_enum)]
    pub(crate) estimator: Option<Estimator>,

    /// Goes on until every estimate is known to so much: until then, or --time-limit, for what runs already; with -r for as many runs as that takes. Else exits with status 123
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) max_error: Option<f64>,

    /// Fails, with the reason, if the events of -e and -g do not fit on the PMU at once
    #[arg(long, conflicts_with_all = ["set", "sets", "auto_sets"])]
    pub(crate) no_multiplex: bool,

    /// Does as if only N events could be counted at once, of any kind; those of -e beside --set don't take part
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) counters: Option<u16>,

    /// Writes each stay of each set to a file (docs/residences.md)
    #[arg(long, value_name = "FILE", conflicts_with = "repeat")]
    pub(crate) residences: Option<PathBuf>,
}

impl SetArgs {
    /// Whether sets take turns.
    pub(crate) fn are_used(&self) -> bool {
        !self.set.is_empty() || self.sets.is_some() || self.auto_sets
    }
}

/// The event whose occurrences end a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SwitchOn {
    pub(crate) event: String,
    pub(crate) period: u64,
}

/// How estimates are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Estimator {
    /// The mean rate holds for all of the time
    Time,
    /// The rate changes evenly from one stay to the next
    Trapezoid,
    /// Between two stays the rate is the mean of both
    Neighbours,
    /// As that, but for each count of the first event of -e instead of each nanosecond
    Reference,
}

impl Estimator {
    pub(crate) fn method(self) -> Method {
        match self {
            Self::Time => Method::Time,
            Self::Trapezoid => Method::Trapezoid,
            Self::Neighbours => Method::Neighbours,
            Self::Reference => Method::Reference(0),
        }
    }
}

fn parse_yes(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("expected yes or no".into()),
    }
}

fn parse_switch_on(text: &str) -> Result<SwitchOn, String> {
    let (event, number) =
        text.rsplit_once(':').ok_or("expected an event and a number, as in page-faults:1000")?;
    let period = number.parse().map_err(|_| format!("'{number}' is no number of occurrences"))?;
    if event.is_empty() || period == 0 {
        return Err("expected an event and at least 1, as in page-faults:1000".into());
    }
    Ok(SwitchOn { event: event.to_owned(), period })
}

/// A percentage as a share.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("expected a percentage above 0 and up to 100, such as 2%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that an event with colons of its own keeps them, and that nonsense is refused.
    #[test]
    fn events_that_end_turns() {
        let parsed = |text| parse_switch_on(text).map(|it| (it.event, it.period));
        assert_eq!(
            parsed("syscalls:sys_enter_write:100"),
            Ok(("syscalls:sys_enter_write".into(), 100))
        );
        for bad in ["page-faults", ":5", "page-faults:0", "page-faults:x", "page-faults:-1"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    /// Check that a share is a percentage with or without its sign.
    #[test]
    fn percentages() {
        assert_eq!((parse_percent("2%"), parse_percent("0.5")), (Ok(0.02), Ok(0.005)));
        for bad in ["0", "-1", "101", "nan", "%", "x"] {
            assert!(parse_percent(bad).is_err(), "{bad}");
        }
    }
}
