use std::collections::BTreeMap;

use super::check::{Checked, Source, shortened};
use super::raw::{self, At, Named};
use super::table::{self, EventEntry, Identity, Layout, Machine, Mask, Modifier, Place, Tables};
use super::{Bits, DescriptionError, Level, registers};

/// Longest file, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 1 << 20;
const EVENTS_MAX: usize = 16_384;
const MASKS_MAX: usize = 256;
const FIELDS_MAX: usize = 64;
/// Characters of names beside letters and digits.
const IN_NAMES: &str = "_.-";

/// Reads the description `text`; `file` is what errors call it.
///
/// # Errors
/// [`DescriptionError`] with the line and the field of the first thing that is wrong.
pub fn parse(text: &str, file: &str) -> Result<(Identity, Tables), DescriptionError> {
    let source = Source { file, text };
    if text.len() > DESCRIPTION_BYTES_MAX {
        return Err(source.error(None, "", format!("longer than {DESCRIPTION_BYTES_MAX} bytes")));
    }
    let raw: raw::File = toml::from_str(text).map_err(|error| source.toml(&error))?;
    if *raw.format.get_ref() != 1 {
        let why = format!("is {}; this version reads format 1", raw.format.get_ref());
        return Err(source.at(&raw.format, "format", why));
    }
    let identity = identity(&source, &raw)?;
    let tables = tables(&source, raw)?;
    Ok((identity, tables))
}

fn identity(source: &Source<'_>, raw: &raw::File) -> Checked<Identity> {
    let name = source.name(&raw.name, "name", "_")?.to_owned();
    let also = raw.also.iter().map(|name| Ok(source.name(name, "also", "_")?.to_owned()));
    let numbers = raw.version.get_ref().split('.').map(|number| number.parse().ok());
    let version: Option<Vec<u32>> = numbers.collect();
    let version = version.ok_or_else(|| {
        source.at(&raw.version, "version", "expected numbers with dots between them")
    })?;
    if raw.source.get_ref().is_empty() {
        return Err(source.at(&raw.source, "source", "names no public document"));
    }
    let perf = raw.perf.get_ref();
    if perf.devices.is_empty() == perf.pmu_type.is_none() {
        let why = "expected either 'devices' or 'type'";
        return Err(source.at(&raw.perf, "perf", why));
    }
    let device = |device: &At<String>| Ok(source.name(device, "perf.devices", "_.-*")?.to_owned());
    let lines = raw.source.get_ref().iter().map(|line| source.line(line, "source"));
    Ok(Identity {
        name,
        also: also.collect::<Checked<_>>()?,
        version,
        about: source.line(&raw.about, "about")?,
        source: lines.collect::<Checked<_>>()?,
        architectural: raw.architectural,
        machines: raw.machine.iter().map(|raw| machine(source, raw)).collect::<Checked<_>>()?,
        devices: perf.devices.iter().map(device).collect::<Checked<_>>()?,
        pmu_type: perf.pmu_type,
    })
}

fn machine(source: &Source<'_>, raw: &raw::Machine) -> Checked<Machine> {
    if let Some(arch) = &raw.arch
        && !["x86", "arm64", "riscv64"].contains(&arch.get_ref().as_str())
    {
        let why = format!("'{}' is none of x86, arm64, riscv64", shortened(arch.get_ref()));
        return Err(source.at(arch, "machine.arch", why));
    }
    Ok(Machine {
        arch: raw.arch.as_ref().map(|arch| arch.get_ref().clone()),
        vendor: raw.vendor.as_ref().map(|vendor| vendor.get_ref().clone()),
        family: raw.family,
        models: source.ranges(&raw.models, "machine.models")?,
        steppings: source.ranges(&raw.steppings, "machine.steppings")?,
        implementer: raw.implementer,
        parts: raw.parts.clone(),
    })
}

fn tables(source: &Source<'_>, raw: raw::File) -> Checked<Tables> {
    let mut tables = Tables::default();
    for (name, fields) in &raw.layout {
        tables.layouts.push(layout(source, name, fields)?);
    }
    if let Some(name) = &raw.perf.get_ref().layout {
        tables.event_layout = Some(find_layout(source, &tables, name, "perf.layout")?);
    }
    events(source, &mut tables, &raw.event)?;
    for (name, modifier) in &raw.modifier {
        let field = format!("modifier.{}", shortened(name.get_ref()));
        let layout = event_layout(source, &tables, name, &field)?;
        let entry = Modifier {
            name: source.name(name, &field, "_")?.to_owned(),
            field: field_of(source, layout, &modifier.field, &field)?,
            about: source.line(&modifier.about, &field)?,
        };
        tables.modifiers.push(entry);
    }
    registers::read(source, &mut tables, &raw.pmc, &raw.pmd)?;
    counters(source, &mut tables, &raw.event)?;
    index(source, &mut tables, &raw.event)?;
    Ok(tables)
}

