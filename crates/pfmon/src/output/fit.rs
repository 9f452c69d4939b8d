//! The text of `fit`.

use super::text::{columns, push_printable};
use crate::cmd::fit::results::FitResult;

/// Whether all fit, the split, and what is left out of it.
pub(crate) fn text(result: &FitResult) -> String {
    let left_out: Vec<Vec<String>> = result
        .events
        .iter()
        .filter_map(|event| Some(vec![event.event.clone(), event.refusal.as_ref()?.whole.clone()]))
        .collect();
    let mut text = summary(result, result.events.len() - left_out.len());
    text.push('\n');
    if !result.split.is_empty() {
        push_printable(&mut text, &result.split);
        text.push('\n');
    }
    if !left_out.is_empty() {
        text.push_str("left out:\n");
        columns(&mut text, "  ", &left_out);
    }
    text
}

fn summary(result: &FitResult, events: usize) -> String {
    let all = result.events.len();
    let mut text = match (events, all) {
        (0, 1) => return "the event can't be counted like this".into(),
        (0, all) => return format!("none of {all} events can be counted like this"),
        (1, 1) => "1 event".to_owned(),
        (events, all) if events == all => format!("{all} events"),
        (events, all) => format!("{events} of {all} events"),
    };
    let groups = result.groups.len();
    let (fit, do_not) = if events == 1 { ("fits", "does not") } else { ("fit", "do not") };
    let how = match (groups, result.is_smallest) {
        (1, Some(_)) => format!("{fit} into one group:"),
        (1, None) => "may fit into one group; only trying could tell:".into(),
        (_, Some(true)) => {
            format!("{do_not} fit into one group; the smallest split has {groups} groups:")
        }
        (_, Some(false)) => format!(
            "{do_not} fit into one group; a split into {groups} groups, perhaps not the smallest:"
        ),
        (_, None) => format!(
            "{do_not} fit into one group, being of several PMUs; at least {groups} groups are needed:"
        ),
    };
    text.push(' ');
    text + &how
}
