//! Registers of a description.

use super::check::{Checked, Source, shortened};
use super::file::find_layout;
use super::raw::{self, At};
use super::table::{PmcEntry, PmdEntry, Tables};

/// Puts the registers of the file into `tables`, which has its layouts and events.
pub(super) fn read(
    source: &Source<'_>,
    tables: &mut Tables,
    pmcs: &[At<raw::Pmc>],
    pmds: &[At<raw::Pmd>],
) -> Checked<()> {
    for raw in pmcs {
        read_pmc(source, tables, raw)?;
    }
    for raw in pmds {
        read_pmd(source, tables, raw)?;
    }
    Ok(())
}

fn read_pmc(source: &Source<'_>, tables: &mut Tables, at: &At<raw::Pmc>) -> Checked<()> {
    let raw = at.get_ref();
    let layout = raw.layout.as_ref();
    let layout = layout.map(|name| find_layout(source, tables, name, "pmc.layout")).transpose()?;
    if layout.is_none() == raw.unsupported.is_none() {
        return Err(source.at(at, "pmc", "expected either 'layout' or 'unsupported'"));
    }
    for (place, index) in source.indices(&raw.index, "pmc.index")?.into_iter().enumerate() {
        let entry = PmcEntry {
            name: register_name(source, &raw.name, place, "pmc.name")?,
            address: address(source, raw.address.as_ref(), raw.stride, place, "pmc.address")?,
            default: raw.default.0,
            reserved: raw.reserved.0,
            layout,
            thread_only: raw.thread_only,
            system_only: raw.system_only,
            unsupported: raw.unsupported.clone(),
        };
        if tables.pmcs.values().any(|other| other.name == entry.name) {
            return Err(source.at(&raw.name, "pmc.name", format!("two PMCs '{}'", entry.name)));
        }
        if tables.pmcs.insert(index, entry).is_some() {
            return Err(source.at(&raw.index, "pmc.index", format!("PMC {index} is there twice")));
        }
    }
    Ok(())
}

fn read_pmd(source: &Source<'_>, tables: &mut Tables, at: &At<raw::Pmd>) -> Checked<()> {
    let raw = at.get_ref();
    let indices = source.indices(&raw.index, "pmd.index")?;
    let width = u8::try_from(*raw.width.get_ref()).ok().filter(|width| (1..=64).contains(width));
    let width = width.ok_or_else(|| source.at(&raw.width, "pmd.width", "is 1 to 64 bits"))?;
    let pmcs = pmcs_of(source, tables, raw, indices.len())?;
    let fixed = fixed_events(source, tables, raw, indices.len())?;
    for (place, index) in indices.into_iter().enumerate() {
        let entry = PmdEntry {
            name: register_name(source, &raw.name, place, "pmd.name")?,
            address: address(source, raw.address.as_ref(), raw.stride, place, "pmd.address")?,
            width,
            pmcs: pmcs[place].clone(),
            read_only: raw.read_only,
            thread_only: raw.thread_only,
            system_only: raw.system_only,
            fixed: fixed[place],
            shift: shift(raw, place)
                .ok_or_else(|| source.at(at, "pmd.shift", "reaches beyond bit 63"))?,
            unsupported: raw.unsupported.clone(),
        };
        if entry.unsupported.is_none() && entry.pmcs.is_empty() {
            return Err(source.at(at, "pmd", "expected 'pmcs' or 'unsupported'"));
        }
        if tables.pmds.values().any(|other| other.name == entry.name) {
            return Err(source.at(&raw.name, "pmd.name", format!("two PMDs '{}'", entry.name)));
        }
        if tables.pmds.insert(index, entry).is_some() {
            return Err(source.at(&raw.index, "pmd.index", format!("PMD {index} is there twice")));
        }
    }
    Ok(())
}

/// Where the fields of a fixed counter start in its PMC.
fn shift(raw: &raw::Pmd, place: usize) -> Option<u8> {
    let steps = raw.shift_step.checked_mul(u8::try_from(place).ok()?)?;
    raw.shift.checked_add(steps).filter(|bit| *bit < 64)
}

/// The PMCs of each register of the range.
fn pmcs_of(
    source: &Source<'_>,
    tables: &Tables,
    raw: &raw::Pmd,
    count: usize,
) -> Checked<Vec<Vec<u16>>> {
    let Some(range) = &raw.pmcs else { return Ok(vec![Vec::new(); count]) };
    let pmcs = source.indices(range, "pmd.pmcs")?;
    if let Some(missing) = pmcs.iter().find(|index| !tables.pmcs.contains_key(index)) {
        return Err(source.at(range, "pmd.pmcs", format!("there is no PMC {missing}")));
    }
    match pmcs.as_slice() {
        [one] => Ok(vec![vec![*one]; count]),
        many if many.len() == count => Ok(many.iter().map(|pmc| vec![*pmc]).collect()),
        _ => {
            Err(source.at(range, "pmd.pmcs", "expected one number, or a range as long as 'index'"))
        }
    }
}

/// The event of each fixed counter of the range.
fn fixed_events(
    source: &Source<'_>,
    tables: &Tables,
    raw: &raw::Pmd,
    count: usize,
) -> Checked<Vec<Option<u16>>> {
    let Some(names) = &raw.fixed else { return Ok(vec![None; count]) };
    if names.get_ref().len() != count {
        return Err(source.at(names, "pmd.fixed", "expected one event for each register"));
    }
    let find = |name: &At<String>| {
        let place = tables.events.iter().position(|event| event.is_called(name.get_ref()));
        let place = place.and_then(|place| u16::try_from(place).ok());
        place.map(Some).ok_or_else(|| {
            let why = format!("there is no event '{}'", shortened(name.get_ref()));
            source.at(name, "pmd.fixed", why)
        })
    };
    names.get_ref().iter().map(find).collect()
}

/// The name of register `place` of a range.
fn register_name(
    source: &Source<'_>,
    name: &At<String>,
    place: usize,
    field: &str,
) -> Checked<String> {
    source.name(name, field, "_{}")?;
    Ok(name.get_ref().replace("{}", &place.to_string()))
}

fn address(
    source: &Source<'_>,
    first: Option<&At<u64>>,
    stride: u64,
    place: usize,
    field: &str,
) -> Checked<Option<u64>> {
    let Some(first) = first else { return Ok(None) };
    let steps = u64::try_from(place).ok().and_then(|place| stride.checked_mul(place));
    let address = steps.and_then(|steps| first.get_ref().checked_add(steps));
    address.map(Some).ok_or_else(|| source.at(first, field, "is above 2^64 - 1"))
}