/// The layout called `name`.
pub(super) fn find_layout(
    source: &Source<'_>,
    tables: &Tables,
    name: &At<String>,
    field: &str,
) -> Checked<u16> {
    let place = tables.layouts.iter().position(|layout| layout.name == *name.get_ref());
    place.and_then(|place| u16::try_from(place).ok()).ok_or_else(|| {
        let why = format!("there is no layout '{}'", shortened(name.get_ref()));
        source.at(name, field, why)
    })
}

fn layout(source: &Source<'_>, name: &At<String>, raw: &Named<raw::Field>) -> Checked<Layout> {
    let name_text = source.name(name, "layout", "_")?.to_owned();
    if raw.len() > FIELDS_MAX {
        return Err(source.at(name, "layout", format!("has more than {FIELDS_MAX} fields")));
    }
    let mut layout = Layout { name: name_text, fields: Vec::new() };
    let mut claimed = 0;
    for (name, raw) in raw {
        let path = format!("layout.{}.{}", layout.name, shortened(name.get_ref()));
        source.name(name, &path, "_")?;
        let field = layout_field(source, &path, name, raw)?;
        let mask = field.bits.as_ref().map_or(0, Bits::mask);
        if claimed & mask != 0 {
            return Err(source.at(name, path, "shares bits with another field"));
        }
        claimed |= mask;
        layout.fields.push(field);
    }
    Ok(layout)
}

fn layout_field(
    source: &Source<'_>,
    path: &str,
    name: &At<String>,
    raw: &raw::Field,
) -> Checked<table::Field> {
    let read = |text: &At<String>, ranges: &str, key: &str| {
        Bits::parse(ranges).ok_or_else(|| {
            let why = format!("'{}' names no bits; expected such as 0-7,32-35", shortened(ranges));
            source.at(text, format!("{path}.{key}"), why)
        })
    };
    let bits = raw.bits.as_ref().map(|text| read(text, text.get_ref(), "bits")).transpose()?;
    let place = match raw.perf.get_ref().split_once(':') {
        Some((word, ranges)) => {
            let words = ["config", "config1", "config2", "config3"];
            let word = words.iter().position(|name| *name == word);
            let word = word.and_then(|word| u8::try_from(word).ok());
            word.map(|word| Ok(Place::Config(word, read(&raw.perf, ranges, "perf")?)))
                .transpose()?
        }
        None => named_place(raw.perf.get_ref()),
    };
    let place = place.ok_or_else(|| {
        let why = format!("'{}' is no place in a perf event", shortened(raw.perf.get_ref()));
        source.at(&raw.perf, format!("{path}.perf"), why)
    })?;
    if let (Some(bits), Place::Config(_, there)) = (&bits, &place)
        && bits.mask().count_ones() != there.mask().count_ones()
    {
        let why = "has another number of bits in the register than in the perf event";
        return Err(source.at(&raw.perf, path, why));
    }
    if bits.is_none() && !matches!(place, Place::Config(..)) {
        return Err(source.at(&raw.perf, path, "has no bits"));
    }
    Ok(table::Field { name: name.get_ref().clone(), bits, place })
}

fn named_place(text: &str) -> Option<Place> {
    let (is_not, level) = match text.strip_prefix("not_") {
        Some(level) => (true, level),
        None => (false, text),
    };
    let level = match level {
        "user" => Level::User,
        "kernel" => Level::Kernel,
        "hypervisor" => Level::Hypervisor,
        "guest" => Level::Guest,
        "host" => Level::Host,
        "enable" if !is_not => return Some(Place::Enable),
        "none" if !is_not => return Some(Place::None),
        _ => return None,
    };
    Some(if is_not { Place::NotAt(level) } else { Place::At(level) })
}

/// The layout that events and modifiers need.
fn event_layout<'t, T>(
    source: &Source<'_>,
    tables: &'t Tables,
    at: &At<T>,
    field: &str,
) -> Checked<&'t Layout> {
    let why = "needs 'perf.layout', the layout in which events are written";
    tables.event_layout().ok_or_else(|| source.at(at, field, why))
}

/// The number of the field `name` of `layout`, which must be part of a perf event.
fn field_of(source: &Source<'_>, layout: &Layout, name: &At<String>, path: &str) -> Checked<u16> {
    let found = layout.field(name.get_ref());
    let is_config =
        |number: &u16| matches!(layout.fields[usize::from(*number)].place, Place::Config(..));
    found.filter(is_config).ok_or_else(|| {
        let why = format!(
            "layout '{}' has no field '{}' in a config word",
            layout.name,
            shortened(name.get_ref())
        );
        source.at(name, path, why)
    })
}

