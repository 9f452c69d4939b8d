//! The table for people. Numbers look the same in every locale.

use std::fmt::Write;

use super::text::{PLAIN, RED, YELLOW, printable};
use crate::cmd::stat::metrics::MetricRow;
use crate::cmd::stat::results::{EventRow, Interval, StatResult, Turns};

/// A row's cells: number, unit and event; what is said behind them; the colour of the number.
struct Cells<'a> {
    scope: String,
    number: String,
    unit: &'a str,
    event: String,
    remark: String,
    colour: &'static str,
}

/// The whole result.
pub(crate) fn result(result: &StatResult, colour: bool) -> String {
    let mut text = format!("\n pfmon stat: {}", printable(&result.scope));
    if let Some(command) = &result.command {
        let _ = write!(text, ": {}", printable(&command.join(" ")));
    }
    if result.runs > 1 {
        let _ = write!(text, " (means of {} runs)", result.runs);
    }
    text.push_str("\n\n");
    rows(&mut text, &result.events, "", colour);
    if !result.metrics.is_empty() {
        text.push('\n');
        metrics(&mut text, &result.metrics, "", colour);
    }
    let _ = write!(text, "\n wall {}", seconds(Some(result.wall_ns)));
    let _ = write!(text, ", user {}", seconds(result.user_ns));
    let _ = writeln!(text, ", system {}", seconds(result.system_ns));
    if let Some(turns) = &result.sets {
        let Turns { residences, uncovered_ns, uncovered_max_ns, time_ns, .. } = turns;
        let share =
            if *time_ns == 0 { 0.0 } else { *uncovered_ns as f64 / *time_ns as f64 * 100.0 };
        let _ = writeln!(
            text,
            " {} sets in {} stays; {share:.2} % of {} uncovered between them, {} at most",
            turns.sets.len(),
            grouped(*residences),
            seconds(Some(*time_ns)),
            seconds(Some(*uncovered_max_ns)),
        );
    }
    for note in &result.notes {
        let _ = writeln!(text, " note: {}", printable(note));
    }
    text.push('\n');
    text
}

/// One interval; before the first one a line that says what the columns are.
pub(crate) fn interval(interval: &Interval, first: bool, colour: bool) -> String {
    let mut text = if first { "#     time, s\n".to_owned() } else { String::new() };
    let time = format!("{:>13} ", seconds(Some(interval.time_ns)).trim_end_matches(" s"));
    rows(&mut text, &interval.events, &time, colour);
    metrics(&mut text, &interval.metrics, &time, colour);
    text
}

fn rows(text: &mut String, events: &[EventRow], prefix: &str, colour: bool) {
    lines(text, &events.iter().map(cells).collect::<Vec<_>>(), prefix, colour);
}

fn metrics(text: &mut String, metrics: &[MetricRow], prefix: &str, colour: bool) {
    lines(text, &metrics.iter().map(metric_cells).collect::<Vec<_>>(), prefix, colour);
}

