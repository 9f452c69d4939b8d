//! The text of `pmu`.

use super::text::{columns, heading, ranges, values};
use crate::cmd::pmu::results::{
    DescriptionRow, Details, KernelPmuRow, LayoutRow, MachineRow, PmcRow, PmdRow, PmuResult,
};

/// The table of all descriptions and PMUs, or one description.
pub(crate) fn text(result: &PmuResult, colour: bool) -> String {
    match (&result.details, result.descriptions.as_slice()) {
        (Some(details), [row]) => one(details, row, &result.kernel_pmus, colour),
        _ => all(result, colour),
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(ToOwned::to_owned).into()
}

fn table(text: &mut String, title: &str, rows: Vec<Vec<String>>, colour: bool) {
    // The first row is the names of the columns.
    if rows.len() > 1 {
        text.push('\n');
        heading(text, title, colour);
        columns(text, "  ", &rows);
    }
}

fn all(result: &PmuResult, colour: bool) -> String {
    let mut text = String::new();
    let cpus = if result.cpus.is_empty() { "unknown".to_owned() } else { result.cpus.join(", ") };
    heading(&mut text, &format!("CPU: {cpus}"), colour);
    let mut rows =
        vec![row(["NAME", "VERSION", "HERE", "EVENTS", "PMCS", "PMDS", "FILE", "ABOUT"])];
    rows.extend(result.descriptions.iter().map(|it| {
        vec![
            it.name.clone(),
            it.version.clone(),
            here(it).to_owned(),
            it.events.to_string(),
            it.pmcs.to_string(),
            it.pmds.to_string(),
            file(it),
            it.about.clone(),
        ]
    }));
    table(&mut text, "descriptions", rows, colour);
    let mut rows = vec![row(["NAME", "TYPE", "CPUS", "DESCRIBED BY"])];
    rows.extend(result.kernel_pmus.iter().map(|it| {
        vec![
            it.name.clone(),
            it.r#type.to_string(),
            it.cpus.clone().unwrap_or_else(|| "-".into()),
            dash(&it.descriptions.join(", ")),
        ]
    }));
    table(&mut text, "the kernel's PMUs", rows, colour);
    text
}

fn here(it: &DescriptionRow) -> &'static str {
    match (it.active, it.devices.is_empty()) {
        // The kernel has this PMU, though old ones don't show it.
        (true, true) if it.perf_type.is_none() => "no PMU",
        (true, _) => "yes",
        (false, _) => "no",
    }
}