/// Fields and values that fit them.
fn set(
    source: &Source<'_>,
    layout: &Layout,
    raw: &Named<At<raw::Word>>,
    path: &str,
) -> Checked<Vec<(u16, u64)>> {
    let mut set = Vec::new();
    for (name, value) in raw {
        let path = format!("{path}.{}", shortened(name.get_ref()));
        let number = field_of(source, layout, name, &path)?;
        let word = value.get_ref().0;
        if let Place::Config(_, bits) = &layout.fields[usize::from(number)].place
            && word > bits.greatest()
        {
            let why = format!("is at most {:#x}, not {word:#x}", bits.greatest());
            return Err(source.at(value, path, why));
        }
        set.push((number, word));
    }
    Ok(set)
}

fn events(source: &Source<'_>, tables: &mut Tables, raw: &Named<raw::Event>) -> Checked<()> {
    if let Some((name, _)) = raw.iter().nth(EVENTS_MAX) {
        return Err(source.at(name, "event", format!("more than {EVENTS_MAX} events")));
    }
    for (name, raw) in raw {
        let path = format!("event.{}", shortened(name.get_ref()));
        let layout = event_layout(source, tables, name, &path)?;
        if raw.mask.len() > MASKS_MAX {
            return Err(source.at(name, path, format!("has more than {MASKS_MAX} masks")));
        }
        let also = raw.also.iter().map(|name| {
            Ok(source.name(name, &format!("{path}.also"), IN_NAMES)?.to_owned().into())
        });
        let mut event = EventEntry {
            name: source.name(name, &path, IN_NAMES)?.to_owned().into(),
            also: also.collect::<Checked<_>>()?,
            about: source.line(&raw.about, format!("{path}.about"))?.into(),
            set: set(source, layout, &raw.set, &format!("{path}.set"))?,
            masks: Vec::new(),
            counters: Vec::new(),
            errata: raw.errata.clone(),
            source: raw.source.clone(),
        };
        for (name, raw) in &raw.mask {
            let path = format!("{path}.mask.{}", shortened(name.get_ref()));
            let mask = Mask {
                name: source.name(name, &path, IN_NAMES)?.to_owned().into(),
                about: source.line(&raw.about, format!("{path}.about"))?.into(),
                set: set(source, layout, &raw.set, &format!("{path}.set"))?,
                default: raw.default,
                alone: raw.alone,
                preset: set(source, layout, &raw.preset, &format!("{path}.preset"))?,
                counters: Vec::new(),
            };
            if event.mask(&mask.name).is_some() {
                return Err(source.at(name, path, "this mask's name is there twice"));
            }
            event.masks.push(mask);
        }
        tables.events.push(event);
    }
    Ok(())
}

/// The counters of each event and mask, once the registers are known. Both are in the order of `raw`.
fn counters(source: &Source<'_>, tables: &mut Tables, raw: &Named<raw::Event>) -> Checked<()> {
    let Tables { events, pmds, .. } = tables;
    let read = |range: &Option<At<raw::Range>>, path: &dyn Fn() -> String| {
        let Some(range) = range else { return Ok(Vec::new()) };
        let path = path() + ".counters";
        let counters = source.indices(range, &path)?;
        match counters.iter().find(|index| !pmds.contains_key(index)) {
            Some(missing) => Err(source.at(range, path, format!("there is no PMD {missing}"))),
            None => Ok(counters),
        }
    };
    for (event, (_, raw)) in events.iter_mut().zip(raw) {
        event.counters = read(&raw.counters, &|| format!("event.{}", event.name))?;
        for (mask, (_, raw)) in event.masks.iter_mut().zip(&raw.mask) {
            let path = || format!("event.{}.mask.{}", event.name, mask.name);
            mask.counters = read(&raw.counters, &path)?;
        }
    }
    Ok(())
}

/// The index of names, each of which is one event's.
fn index(source: &Source<'_>, tables: &mut Tables, raw: &Named<raw::Event>) -> Checked<()> {
    let mut seen = BTreeMap::new();
    for (number, (event, (at, _))) in tables.events.iter().zip(raw).enumerate() {
        for name in std::iter::once(&event.name).chain(&event.also) {
            if let Some(other) = seen.insert(name.to_ascii_lowercase(), &event.name) {
                let why = format!("the name '{name}' is also one of event '{other}'");
                return Err(source.at(at, format!("event.{}", event.name), why));
            }
            // At most `EVENTS_MAX`.
            tables.index.push((table::hash(name), u16::try_from(number).unwrap_or(u16::MAX)));
        }
    }
    tables.index.sort_unstable();
    Ok(())
}
