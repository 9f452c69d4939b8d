//! One description, as it is printed.

use perfmon::PmuDescription;
use perfmon::description::{
    EventEntry, Layout, Level, Machine, Modifier, Place, PmcEntry, PmdEntry, Tables,
};

use super::results::{
    ConstraintRow, Details, ErrataRow, LayoutFieldRow, LayoutRow, MachineRow, ModifierRow, PmcRow,
    PmdRow, SourceRow,
};

pub(super) fn of(description: &PmuDescription) -> Details {
    let (identity, tables) = (description.identity(), description.tables());
    let events = tables.events.iter();
    let errata = |it: &EventEntry| {
        Some(ErrataRow { event: it.name.to_string(), errata: it.errata.clone()? })
    };
    let source = |it: &EventEntry| {
        Some(SourceRow { event: it.name.to_string(), source: it.source.clone()? })
    };
    Details {
        name: identity.name.clone(),
        sources: identity.source.clone(),
        architectural: identity.architectural,
        machines: identity.machines.iter().map(machine).collect(),
        device_patterns: identity.devices.clone(),
        event_layout: tables.event_layout().map(|layout| layout.name.clone()),
        layouts: tables.layouts.iter().map(layout).collect(),
        pmcs: tables.pmcs.iter().map(|(index, it)| pmc(tables, *index, it)).collect(),
        pmds: tables.pmds.iter().map(|(index, it)| pmd(tables, *index, it)).collect(),
        modifiers: tables.modifiers.iter().map(|it| modifier(tables, it)).collect(),
        constraints: events
            .clone()
            .filter(|it| !it.counters.is_empty())
            .map(|it| ConstraintRow { event: it.name.to_string(), pmds: it.counters.clone() })
            .collect(),
        errata: events.clone().filter_map(errata).collect(),
        event_sources: events.filter_map(source).collect(),
    }
}

fn machine(machine: &Machine) -> MachineRow {
    let Machine { arch, vendor, family, models, steppings, implementer, parts } = machine.clone();
    MachineRow { arch, vendor, family, models, steppings, implementer, parts }
}

fn layout(layout: &Layout) -> LayoutRow {
    let fields = layout.fields.iter().map(|field| LayoutFieldRow {
        name: field.name.clone(),
        bits: field.bits.as_ref().map(ToString::to_string),
        perf: perf(&field.place),
    });
    LayoutRow { name: layout.name.clone(), fields: fields.collect() }
}

/// What a field is in a perf event, as descriptions write it.
fn perf(place: &Place) -> String {
    match place {
        Place::Config(0, bits) => format!("config:{bits}"),
        Place::Config(word, bits) => format!("config{word}:{bits}"),
        Place::At(level) => self::level(*level).to_owned(),
        Place::NotAt(level) => format!("not_{}", self::level(*level)),
        Place::Enable => "enable".to_owned(),
        Place::None => "none".to_owned(),
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::User => "user",
        Level::Kernel => "kernel",
        Level::Hypervisor => "hypervisor",
        Level::Guest => "guest",
        Level::Host => "host",
    }
}

fn pmc(tables: &Tables, index: u16, it: &PmcEntry) -> PmcRow {
    let layout = it.layout.and_then(|it| tables.layouts.get(usize::from(it)));
    PmcRow {
        index,
        name: it.name.clone(),
        address: it.address,
        default: it.default,
        reserved: it.reserved,
        layout: layout.map(|layout| layout.name.clone()),
        thread_only: it.thread_only,
        system_only: it.system_only,
        unsupported: it.unsupported.clone(),
    }
}

fn pmd(tables: &Tables, index: u16, it: &PmdEntry) -> PmdRow {
    let fixed = it.fixed.and_then(|event| tables.events.get(usize::from(event)));
    PmdRow {
        index,
        name: it.name.clone(),
        address: it.address,
        width: it.width,
        pmcs: it.pmcs.clone(),
        shift: it.shift,
        fixed: fixed.map(|event| event.name.to_string()),
        read_only: it.read_only,
        thread_only: it.thread_only,
        system_only: it.system_only,
        unsupported: it.unsupported.clone(),
    }
}

fn modifier(tables: &Tables, it: &Modifier) -> ModifierRow {
    let field = tables.event_layout().and_then(|layout| layout.fields.get(usize::from(it.field)));
    ModifierRow {
        name: it.name.clone(),
        field: field.map(|field| field.name.clone()),
        about: it.about.clone(),
    }
}
