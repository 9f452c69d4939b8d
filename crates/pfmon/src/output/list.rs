//! The table of `list`. Built at once in one string: there may be ten thousands of events.

use std::fmt::Write;

use super::text::{BOLD, PLAIN, RED, YELLOW, push_printable};
use crate::cmd::list::results::{EventRow, ListResult};

/// Longest reason behind a description, in characters.
const REASON_CHARS: usize = 72;
/// Widest column of names; longer ones are not aligned.
const NAMES_MAX: usize = 48;

/// The table; `about` knows what a PMU is, and `masks` asks for a line for each unit mask.
pub(crate) fn table<'d>(
    result: &ListResult<'_>,
    about: &dyn Fn(&str) -> Option<&'d str>,
    masks: bool,
    colour: bool,
) -> String {
    let mut text = String::with_capacity(result.events.len() * 96);
    for events in result.events.chunk_by(|a, b| (a.source, a.pmu) == (b.source, b.pmu)) {
        let Some(first) = events.first() else { continue };
        heading(&mut text, first, about, colour);
        let width = events.iter().map(name_width).filter(|width| *width <= NAMES_MAX).max();
        let width = width.unwrap_or(NAMES_MAX);
        for event in events {
            line(&mut text, event, width, colour);
            for mask in event.masks.iter().filter(|_| masks) {
                text.push_str("    :");
                push_printable(&mut text, mask.name);
                pad(&mut text, (width + 7).saturating_sub(mask.name.chars().count() + 3));
                push_printable(&mut text, mask.about);
                text.push('\n');
            }
        }
        text.push('\n');
    }
    foot(&mut text, result);
    text
}

fn heading<'d>(
    text: &mut String,
    first: &EventRow<'_>,
    about: &dyn Fn(&str) -> Option<&'d str>,
    colour: bool,
) {
    let about = match first.source {
        "descriptions" => about(first.pmu),
        _ => None,
    };
    let (on, off) = if colour { (BOLD, PLAIN) } else { ("", "") };
    text.push_str(on);
    push_printable(text, first.pmu);
    let _ = write!(text, "{off} ({})", first.source);
    if let Some(about) = about {
        text.push_str(": ");
        push_printable(text, about);
    }
    text.push('\n');
}

fn name_width(event: &EventRow<'_>) -> usize {
    let also = event.also.iter().map(|name| name.chars().count() + 2).sum::<usize>();
    event.name.chars().count() + also
}

fn line(text: &mut String, event: &EventRow<'_>, width: usize, colour: bool) {
    text.push_str("  ");
    push_printable(text, event.name);
    for name in &event.also {
        text.push_str(", ");
        push_printable(text, name);
    }
    pad(text, width.saturating_sub(name_width(event)) + 2);
    let (opens, own) = match (event.opens, event.tried) {
        (Some("yes"), true) => ("yes", ""),
        (Some("yes"), false) => ("yes*", ""),
        (Some("user"), true) => ("user", YELLOW),
        (Some("user"), false) => ("user*", YELLOW),
        (Some(_), true) => ("no", RED),
        (Some(_), false) => ("no*", RED),
        (None, _) => ("-", ""),
    };
    let (on, off) = if colour && !own.is_empty() { (own, PLAIN) } else { ("", "") };
    text.push_str(on);
    text.push_str(opens);
    text.push_str(off);
    pad(text, 7 - opens.len());
    push_printable(text, event.about);
    if let Some(errata) = event.errata {
        text.push_str("; errata: ");
        push_printable(text, errata);
    }
    if !event.short_reason.is_empty() {
        text.push_str(if event.about.is_empty() { "[" } else { " [" });
        match event.short_reason.char_indices().nth(REASON_CHARS) {
            Some((end, _)) => {
                push_printable(text, &event.short_reason[..end]);
                text.push('…');
            }
            None => push_printable(text, event.short_reason),
        }
        text.push(']');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
}

/// How many there are, and what the marks mean.
fn foot(text: &mut String, result: &ListResult<'_>) {
    let count = |opens| result.events.iter().filter(|event| event.opens == opens).count();
    let (yes, user, no) = (count(Some("yes")), count(Some("user")), count(Some("no")));
    let events = result.events.len();
    let verb = if yes == 1 { "opens" } else { "open" };
    let _ = write!(text, "{events} event{}", if events == 1 { "" } else { "s" });
    if !result.here {
        let _ = writeln!(text, "; {}", crate::cmd::names::NOT_TRIED);
        return;
    }
    let _ = write!(text, ": {yes} {verb}");
    for (number, what) in
        [(user, "only in user mode"), (no, "not"), (events - yes - user - no, "not tried (-)")]
    {
        if number > 0 {
            let _ = write!(text, ", {number} {what}");
        }
    }
    text.push('\n');
    if result.events.iter().any(|event| event.opens.is_some() && !event.tried) {
        text.push_str(
            "* not opened one by one, which takes about 40 ms each: the kernel judges this user's tracepoints so; \
             --try all opens each\n",
        );
    }
    if result.left_out > 0 {
        let _ = writeln!(
            text,
            "{} were not tried: they are many; --try all tries each",
            result.left_out
        );
    }
}

fn pad(text: &mut String, width: usize) {
    text.extend(std::iter::repeat_n(' ', width));
}
