//! Our own format.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::MetricsError;
use super::formula::{Dialect, FUNCTIONS, Formula};
use super::group::{
    self, BUILT_IN_VARIABLES, EVENTS_MAX, Group, GroupEvent, METRICS_MAX, Metric, NAME,
};
use crate::near;

/// The one version of the format.
const FORMAT: &str = "1";

const KEYS: [&str; 8] =
    ["format", "name", "about", "description", "source", "together", "events", "metric"];
const METRIC_KEYS: [&str; 4] = ["name", "formula", "unit", "about"];

const VARIABLE: &str = "a variable that starts with a letter or '_', of a-z, 0-9 and '_'";

type Found<T> = Result<T, MetricsError>;
type Value<'a> = Spanned<DeValue<'a>>;

pub(super) fn read(text: &str, file: &str) -> Found<Group> {
    let source = Source { text, file };
    let document = DeTable::parse(text).map_err(|error| {
        let line = source.line(error.span().map_or(0, |span| span.start));
        MetricsError::new(file, error.message().replace('\n', " ")).line(line)
    })?;
    let top = Table { source, table: document.get_ref(), start: 0, field: String::new() };
    top.require_known(&KEYS)?;
    let format = top.required("format")?;
    match format.get_ref() {
        DeValue::Integer(number) if number.as_str() == FORMAT => {}
        _ => {
            return Err(top.error(
                "format",
                format,
                "expected 1: a newer format needs a newer perfmon",
            ));
        }
    }
    let name = top.line("name")?;
    if !group::is_name(&name) {
        return Err(top.error("name", top.required("name")?, &format!("expected {NAME}")));
    }
    let mut events = events(&top)?;
    together(&top, &mut events)?;
    let events = group::arrange(events);
    Ok(Group {
        name,
        about: top.line("about")?,
        description: top.paragraphs("description")?,
        source: top.lines("source")?.into_iter().map(|(line, _)| line).collect(),
        metrics: metrics(&top, &events)?,
        events,
    })
}

/// The events, in the order of the file.
fn events(top: &Table<'_>) -> Found<Vec<GroupEvent>> {
    let table = top.table_of("events")?;
    let mut entries: Vec<_> = table.table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    if !(1..=EVENTS_MAX).contains(&entries.len()) {
        let why = format!("expected 1 to {EVENTS_MAX} events");
        return Err(top.error("events", top.required("events")?, &why));
    }
    let event = |(key, value): (&Spanned<_>, &Value<'_>)| {
        let variable: &str = AsRef::<str>::as_ref(key.get_ref());
        require_variable(variable).map_err(|why| table.error(variable, value, &why))?;
        let event = table.line(variable)?;
        group::require_single(&event).map_err(|why| table.error(variable, value, why))?;
        Ok(GroupEvent { variable: variable.to_owned(), event, together: None })
    };
    entries.into_iter().map(event).collect()
}

fn require_variable(name: &str) -> Result<(), String> {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts_with_digit = name.starts_with(|first: char| first.is_ascii_digit());
    if name.is_empty() || starts_with_digit || !name.bytes().all(is_inside) {
        return Err(format!("expected {VARIABLE}"));
    }
    if BUILT_IN_VARIABLES.contains(&name) {
        return Err(format!("'{name}' is a built-in variable: call the event something else"));
    }
    if FUNCTIONS.iter().any(|(function, _)| *function == name) {
        return Err(format!("'{name}' is a function: call the event something else"));
    }
    Ok(())
}

/// Notes which events run together.
fn together(top: &Table<'_>, events: &mut [GroupEvent]) -> Found<()> {
    let Some(lists) = top.table.get("together") else { return Ok(()) };
    let DeValue::Array(members) = lists.get_ref() else {
        return Err(top.error("together", lists, "expected lists of variables: [[\"a\", \"b\"]]"));
    };
    for (number, list) in members.iter().enumerate() {
        for (variable, value) in top.lines_of("together", list)? {
            let error = |why: &str| top.error("together", value, why);
            let Some(event) = events.iter_mut().find(|event| event.variable == variable) else {
                let names = events.iter().map(|event| &event.variable);
                let near = near::matches(&variable, names);
                return Err(error(&format!("'{variable}' is no variable of [events]")).near(near));
            };
            if event.together.is_some() {
                return Err(error(&format!("'{variable}' is listed twice")));
            }
            event.together = Some(number);
        }
    }
    Ok(())
}

fn metrics(top: &Table<'_>, events: &[GroupEvent]) -> Found<Vec<Metric>> {
    let value = top.required("metric")?;
    let tables = match value.get_ref() {
        DeValue::Array(tables) if (1..=METRICS_MAX).contains(&tables.len()) => tables,
        _ => {
            let why = format!("expected 1 to {METRICS_MAX} [[metric]]");
            return Err(top.error("metric", value, &why));
        }
    };
    let mut metrics: Vec<Metric> = Vec::new();
    for value in tables.iter() {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(top.error("metric", value, "expected a table: [[metric]]"));
        };
        let start = value.span().start;
        let mut table = Table { source: top.source, table, start, field: "metric".to_owned() };
        let name = table.line("name")?;
        table.field = format!("metric '{name}'");
        table.require_known(&METRIC_KEYS)?;
        if metrics.iter().any(|metric| metric.name == name) {
            return Err(table.error("name", table.required("name")?, "there are two of this name"));
        }
        let mut metric = Metric::new(name, table.line("unit")?, Ok(formula(&table, events)?));
        if table.table.contains_key("about") {
            metric.about = table.line("about")?;
        }
        metric.bind(events);
        metrics.push(metric);
    }
    Ok(metrics)
}

