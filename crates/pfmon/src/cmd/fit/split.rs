//! The fewest groups that events fit into.

use perfmon::{Event, Group, Refusal};

use crate::exit::Failure;

/// Events in groups that fit.
pub(crate) struct Split {
    /// The groups, each with the places of its events.
    pub(crate) groups: Vec<Vec<usize>>,
    /// No split into fewer groups was left untried.
    pub(crate) is_smallest: bool,
}

/// Splits those of `events` that are not refused, of which `together` says whether they fit. What does not even fit by
/// itself is refused.
pub(crate) fn split(
    events: &[Event],
    refusals: &mut [Option<Refusal>],
    here: bool,
    together: &dyn Fn(&[usize]) -> Result<bool, Failure>,
) -> Result<Split, Failure> {
    let mut units = units(events, refusals);
    // What does not even fit by itself is left out, so that no split holds it.
    for unit in std::mem::take(&mut units) {
        if together(&unit)? {
            units.push(unit);
            continue;
        }
        for place in &unit {
            refusals[*place] = Some(misfit(&unit, here));
        }
    }
    let members = |unit: usize| units.get(unit).into_iter().flatten().copied();
    let fit = perfmon::fit(units.len(), &mut |set: &[usize]| {
        let places: Vec<usize> = set.iter().flat_map(|unit| members(*unit)).collect();
        let is_leader = |at: &usize| events.get(*at).is_some_and(leads);
        if set.len() > 1 && places.iter().any(is_leader) {
            return Ok(false);
        }
        together(&places)
    })?;
    let places = |group: &Vec<usize>| group.iter().flat_map(|it| members(*it)).collect();
    Ok(Split { groups: fit.groups.iter().map(places).collect(), is_smallest: fit.is_smallest })
}

/// Why a group of the user's, or a single event, is in no split.
fn misfit(unit: &[usize], here: bool) -> Refusal {
    if unit.len() == 1 {
        let why = "it opens, but never gets onto the PMU: something else may hold its counters";
        return Refusal::new(why).hint("end other tools that count, such as the NMI watchdog");
    }
    let why = match here {
        true => "its group never gets onto the PMU as a whole",
        false => "its group is of several PMUs",
    };
    Refusal::new(why).hint("leave the braces out to have it split")
}

/// The places of events that stay together, without those that are refused.
fn units(events: &[Event], refusals: &[Option<Refusal>]) -> Vec<Vec<usize>> {
    let mut units: Vec<Vec<usize>> = Vec::new();
    let mut last = Group::Free;
    for (place, (event, refusal)) in events.iter().zip(refusals).enumerate() {
        if refusal.is_some() {
            continue;
        }
        match units.last_mut() {
            Some(unit) if event.group != Group::Free && event.group == last => unit.push(place),
            _ => units.push(vec![place]),
        }
        last = event.group;
    }
    units
}

/// Whether the event wants its whole group on the PMU, or alone there.
pub(super) fn leads(event: &Event) -> bool {
    event.encoding.as_ref().is_ok_and(|encoding| encoding.pinned || encoding.exclusive)
}
