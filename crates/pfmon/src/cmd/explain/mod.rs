//! `pfmon explain`: where events come from, what the kernel is given for them, and whether they open here.

mod attr;
pub(crate) mod results;
mod tries;

use std::process::ExitCode;

use perfmon::{Explained, Explanation, Names};

use crate::args::Explain;
use crate::cmd::names::{self, NOT_TRIED};
use crate::cmd::prober::Prober;
use crate::cmd::refusal::RefusalRow;
use crate::cmd::sysfs::{self, SysfsPmu};
use crate::exit::{self, Failure};
use crate::output::{self, Sink};
use results::{AttrRow, ErrorRow, EventRow, ExplainResult, SCHEMA, StepRow, StringRow};

/// Explains the events of `args`, and gives the exit status.
pub(crate) fn run(args: &Explain) -> Result<ExitCode, Failure> {
    let names = names::names(&args.common)?;
    let here = args.common.is_here();
    let pmus = sysfs::pmus(&args.common.sysfs());
    let prober = here.then(Prober::new);
    let mut strings = Vec::with_capacity(args.events.len());
    for text in &args.events {
        strings.push(string(&names, &pmus, prober.as_ref(), text)?);
    }
    let mut notes = names.problems();
    names::note(notes.iter().cloned());
    if !here {
        notes.push(NOT_TRIED.into());
    }
    let cpus = names.cpus().iter().map(ToString::to_string).collect();
    let result = ExplainResult { schema: SCHEMA, here, cpus, strings, notes };
    output::explain(&mut Sink::stdout(), args.common.json, &result)?;
    let errors = result.strings.iter().filter_map(|string| string.error.as_ref());
    for error in errors.clone() {
        exit::say(&error.whole);
    }
    let events = || result.strings.iter().flat_map(|string| &string.events);
    let is_no = |event: &EventRow| {
        event.refusal.is_some() || event.opens.is_some_and(|opens| opens != "yes")
    };
    Ok(match (errors.count(), events().any(is_no)) {
        (0, false) => ExitCode::SUCCESS,
        (0, true) => exit::NO.into(),
        _ => exit::FAILED.into(),
    })
}

fn string(
    names: &Names,
    pmus: &[SysfsPmu],
    prober: Option<&Prober>,
    text: &str,
) -> Result<StringRow, Failure> {
    let Explanation { steps, events } = names.explain(text);
    let steps_of = |wanted: &dyn Fn(usize) -> bool| -> Vec<StepRow> {
        steps.iter().filter(|step| wanted(step.item)).map(StepRow::new).collect()
    };
    let explained = match events {
        Ok(explained) => explained,
        Err(error) => {
            let error = Some(ErrorRow::new(&error, steps_of(&|_| true)));
            return Ok(StringRow { string: text.to_owned(), error, events: Vec::new() });
        }
    };
    let tried = prober.map(|prober| tries::all(names, prober, &explained)).transpose()?;
    let mut tried = tried.unwrap_or_default().into_iter();
    let mut rows = Vec::with_capacity(explained.len());
    for it in &explained {
        let own = steps_of(&|item| item == it.event.item);
        rows.push(event(it, own, pmus, tried.next()));
    }
    Ok(StringRow { string: text.to_owned(), error: None, events: rows })
}

fn event(
    explained: &Explained,
    steps: Vec<StepRow>,
    pmus: &[SysfsPmu],
    tried: Option<tries::Tried>,
) -> EventRow {
    let event = &explained.event;
    let detail = explained.detail.clone().unwrap_or_default();
    let encoding = event.encoding.as_ref().ok();
    let of_type =
        |it: &&SysfsPmu| encoding.is_some_and(|encoding| encoding.pmu_type == it.pmu_type);
    let pmu = pmus.iter().find(of_type).map(|pmu| pmu.name.clone());
    let (opens, tries) = match tried {
        Some(tries::Tried { opens, tries }) => (opens, tries),
        None => (None, Vec::new()),
    };
    EventRow {
        event: event.text.clone(),
        item: event.item,
        group: match event.group {
            perfmon::Group::Together(number) => Some(number),
            perfmon::Group::Free => None,
        },
        steps,
        origin: explained.detail.is_some().then_some(detail.origin),
        about: Some(detail.about).filter(|about| !about.is_empty()),
        masks: detail.masks.into_iter().map(results::MaskRow::new).collect(),
        fields: detail.fields.into_iter().map(results::FieldRow::new).collect(),
        errata: detail.errata,
        registers: detail.registers.into_iter().map(results::RegisterRow::new).collect(),
        pmu: event.pmu.clone().or(pmu),
        cpus: event.cpus.clone(),
        unit: event.unit.to_string(),
        scale: event.scale,
        refusal: event.encoding.as_ref().err().map(RefusalRow::new),
        attr: encoding.map(|encoding| AttrRow::new(encoding, pmus)),
        opens,
        tries,
    }
}