fn lines(text: &mut String, cells: &[Cells<'_>], prefix: &str, colour: bool) {
    let width = |of: fn(&Cells<'_>) -> usize| cells.iter().map(of).max().unwrap_or(0);
    let scopes = width(|cells| cells.scope.chars().count());
    let numbers = width(|cells| cells.number.chars().count()).max(18);
    let units = width(|cells| cells.unit.chars().count());
    let names = width(|cells| cells.event.chars().count());
    for Cells { scope, number, unit, event, remark, colour: own } in cells {
        let (on, off) = if colour && !own.is_empty() { (*own, PLAIN) } else { ("", "") };
        let gap = if scopes == 0 { "" } else { " " };
        let line = format!(
            "{prefix}{gap}{scope:<scopes$} {on}{number:>numbers$}{off} {unit:<units$} {event:<names$}  {remark}"
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn cells(row: &EventRow) -> Cells<'_> {
    let number = |value: u64| scaled(value, row.scale);
    let (mut shown, colour) = match row.value {
        Some(value) if row.state == "estimated" => match row.half_width() {
            Some(half) => (format!("{} ± {}", number(value), half_width(half, row.scale)), YELLOW),
            None => (format!("~{}", number(value)), YELLOW),
        },
        Some(value) => (number(value), ""),
        None => (row.state.replace('_', " "), RED),
    };
    let mut remarks = Vec::new();
    if let Some(repeats) = &row.repeats {
        shown = match row.scale == 1.0 {
            true => format!("{:.1} ± {:.1}", repeats.mean, repeats.stddev),
            false => format!(
                "{} ± {}",
                decimal(repeats.mean * row.scale),
                decimal(repeats.stddev * row.scale)
            ),
        };
        remarks.push(format!("{} … {}", number(repeats.min), number(repeats.max)));
    }
    if row.state == "estimated" {
        let stays = row
            .residences
            .map_or_else(String::new, |number| format!(" in {} stays", grouped(number)));
        remarks.push(format!("{:.2} % of the time counted{stays}", row.coverage * 100.0));
    }
    remarks.extend(row.reason.as_deref().map(printable));
    Cells {
        scope: scope(row.scope.as_deref(), row.comm.as_deref()),
        number: shown,
        unit: if row.unit == "events" { "" } else { &row.unit },
        event: printable(&row.event),
        remark: remarks.join("; "),
        colour,
    }
}

fn metric_cells(row: &MetricRow) -> Cells<'_> {
    let (mut shown, colour) = match row.value {
        Some(value) if row.state == "estimated" => (format!("~{}", decimal(value)), YELLOW),
        Some(value) => (decimal(value), ""),
        None => (row.state.replace('_', " "), RED),
    };
    let mut remarks = Vec::new();
    if let Some(repeats) = &row.repeats {
        shown = format!("{} ± {}", decimal(repeats.mean), decimal(repeats.stddev));
        remarks.push(format!("{} … {}", decimal(repeats.min), decimal(repeats.max)));
    }
    remarks.extend(row.reason.as_deref().map(printable));
    Cells {
        scope: scope(row.scope.as_deref(), row.comm.as_deref()),
        number: shown,
        unit: &row.unit,
        event: printable(&row.metric),
        remark: remarks.join("; "),
        colour,
    }
}

/// Which part of the scope a row is of, with the thread's name.
fn scope(scope: Option<&str>, comm: Option<&str>) -> String {
    let scope = scope.unwrap_or("");
    match comm {
        Some(comm) => printable(&format!("{scope} {comm}")),
        None => printable(scope),
    }
}

/// Half the width of an interval, rounded up.
fn half_width(half: f64, scale: f64) -> String {
    if scale != 1.0 {
        return decimal(half * scale);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width, and what is too wide saturates"
    )]
    grouped(half.ceil() as u64)
}

/// A count in its unit.
fn scaled(value: u64, scale: f64) -> String {
    // Exact as an integer where nothing is to be multiplied.
    if scale == 1.0 { grouped(value) } else { decimal(value as f64 * scale) }
}

/// Six significant digits.
fn decimal(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor().clamp(-300.0, 300.0);
    if (-4.0..15.0).contains(&magnitude) {
        let decimals =
            (0_u8..=9).find(|decimals| magnitude + f64::from(*decimals) >= 5.0).unwrap_or(9);
        format!("{value:.*}", usize::from(decimals))
    } else {
        format!("{value:.5e}")
    }
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn seconds(time_ns: Option<u64>) -> String {
    time_ns.map_or_else(
        || "unknown".into(),
        |time_ns| format!("{}.{:09} s", time_ns / 1_000_000_000, time_ns % 1_000_000_000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the look of numbers.
    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(seconds(Some(1_002_003_004)), "1.002003004 s");
        assert_eq!(scaled(1_234, 1.0), "1,234");
        assert_eq!(scaled(0, 0.5), "0");
        assert_eq!(scaled(1_000_000_000, 2.3283064365386963e-10), "0.232831");
        assert_eq!(scaled(123_456_789, 0.5), "61728394");
        assert_eq!(scaled(1, 1e-12), "1.00000e-12");
        assert_eq!(scaled(u64::MAX, 64.0), "1.18059e21");
    }

    /// Check that rows are aligned, that colour is only what it is for, and that names can't move the cursor.
    #[test]
    fn rows_are_aligned() {
        let mut exact = EventRow::time("a\u{1b}[2J", Some(1_234));
        exact.unit = "events".into();
        let missing = EventRow::time("wall", None);
        let mut text = String::new();
        rows(&mut text, &[exact, missing], "", false);
        assert_eq!(text, "              1,234    a\u{fffd}[2J\n        not counted ns wall\n");
        let mut coloured = String::new();
        rows(&mut coloured, &[EventRow::time("wall", None)], "", true);
        assert_eq!(coloured.matches(RED).count(), 1);
    }
}
