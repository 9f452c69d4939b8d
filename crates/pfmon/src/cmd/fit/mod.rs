//! `pfmon fit`: which events can be counted together.

mod kernel;
pub(crate) mod results;
pub(crate) mod split;

use std::process::ExitCode;

use perfmon::{Event, Names, Refusal};

use crate::args::Fit;
use crate::cmd::names::{self, NOT_TRIED};
use crate::cmd::prober::Prober;
use crate::cmd::refusal::RefusalRow;
use crate::cmd::sysfs;
use crate::exit::{self, Failure};
use crate::output::{self, Sink};
use results::{EventRow, FitResult, SCHEMA};
use split::{Split, leads};

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
    let together = |places: &[usize]| {
        let events: Vec<&Event> = places.iter().filter_map(|at| events.get(*at)).collect();
        match &prober {
            Some(prober) => prober.together(&events),
            None => Ok(kernel::allows(&pmus, &events)),
        }
    };
    let Split { groups, is_smallest } = split::split(&events, &mut refusals, here, &together)?;
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
        is_smallest: here.then_some(is_smallest),
        split: written(&events, &groups),
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
pub(crate) fn written(events: &[Event], groups: &[Vec<usize>]) -> String {
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
