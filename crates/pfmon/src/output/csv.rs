//! CSV (RFC 4180, but with plain line feeds): the columns of docs/schema.md.

use crate::cmd::stat::metrics::MetricRow;
use crate::cmd::stat::results::{EventRow, Interval, StatResult};

const COLUMNS: &str = "event,scope,comm,state,value,unit,enabled_ns,running_ns,coverage,stderr,interval95_low,\
                       interval95_high,reason,mean,stddev,min,max,scale,set,method,residences";

/// One line an event, then one line a metric, then one line a time. With intervals, the first column is the time, empty for totals.
pub(crate) fn result(result: &StatResult, with_time: bool) -> String {
    let prefix = if with_time { "," } else { "" };
    let mut text = if with_time { String::new() } else { format!("{COLUMNS}\n") };
    for row in &result.events {
        text += &format!("{prefix}{}\n", line(row));
    }
    for row in &result.metrics {
        text += &format!("{prefix}{}\n", metric_line(row));
    }
    let mut time = |name: &str, value: Option<u64>| {
        let row = EventRow::time(name, value);
        text += &format!("{prefix}{}\n", line(&row));
    };
    time("wall", Some(result.wall_ns));
    time("user", result.user_ns);
    time("system", result.system_ns);
    text
}

/// The lines of one interval, and before the first one the names of the columns.
pub(crate) fn interval(interval: &Interval, first: bool) -> String {
    let mut text = if first { format!("time_ns,{COLUMNS}\n") } else { String::new() };
    for row in &interval.events {
        text += &format!("{},{}\n", interval.time_ns, line(row));
    }
    for row in &interval.metrics {
        text += &format!("{},{}\n", interval.time_ns, metric_line(row));
    }
    text
}

fn line(row: &EventRow) -> String {
    let [low, high] = row.interval95.map_or([None, None], |[low, high]| [Some(low), Some(high)]);
    let repeats = row.repeats.as_ref();
    let fields = [
        quoted(&row.event),
        quoted(row.scope.as_deref().unwrap_or("")),
        quoted(row.comm.as_deref().unwrap_or("")),
        row.state.to_owned(),
        number(row.value),
        quoted(&row.unit),
        row.enabled_ns.to_string(),
        row.running_ns.to_string(),
        row.coverage.to_string(),
        number(row.stderr),
        number(low),
        number(high),
        quoted(row.reason.as_deref().unwrap_or("")),
        number(repeats.map(|repeats| repeats.mean)),
        number(repeats.map(|repeats| repeats.stddev)),
        number(repeats.map(|repeats| repeats.min)),
        number(repeats.map(|repeats| repeats.max)),
        row.scale.to_string(),
        number(row.set),
        row.method.unwrap_or("").to_owned(),
        number(row.residences),
    ];
    fields.join(",")
}

/// A metric in the columns of events; those that say how a count was made are empty.
fn metric_line(row: &MetricRow) -> String {
    let repeats = row.repeats.as_ref();
    let none = String::new;
    let fields = [
        quoted(&format!("{}/{}", row.group, row.metric)),
        quoted(row.scope.as_deref().unwrap_or("")),
        quoted(row.comm.as_deref().unwrap_or("")),
        row.state.to_owned(),
        number(row.value),
        quoted(&row.unit),
        none(),
        none(),
        none(),
        none(),
        none(),
        none(),
        quoted(row.reason.as_deref().unwrap_or("")),
        number(repeats.map(|repeats| repeats.mean)),
        number(repeats.map(|repeats| repeats.stddev)),
        number(repeats.map(|repeats| repeats.min)),
        number(repeats.map(|repeats| repeats.max)),
        none(),
        none(),
        none(),
        none(),
    ];
    fields.join(",")
}

fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that whatever stands in a field stays in it.
    #[test]
    fn fields_are_quoted() {
        assert_eq!(quoted("cs"), "cs");
        assert_eq!(quoted("mem:0x1/4:w,\"x\"\n"), "\"mem:0x1/4:w,\"\"x\"\"\n\"");
    }

    /// Check that every line has as many fields as there are columns.
    #[test]
    fn lines_have_all_columns() {
        let row = EventRow::time("wall", None);
        assert_eq!(line(&row).split(',').count(), COLUMNS.split(',').count());
    }
}
