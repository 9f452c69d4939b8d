//! What the kernel says when events are opened.

use perfmon::{Event, Explained, Group, Names, Refusal};

use super::results::TryRow;
use crate::cmd::prober::{self, Prober};
use crate::cmd::refusal::RefusalRow;
use crate::exit::Failure;

/// What was found out about an event.
#[derive(Debug)]
pub(crate) struct Tried {
    /// `None` if it was not tried, since there is nothing to try.
    pub(crate) opens: Option<&'static str>,
    pub(crate) tries: Vec<TryRow>,
}

/// Tries all events of a list, in its order.
pub(crate) fn all(
    names: &Names,
    prober: &Prober,
    explained: &[Explained],
) -> Result<Vec<Tried>, Failure> {
    let events: Vec<&Event> = explained.iter().map(|it| &it.event).collect();
    let mut tried: Vec<Tried> = events.iter().map(|event| alone(names, prober, event)).collect();
    let mut start = 0;
    for group in events.chunk_by(|a, b| a.group != Group::Free && a.group == b.group) {
        let end = start + group.len();
        if let Some(members) = tried.get_mut(start..end).filter(|_| group.len() > 1) {
            in_group(prober, group, members)?;
        }
        start = end;
    }
    Ok(tried)
}

fn alone(names: &Names, prober: &Prober, event: &Event) -> Tried {
    let Ok(encoding) = &event.encoding else { return Tried { opens: None, tries: Vec::new() } };
    let place = prober.place(event);
    let result = prober.open(event, encoding);
    let denied = result.as_ref().err().is_some_and(prober::is_denied);
    let mut opens = if result.is_ok() { "yes" } else { "no" };
    let mut tries = vec![TryRow::new(place.clone(), result)];
    if denied
        && let Some(other) = prober.in_user_mode(names, event)
        && let Ok(encoding) = &other.encoding
    {
        let result = prober.open(&other, encoding);
        if result.is_ok() {
            opens = "user";
        }
        tries.push(TryRow::new(format!("{place}, as {}", other.text), result));
    }
    Tried { opens: Some(opens), tries }
}

/// Tries a group as a whole, which is all or nothing.
fn in_group(prober: &Prober, group: &[&Event], members: &mut [Tried]) -> Result<(), Failure> {
    let refusal = match members.iter().all(|member| member.opens == Some("yes")) {
        false => Some(Refusal::new(
            "another event of the group does not open, and a group is all or nothing",
        )),
        true if prober.together(group)? => None,
        true => Some(
            Refusal::new("the events of the group can't be counted together")
                .hint("pfmon fit says how to split them"),
        ),
    };
    for member in members.iter_mut().filter(|member| member.opens == Some("yes")) {
        let row = TryRow {
            what: "in its group".into(),
            opens: refusal.is_none(),
            refusal: refusal.as_ref().map(RefusalRow::new),
        };
        if !row.opens {
            member.opens = Some("no");
        }
        member.tries.push(row);
    }
    Ok(())
}
