//! The text of `explain`.

use super::text::{heading, ranges, values};
use crate::cmd::explain::results::{
    AttrRow, ErrorRow, EventRow, ExplainResult, RegisterRow, StepRow, StringRow,
};
use crate::cmd::names::NOT_TRIED;

/// All strings, one event behind the other.
pub(crate) fn text(result: &ExplainResult, colour: bool) -> String {
    let mut text = String::new();
    for string in &result.strings {
        if let Some(error) = &string.error {
            separate(&mut text);
            heading(&mut text, &string.string, colour);
            unreadable(&mut text, error);
        }
        let mut before: Option<&EventRow> = None;
        for event in &string.events {
            separate(&mut text);
            heading(&mut text, &event.event, colour);
            let is_same = before.is_some_and(|it| it.item == event.item && it.steps == event.steps);
            self::event(&mut text, string, event, is_same);
            opens(&mut text, event, result.here);
            before = Some(event);
        }
    }
    text
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
}

fn unreadable(text: &mut String, error: &ErrorRow) {
    values(text, "asked", steps(&error.steps));
    values(text, "can't be read", [format!("at byte {}: {}", error.position, error.message)]);
    let near: Vec<String> = error.near.iter().map(|name| format!("'{name}'")).collect();
    values(text, "near", near);
}

fn steps(steps: &[StepRow]) -> impl Iterator<Item = String> {
    steps.iter().map(|step| {
        let found = if step.found { "yes" } else { "no" };
        format!("{:<13} {found:<4} {}", step.source, step.what)
    })
}

/// What is known of an event without trying it. The steps are left out where they are those of the event above.
fn event(text: &mut String, string: &StringRow, event: &EventRow, is_same: bool) {
    if string.string != event.event {
        values(text, "typed", [&string.string]);
    }
    values(text, "asked", steps(&event.steps).filter(|_| !is_same));
    let is_told = |origin: &&String| event.steps.iter().any(|step| step.what == **origin);
    values(text, "described in", event.origin.as_ref().filter(|it| is_same || !is_told(it)));
    values(text, "counts", &event.about);
    let masks = event.masks.iter().map(|mask| format!("{}: {}", mask.name, mask.about));
    values(text, "unit masks", masks);
    values(text, "errata", &event.errata);
    let fields: Vec<String> =
        event.fields.iter().map(|field| format!("{} {:#x}", field.name, field.value)).collect();
    values(text, "fields", (!fields.is_empty()).then(|| fields.join(", ")));
    values(text, "registers", event.registers.iter().map(register));
    let cpus = event.cpus.as_ref().map(|cpus| format!(", CPUs {}", ranges(cpus)));
    let pmu = event.pmu.as_ref().map(|pmu| pmu.clone() + &cpus.unwrap_or_default());
    values(text, "PMU", pmu);
    let unit = match event.scale == 1.0 {
        true => event.unit.clone(),
        false => format!("{:?} {} a count", event.scale, event.unit),
    };
    values(text, "unit", event.refusal.is_none().then_some(unit));
    values(text, "kernel gets", event.attr.iter().flat_map(attr));
    values(text, "refused", event.refusal.as_ref().map(|refusal| &refusal.whole));
}

fn register(register: &RegisterRow) -> String {
    format!("{} = {:#x} counts in {}", register.pmc, register.value, register.pmd)
}

/// The fields of `perf_event_attr` that are not 0; type and config always.
fn attr(attr: &AttrRow) -> Vec<String> {
    let named = |name: &Option<String>| match name {
        Some(name) => format!(" ({name})"),
        None => String::new(),
    };
    let mut fields = vec![
        format!("type {}{}", attr.r#type, named(&attr.type_name)),
        match &attr.extended_type_name {
            Some(name) => format!("config {:#x} (on {name})", attr.config),
            None => format!("config {:#x}", attr.config),
        },
    ];
    if let Some(path) = &attr.path {
        fields.push(format!("config1: the address of {path}"));
    }
    for (name, word) in [
        ("config1", attr.config1),
        ("config2", attr.config2),
        ("config3", attr.config3),
        ("bp_type", attr.bp_type),
        ("read_format", attr.read_format),
    ] {
        let known = name == "config1" && attr.path.is_some();
        fields.extend((word != 0 && !known).then(|| format!("{name} {word:#x}")));
    }
    let flags = [
        ("exclude_user", attr.exclude_user),
        ("exclude_kernel", attr.exclude_kernel),
        ("exclude_hv", attr.exclude_hv),
        ("exclude_idle", attr.exclude_idle),
        ("exclude_host", attr.exclude_host),
        ("exclude_guest", attr.exclude_guest),
        ("pinned", attr.pinned),
        ("exclusive", attr.exclusive),
        ("disabled", attr.disabled),
        ("inherit", attr.inherit),
    ];
    let set = flags.into_iter().filter(|(_, set)| *set);
    fields.extend(set.map(|(name, _)| format!("{name} 1")));
    if attr.precise_ip > 0 {
        fields.push(format!("precise_ip {}", attr.precise_ip));
    }
    fields.push(format!("size {}, all else 0", attr.size));
    fields
}

fn opens(text: &mut String, event: &EventRow, here: bool) {
    let tries = event.tries.iter().map(|it| match &it.refusal {
        Some(refusal) => format!("{}: no: {}", it.what, refusal.whole),
        None => format!("{}: yes", it.what),
    });
    values(text, "tried", tries);
    let opens = match event.opens {
        Some("yes") => "yes",
        Some("user") => "user: in user mode only, not as typed",
        Some(_) => "no",
        None if here || event.refusal.is_some() => "no: it is refused",
        None => NOT_TRIED,
    };
    values(text, "opens", [opens]);
}