fn file(it: &DescriptionRow) -> String {
    if it.built_in { "built in".to_owned() } else { it.file.clone() }
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

fn one(details: &Details, it: &DescriptionRow, pmus: &[KernelPmuRow], colour: bool) -> String {
    let mut text = String::new();
    heading(&mut text, &format!("{} {}: {}", it.name, it.version, it.about), colour);
    values(&mut text, "also", (!it.also.is_empty()).then(|| it.also.join(", ")));
    let built_in = if it.built_in { " (built in)" } else { "" };
    values(&mut text, "file", [it.file.clone() + built_in]);
    values(&mut text, "sources", &details.sources);
    values(&mut text, "machines", details.machines.iter().map(machine));
    if details.machines.is_empty() {
        values(&mut text, "machines", ["all"]);
    }
    let on = pmus.iter().map(|pmu| format!("PMU {}, type {}", pmu.name, pmu.r#type));
    values(&mut text, "here", std::iter::once(here(it).to_owned()).chain(on));
    let patterns = details.device_patterns.join(" or ");
    let pmu = (!patterns.is_empty()).then(|| format!("of PMU {patterns}"));
    let perf_type = it.perf_type.map(|it| format!("of type {it}"));
    values(&mut text, "perf events", pmu.into_iter().chain(perf_type));
    let how = if details.architectural {
        "; used for names that no more special description has"
    } else {
        ""
    };
    values(&mut text, "events", [format!("{}: pfmon list --of {}{how}", it.events, it.name)]);
    for layout in &details.layouts {
        let for_events = details.event_layout.as_ref() == Some(&layout.name);
        let suffix = if for_events { ", in which events are written" } else { "" };
        table(&mut text, &format!("layout {}{suffix}", layout.name), fields(layout), colour);
    }
    table(&mut text, "control registers (PMC)", pmcs(&details.pmcs), colour);
    table(&mut text, "data registers (PMD)", pmds(&details.pmds), colour);
    remarks(&mut text, details, colour);
    text
}

/// Modifiers, and what is special about single events.
fn remarks(text: &mut String, details: &Details, colour: bool) {
    let mut rows = vec![row(["MODIFIER", "FIELD", "ABOUT"])];
    rows.extend(
        details.modifiers.iter().map(|it| {
            vec![it.name.clone(), it.field.clone().unwrap_or_default(), it.about.clone()]
        }),
    );
    table(text, "modifiers of events", rows, colour);
    let mut rows = vec![row(["EVENT", "PMDS"])];
    rows.extend(details.constraints.iter().map(|it| vec![it.event.clone(), numbers(&it.pmds)]));
    table(text, "events that only some counters count", rows, colour);
    let mut rows = vec![row(["EVENT", "ERRATA"])];
    rows.extend(details.errata.iter().map(|it| vec![it.event.clone(), it.errata.clone()]));
    table(text, "errata", rows, colour);
    let mut rows = vec![row(["EVENT", "SOURCE"])];
    rows.extend(details.event_sources.iter().map(|it| vec![it.event.clone(), it.source.clone()]));
    table(text, "sources of single events", rows, colour);
}

fn machine(machine: &MachineRow) -> String {
    let hex_ranges = |name: &str, ranges: &[(u32, u32)]| {
        let ranges: Vec<String> = ranges
            .iter()
            .map(|(first, last)| match first == last {
                true => format!("{first:#x}"),
                false => format!("{first:#x}-{last:#x}"),
            })
            .collect();
        (!ranges.is_empty()).then(|| format!("{name} {}", ranges.join(", ")))
    };
    let parts: Vec<(u32, u32)> = machine.parts.iter().map(|part| (*part, *part)).collect();
    let words = [
        machine.arch.clone(),
        machine.vendor.clone(),
        machine.family.map(|family| format!("family {family:#x}")),
        hex_ranges("models", &machine.models),
        hex_ranges("steppings", &machine.steppings),
        machine.implementer.map(|it| format!("implementer {it:#x}")),
        hex_ranges("parts", &parts),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { "all".into() } else { words.join(" ") }
}

fn fields(layout: &LayoutRow) -> Vec<Vec<String>> {
    let mut rows = vec![row(["FIELD", "BITS", "PERF EVENT"])];
    rows.extend(layout.fields.iter().map(|field| {
        vec![field.name.clone(), dash(field.bits.as_deref().unwrap_or("")), field.perf.clone()]
    }));
    rows
}

fn pmcs(pmcs: &[PmcRow]) -> Vec<Vec<String>> {
    let mut rows = vec![row(["PMC", "NAME", "ADDRESS", "DEFAULT", "RESERVED", "LAYOUT", "FLAGS"])];
    rows.extend(pmcs.iter().map(|it| {
        vec![
            it.index.to_string(),
            it.name.clone(),
            address(it.address),
            format!("{:#x}", it.default),
            format!("{:#x}", it.reserved),
            dash(it.layout.as_deref().unwrap_or("")),
            flags(false, it.thread_only, it.system_only, it.unsupported.as_deref()),
        ]
    }));
    rows
}

fn pmds(pmds: &[PmdRow]) -> Vec<Vec<String>> {
    let columns = ["PMD", "NAME", "ADDRESS", "WIDTH", "PMCS", "SHIFT", "FIXED", "FLAGS"];
    let mut rows = vec![row(columns)];
    rows.extend(pmds.iter().map(|it| {
        vec![
            it.index.to_string(),
            it.name.clone(),
            address(it.address),
            it.width.to_string(),
            dash(&numbers(&it.pmcs)),
            it.shift.to_string(),
            dash(it.fixed.as_deref().unwrap_or("")),
            flags(it.read_only, it.thread_only, it.system_only, it.unsupported.as_deref()),
        ]
    }));
    rows
}

fn address(address: Option<u64>) -> String {
    address.map_or_else(|| "-".to_owned(), |address| format!("{address:#x}"))
}

fn flags(
    read_only: bool,
    thread_only: bool,
    system_only: bool,
    unsupported: Option<&str>,
) -> String {
    let words = [
        read_only.then(|| "read-only".to_owned()),
        thread_only.then(|| "thread-only".to_owned()),
        system_only.then(|| "system-only".to_owned()),
        unsupported.map(|why| format!("not in perf events: {why}")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn numbers(numbers: &[u16]) -> String {
    ranges(&numbers.iter().copied().map(u32::from).collect::<Vec<_>>())
}
