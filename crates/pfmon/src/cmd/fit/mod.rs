//! `pfmon fit`: which events can be counted together.

mod kernel;
pub(crate) mod results;

use std::process::ExitCode;

use perfmon::{Event, Group, Names, Refusal};

use crate::args::Fit;
use crate::cmd::names::{self, NOT_TRIED};
use crate::cmd::prober::Prober;
use crate::cmd::refusal::RefusalRow;
use crate::cmd::sysfs;
use crate::exit::{self, Failure};
use crate::output::{self, Sink};
use results::{EventRow, FitResult, SCHEMA};

/// Splits the events of `args`, and gives the exit status.
pub(crate) fn run(args: &Fit) -> Result<ExitCode, Failure> {
    let names = names::names(&args.common)?;
    let list = [args.lists.as_slice(), &args.events].concat().join(",");
    let events = names.parse(&list).map_err(Failure::new)?;
    let here = args.common.is_here();
    let pmus = sysfs::pmus(&args.common.sysfs());
    let prober = here.then(Prober::new);
    let mut refusals: Vec<Option<Refusal>> =
        events.iter().map(|event| refusal(&names, prober.as_ref(), event)).collect();
    let mut units = units(&events, &refusals);
    let together = |places: &[usize]| {
        let events: Vec<&Event> = places.iter().filter_map(|at| events.get(*at)).collect();
        match &prober {
            Some(prober) => prober.together(&events),
            None => Ok(kernel::allows(&pmus, &events)),
        }
    };
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
    let groups: Vec<Vec<usize>> =
        fit.groups.iter().map(|group| group.iter().flat_map(|it| members(*it)).collect()).collect();
    let mut notes = names.problems();
    notes.extend(remarks(&events, &groups, here));
    names::note(notes.iter().cloned());
    let is_known = here || groups.len() != 1 || refusals.iter().any(Option::is_some);
    let result = FitResult {
        schema: SCHEMA,
        here,
        cpus: names.cpus().iter().map(ToString::to_string).collect(),
        events: rows(&events, &refusals, &groups),
        fits: is_known.then(|| groups.len() == 1 && refusals.iter().all(Option::is_none)),
        is_smallest: here.then_some(fit.is_smallest),
        split: split(&events, &groups),
        groups: groups.iter().map(|group| texts(&events, group)).collect(),
        notes,
    };
    output::fit(&mut Sink::stdout(), args.common.json, &result)?;
    Ok(if result.fits == Some(true) { ExitCode::SUCCESS } else { exit::NO.into() })
}

/// Why `event` can't be counted, not even alone.
fn refusal(names: &Names, prober: Option<&Prober>, event: &Event) -> Option<Refusal> {
    match prober {
        Some(prober) => prober.refusal(names, event),
        None => event.encoding.as_ref().err().cloned(),
    }
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
fn leads(event: &Event) -> bool {
    event.encoding.as_ref().is_ok_and(|encoding| encoding.pinned || encoding.exclusive)
}

fn rows(events: &[Event], refusals: &[Option<Refusal>], groups: &[Vec<usize>]) -> Vec<EventRow> {
    let pairs = events.iter().zip(refusals).enumerate();
    pairs
        .map(|(place, (event, refusal))| EventRow {
            event: event.text.clone(),
            group: groups.iter().position(|group| group.contains(&place)),
            refusal: refusal.as_ref().map(RefusalRow::new),
        })
        .collect()
}

fn texts(events: &[Event], group: &[usize]) -> Vec<String> {
    group.iter().filter_map(|place| events.get(*place)).map(|event| event.text.clone()).collect()
}

/// The groups as they can be typed.
fn split(events: &[Event], groups: &[Vec<usize>]) -> String {
    let groups = groups.iter().map(|group| format!("{{{}}}", texts(events, group).join(",")));
    groups.collect::<Vec<_>>().join(",")
}

/// What is to be known about the split.
fn remarks(events: &[Event], groups: &[Vec<usize>], here: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if !here {
        remarks.push(NOT_TRIED.to_owned());
    }
    if groups.len() > 1 && events.iter().any(leads) {
        remarks.push(
            "events with 'D' or 'e' are in groups of their own: the letter is for the whole group"
                .into(),
        );
    }
    remarks
}