fn formula(table: &Table<'_>, events: &[GroupEvent]) -> Found<Formula> {
    let value = table.required("formula")?;
    let DeValue::String(text) = value.get_ref() else {
        return Err(table.error("formula", value, "expected a formula in quotes"));
    };
    let error = |error| table.error("formula", value, &format!("{error}"));
    let formula = Formula::parse(text, Dialect::Own).map_err(error)?;
    let mut known = events.iter().map(|event| event.variable.as_str()).collect::<Vec<_>>();
    known.extend(BUILT_IN_VARIABLES);
    match formula.variables_at().iter().find(|it| !known.contains(&it.name.as_str())) {
        None => Ok(formula),
        Some(unknown) => {
            let expected = "a variable of [events] or a built-in one";
            let near = near::matches(&unknown.name, known);
            Err(error(formula.error_at(unknown, expected)).near(near))
        }
    }
}

/// The file.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    file: &'a str,
}

impl Source<'_> {
    /// The line of a byte, from 1.
    fn line(self, position: usize) -> usize {
        let before = self.text.as_bytes().get(..position).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// A table of the file, and what messages call it.
struct Table<'a> {
    source: Source<'a>,
    table: &'a DeTable<'a>,
    start: usize,
    field: String,
}

impl<'a> Table<'a> {
    fn named(&self, key: &str) -> String {
        match self.field.as_str() {
            "" => key.to_owned(),
            field if field.starts_with("metric") => format!("{field}: {key}"),
            field => format!("{field}.{key}"),
        }
    }

    fn error(&self, key: &str, value: &Value<'_>, why: &str) -> MetricsError {
        let line = self.source.line(value.span().start);
        MetricsError::new(self.source.file, why).line(line).field(&self.named(key))
    }

    fn require_known(&self, keys: &[&str]) -> Found<()> {
        let mut unknown =
            self.table.iter().filter(|(key, _)| !keys.contains(&key.get_ref().as_ref()));
        let Some((key, _)) = unknown.next() else { return Ok(()) };
        let name = key.get_ref().as_ref();
        let line = self.source.line(key.span().start);
        let error = MetricsError::new(self.source.file, "there is no such key").line(line);
        Err(error.field(&self.named(name)).near(near::matches(name, keys)))
    }

    fn required(&self, key: &str) -> Found<&'a Value<'a>> {
        self.table.get(key).ok_or_else(|| {
            let line = self.source.line(self.start);
            MetricsError::new(self.source.file, "it is missing").line(line).field(&self.named(key))
        })
    }

    fn table_of(&self, key: &str) -> Found<Table<'a>> {
        let value = self.required(key)?;
        match value.get_ref() {
            DeValue::Table(table) => {
                let (source, start) = (self.source, value.span().start);
                Ok(Table { source, table, start, field: self.named(key) })
            }
            _ => Err(self.error(key, value, "expected a table")),
        }
    }

    /// A string that must be there: one line that is not empty.
    fn line(&self, key: &str) -> Found<String> {
        self.line_of(key, self.required(key)?)
    }

    fn line_of(&self, key: &str, value: &Value<'_>) -> Found<String> {
        match value.get_ref() {
            DeValue::String(text) if text.chars().any(char::is_control) => {
                Err(self.error(key, value, "expected one line without control characters"))
            }
            DeValue::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(self.error(key, value, "expected text in quotes")),
        }
    }

    /// A string that may be missing, and may have many lines.
    fn paragraphs(&self, key: &str) -> Found<String> {
        let is_odd = |char: char| char.is_control() && char != '\n' && char != '\t';
        match self.table.get(key) {
            None => Ok(String::new()),
            Some(value) => match value.get_ref() {
                DeValue::String(text) if !text.contains(is_odd) => Ok(text.trim().to_owned()),
                _ => Err(self.error(key, value, "expected text without control characters")),
            },
        }
    }

    /// Strings that may be missing, with where they are.
    fn lines(&self, key: &str) -> Found<Vec<(String, &'a Value<'a>)>> {
        self.table.get(key).map_or_else(|| Ok(Vec::new()), |value| self.lines_of(key, value))
    }

    fn lines_of(&self, key: &str, value: &'a Value<'a>) -> Found<Vec<(String, &'a Value<'a>)>> {
        match value.get_ref() {
            DeValue::Array(values) if !values.is_empty() => {
                values.iter().map(|value| Ok((self.line_of(key, value)?, value))).collect()
            }
            _ => Err(self.error(key, value, "expected a list of texts in quotes")),
        }
    }
}
