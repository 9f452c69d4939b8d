//! Events of PMU descriptions: names, unit masks and modifiers to fields, fields to a perf event or to
//! the values of registers.

use perfmon_core::{Encoding, Privilege, Refusal};

use crate::description::{
    EventEntry, Field, Layout, Level, Mask, Place, PmcEntry, PmdEntry, Tables,
};
use crate::modifiers::Modifiers;
use crate::near;

/// An event with what its user chose.
#[derive(Clone, Debug)]
pub(crate) struct Described<'t> {
    pub(crate) tables: &'t Tables,
    pub(crate) event: &'t EventEntry,
    pub(crate) masks: Vec<&'t Mask>,
    /// Fields that modifiers set.
    settings: Vec<(u16, u64)>,
    pub(crate) modifiers: Modifiers,
}

/// Why a part of an event's text can't be read.
pub(crate) struct BadPart<'a> {
    pub(crate) part: &'a str,
    pub(crate) expected: String,
    pub(crate) near: Vec<String>,
    /// There is nothing of this name here; another source may know it.
    pub(crate) is_unknown: bool,
}

impl<'a> BadPart<'a> {
    pub(crate) fn new(part: &'a str, expected: String) -> Self {
        Self { part, expected, near: Vec::new(), is_unknown: false }
    }
}

impl<'t> Described<'t> {
    pub(crate) fn new(tables: &'t Tables, event: &'t EventEntry) -> Self {
        let modifiers = Modifiers::default();
        Self { tables, event, masks: Vec::new(), settings: Vec::new(), modifiers }
    }

    /// Adds what stands between the colons behind the event's name: unit masks, modifiers of the
    /// description (`c=2`, `i`), and letters.
    pub(crate) fn add_parts<'a>(&mut self, parts: &'a str) -> Result<(), BadPart<'a>> {
        parts.split(':').try_for_each(|part| self.add_part(part))
    }

    fn add_part<'a>(&mut self, part: &'a str) -> Result<(), BadPart<'a>> {
        if let Some(mask) = self.event.mask(part) {
            return self.add_mask(part, mask);
        }
        let (name, value) = match part.split_once('=') {
            Some((name, digits)) => (name, Some(number(part, digits)?)),
            None => (part, None),
        };
        let own = self.tables.modifiers.iter().find(|own| own.name.eq_ignore_ascii_case(name));
        if let Some(own) = own {
            return self.set(part, own.field, value.unwrap_or(1));
        }
        let letters = match value {
            Some(value) => Modifiers::from_word(name, value),
            None => Modifiers::parse(part).ok(),
        };
        if letters.is_none() && part.contains('.') {
            // The vendor's name with its dots.
            if let Some(mask) = self.event.mask(&part.replace('.', "_")) {
                return self.add_mask(part, mask);
            }
            return part.split('.').try_for_each(|part| self.add_part(part));
        }
        let letters = letters.ok_or_else(|| self.no_such(part))?;
        self.modifiers = self.modifiers.union(letters);
        Ok(())
    }

    fn add_mask<'a>(&mut self, part: &'a str, mask: &'t Mask) -> Result<(), BadPart<'a>> {
        let bad = |expected: String| Err(BadPart::new(part, expected));
        if self.masks.iter().any(|other| other.name == mask.name) {
            return bad("each unit mask once".into());
        }
        let alone = self.masks.iter().copied().chain([mask]).find(|mask| mask.alone);
        if let (Some(alone), false) = (alone, self.masks.is_empty()) {
            return bad(format!("no other unit mask beside '{}'", alone.name));
        }
        self.masks.push(mask);
        Ok(())
    }

    fn set<'a>(&mut self, part: &'a str, field: u16, value: u64) -> Result<(), BadPart<'a>> {
        let bad = |expected: String| Err(BadPart::new(part, expected));
        if self.settings.iter().any(|&(other, _)| other == field) {
            return bad("each modifier once".into());
        }
        if let Some(Place::Config(_, bits)) = self.layout_field(field).map(|field| &field.place)
            && value > bits.greatest()
        {
            return bad(format!("a value of at most {:#x}", bits.greatest()));
        }
        self.settings.push((field, value));
        Ok(())
    }

    fn no_such<'a>(&self, part: &'a str) -> BadPart<'a> {
        let masks: Vec<&str> = self.event.masks.iter().map(|mask| mask.name.as_str()).collect();
        let own: Vec<&str> = self.tables.modifiers.iter().map(|own| own.name.as_str()).collect();
        let mut expected = match masks.len() {
            0 => format!("a modifier: '{}' has no unit masks", self.event.name),
            1..=12 => format!("a unit mask of '{}' ({})", self.event.name, masks.join(", ")),
            _ => format!("a unit mask of '{}'", self.event.name),
        };
        if !masks.is_empty() {
            expected.push_str(" or a modifier");
        }
        expected.push_str(" (letters of ukhIGHpDe");
        own.iter().for_each(|name| expected.push_str(&format!(", {name}=…")));
        expected.push(')');
        let near = near::matches(part, masks);
        BadPart { near, is_unknown: true, ..BadPart::new(part, expected) }
    }

    fn layout(&self) -> Option<&'t Layout> {
        self.tables.event_layout()
    }

    fn layout_field(&self, field: u16) -> Option<&'t Field> {
        self.layout()?.fields.get(usize::from(field))
    }

    /// The masks in force: the ones named, or the default ones.
    pub(crate) fn masks_in_force(&self) -> impl Iterator<Item = &'t Mask> {
        let named = self.masks.iter().copied();
        let default = self.event.masks.iter().filter(|mask| self.masks.is_empty() && mask.default);
        named.chain(default)
    }

    /// The fields of the layout and their values.
    pub(crate) fn fields(&self) -> Result<Vec<(&'t Field, u64)>, Refusal> {
        let mut masks = self.masks_in_force().peekable();
        if masks.peek().is_none() && !self.event.masks.is_empty() {
            return Err(self.needs_mask());
        }
        let mut values: Vec<(u16, u64)> = self.event.set.clone();
        for &(field, bits) in masks.flat_map(|mask| &mask.set) {
            match values.iter_mut().find(|(other, _)| *other == field) {
                Some((_, value)) => *value |= bits,
                None => values.push((field, bits)),
            }
        }
        for &(field, value) in &self.settings {
            self.check_setting(field, value, &values)?;
            if !values.iter().any(|&(other, _)| other == field) {
                values.push((field, value));
            }
        }
        for &(field, value) in self.masks_in_force().flat_map(|mask| &mask.preset) {
            if !values.iter().any(|&(other, _)| other == field) {
                values.push((field, value));
            }
        }
        values.sort_unstable();
        let known = |&(field, value): &(u16, u64)| Some((self.layout_field(field)?, value));
        Ok(values.iter().filter_map(known).collect())
    }

    /// Refuses a modifier that contradicts `values`, what the event and its masks set, or that nothing would heed.
    fn check_setting(&self, field: u16, value: u64, values: &[(u16, u64)]) -> Result<(), Refusal> {
        let own = self.tables.modifiers.iter().find(|own| own.field == field);
        let modifier = own.map_or("", |own| own.name.as_str());
        let name = || self.name_with_masks();
        match values.iter().find(|(other, _)| *other == field) {
            Some((_, set)) if *set == value => return Ok(()),
            Some((_, set)) => {
                let why = format!("'{}' is defined by {modifier}={set}, not {value}", name());
                return Err(Refusal::new(why).hint(format!("leave '{modifier}' out")));
            }
            None => {}
        }
        if value == 0 {
            return Ok(());
        }
        let mut presets = self.masks_in_force().flat_map(|mask| &mask.preset);
        if self.shares_place(field) && !presets.any(|&(other, _)| other == field) {
            let why = format!("modifier '{modifier}' has no meaning for '{}'", name());
            return Err(Refusal::new(why));
        }
        if self.tables.pmds.values().all(|pmd| pmd.fixed.is_none()) {
            return Ok(());
        }
        let counters = self.counters();
        let heeds = |pmd: &u16| self.heeds(*pmd, field);
        if !counters.is_empty() && !counters.iter().any(heeds) {
            return Err(Refusal::new(format!(
                "only a fixed counter counts '{}', and it does not know modifier '{modifier}'",
                name()
            )));
        }
        Ok(())
    }

    /// Whether other fields mean the same bits of the perf event for other events.
    fn shares_place(&self, field: u16) -> bool {
        let Some(own) = self.layout_field(field) else { return false };
        let Place::Config(word, bits) = &own.place else { return false };
        let fields = self.layout().map_or(&[][..], |layout| &layout.fields);
        fields.iter().any(|other| {
            let is_same_word = |there: u8| there == *word && other.name != own.name;
            matches!(&other.place, Place::Config(there, others)
                if is_same_word(*there) && others.mask() & bits.mask() != 0)
        })
    }

    /// Whether data register `pmd` does what a field says: fixed ones know only the fields of their own.
    fn heeds(&self, pmd: u16, field: u16) -> bool {
        let Some(pmd) = self.tables.pmds.get(&pmd).filter(|pmd| pmd.fixed.is_some()) else {
            return true;
        };
        let pmcs = pmd.pmcs.iter().filter_map(|pmc| self.tables.pmcs.get(pmc)?.layout);
        let mut layouts = pmcs.filter_map(|it| self.tables.layouts.get(usize::from(it)));
        let own = self.layout_field(field);
        layouts.any(|layout| {
            let there = own.and_then(|own| layout.field(&own.name));
            let there = there.and_then(|there| layout.fields.get(usize::from(there)));
            there.is_some_and(|there| matches!(there.place, Place::Config(..)))
        })
    }

    /// Its name and the masks that are named.
    fn name_with_masks(&self) -> String {
        let masks = self.masks.iter().map(|mask| mask.name.as_str());
        std::iter::once(self.event.name.as_str()).chain(masks).collect::<Vec<_>>().join(":")
    }

    fn needs_mask(&self) -> Refusal {
        let masks: Vec<&str> = self.event.masks.iter().map(|mask| mask.name.as_str()).collect();
        let name = &self.event.name;
        Refusal::new(format!("event '{name}' needs a unit mask, and has no default one"))
            .hint(format!("write {name}:MASK with one of {}", masks.join(", ")))
    }

    /// The config words; the PMU's type and what modifiers decide are not in it.
    pub(crate) fn encoding(&self) -> Result<Encoding, Refusal> {
        let mut words = [0; 4];
        let mut put = |field: &Field, value: u64| {
            if let Place::Config(word, bits) = &field.place {
                let spread = bits.spread(value).ok_or_else(|| {
                    let (name, most) = (&field.name, bits.greatest());
                    Refusal::new(format!("field '{name}' is at most {most:#x}, not {value:#x}"))
                })?;
                words[usize::from(*word)] |= spread;
            }
            Ok(())
        };
        let has_masks = self.masks_in_force().next().is_some();
        let has_presets = self.masks_in_force().any(|mask| !mask.preset.is_empty());
        if self.settings.is_empty() && !has_presets && has_masks != self.event.masks.is_empty() {
            // The shortest way for most events: what is set is added up, and nothing takes another's place.
            let of_masks = self.masks_in_force().flat_map(|mask| &mask.set);
            for &(field, value) in self.event.set.iter().chain(of_masks) {
                self.layout_field(field).map_or(Ok(()), |field| put(field, value))?;
            }
        } else {
            for (field, value) in self.fields()? {
                put(field, value)?;
            }
        }
        let [config, config1, config2, config3] = words;
        Ok(Encoding { config, config1, config2, config3, ..Encoding::default() })
    }

    /// The data registers that can count it.
    pub(crate) fn counters(&self) -> Vec<u16> {
        let place = self.tables.events.iter().position(|event| std::ptr::eq(event, self.event));
        let masks = || self.masks_in_force().map(|mask| &mask.counters);
        let of_masks = masks().any(|counters| !counters.is_empty());
        let general = |pmd: u16| match (of_masks, self.event.counters.is_empty()) {
            (true, _) => masks().all(|counters| counters.is_empty() || counters.contains(&pmd)),
            (false, true) => self.tables.pmds[&pmd].fixed.is_none(),
            (false, false) => self.event.counters.contains(&pmd),
        };
        let pmds = self.tables.pmds.iter().filter(|(_, pmd)| pmd.unsupported.is_none());
        pmds.filter(|(index, pmd)| {
            let is_fixed = pmd.fixed.is_some() && pmd.fixed.map(usize::from) == place;
            is_fixed && self.is_plain() || general(**index)
        })
        .map(|(index, _)| *index)
        .collect()
    }

    /// Whether no modifier changes what is counted, as fixed counters demand.
    fn is_plain(&self) -> bool {
        self.settings.iter().all(|&(_, value)| value == 0)
    }

    /// What `pmc` would hold for the event to be counted in `pmd`.
    pub(crate) fn register_value(
        &self,
        pmc: &PmcEntry,
        pmd: &PmdEntry,
        privilege: &Privilege,
    ) -> Option<u64> {
        let layout = self.tables.layouts.get(usize::from(pmc.layout?))?;
        let mut value = pmc.default;
        let fields = self.fields().ok()?;
        for field in &layout.fields {
            let Some(bits) = &field.bits else { continue };
            let bits = bits.shifted(pmd.shift)?;
            let chosen = fields.iter().find(|(chosen, _)| chosen.name == field.name);
            let content = match (&field.place, chosen) {
                (Place::Config(..), Some((_, content))) => *content,
                (Place::At(level), _) => u64::from(counts_at(privilege, *level)),
                (Place::NotAt(level), _) => u64::from(!counts_at(privilege, *level)),
                (Place::Enable, _) => 1,
                _ => continue,
            };
            value = value & !bits.mask() | bits.spread(content)?;
        }
        Some(value)
    }
}

fn counts_at(privilege: &Privilege, level: Level) -> bool {
    match level {
        Level::User => !privilege.exclude_user,
        Level::Kernel => !privilege.exclude_kernel,
        Level::Hypervisor => !privilege.exclude_hv,
        // AMD's bits: set only where the other side is left out.
        Level::Guest => !privilege.exclude_guest && privilege.exclude_host,
        Level::Host => !privilege.exclude_host && privilege.exclude_guest,
    }
}

fn number<'a>(part: &'a str, digits: &str) -> Result<u64, BadPart<'a>> {
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    number.map_err(|_| {
        let expected = "a number behind '=' (decimal, or hexadecimal after 0x)".to_owned();
        BadPart::new(part, expected)
    })
}

/// The perf event that data register `pmd` counts while its control register holds `value`; `None` if it
/// stands still. The PMU's type is not in it.
///
/// # Errors
/// [`Refusal`] for registers that do not exist or that perf events can't express, and for reserved bits that
/// differ from their default.
pub(crate) fn encoding_of(
    tables: &Tables,
    pmd: u16,
    value: u64,
) -> Result<Option<Encoding>, Refusal> {
    let missing = || Refusal::new(format!("there is no data register {pmd}"));
    let pmd = tables.pmds.get(&pmd).ok_or_else(missing)?;
    let pmc = pmd.pmcs.first().and_then(|index| tables.pmcs.get(index));
    let unusable = pmd.unsupported.as_ref().map(|why| (&pmd.name, why));
    let unusable =
        unusable.or_else(|| pmc.and_then(|it| Some((&it.name, it.unsupported.as_ref()?))));
    if let Some((name, why)) = unusable {
        return Err(Refusal::new(format!("register {name} can't be used: {why}")));
    }
    let pmc = pmc.ok_or_else(missing)?;
    let wrong = (value ^ pmc.default) & pmc.reserved;
    if wrong != 0 {
        let name = &pmc.name;
        return Err(Refusal::new(format!("bits {wrong:#x} of register {name} are reserved"))
            .hint(format!("leave them as in {:#x}", pmc.default)));
    }
    let layout = pmc.layout.and_then(|it| tables.layouts.get(usize::from(it)));
    let fields = layout.map_or(&[][..], |layout| &layout.fields);
    let Some((words, privilege)) = decode(fields, pmd.shift, value) else { return Ok(None) };
    let fixed = pmd.fixed.and_then(|event| tables.events.get(usize::from(event)));
    if let Some(event) = fixed {
        let encoding = Described::new(tables, event).encoding()?;
        return Ok(Some(Encoding { privilege, ..encoding }));
    }
    let [config, config1, config2, config3] = words;
    Ok(Some(Encoding { config, config1, config2, config3, privilege, ..Encoding::default() }))
}

/// The config words and levels of a control register's value; `None` if its counter stands still.
fn decode(fields: &[Field], shift: u8, value: u64) -> Option<([u64; 4], Privilege)> {
    let mut words = [0; 4];
    let mut privilege = Privilege::default();
    let has_levels = fields.iter().any(is_level);
    if has_levels {
        (privilege.exclude_user, privilege.exclude_kernel, privilege.exclude_hv) =
            (true, true, true);
    }
    let (mut guest, mut host) = (false, false);
    for field in fields {
        let Some(bits) = field.bits.as_ref().and_then(|bits| bits.shifted(shift)) else { continue };
        let content = bits.gather(value);
        match &field.place {
            Place::Config(word, there) => {
                words[usize::from(*word)] |= there.spread(content).unwrap_or(0);
            }
            Place::At(Level::Guest) => guest = content != 0,
            Place::At(Level::Host) => host = content != 0,
            Place::At(level) => set_level(&mut privilege, *level, content == 0),
            Place::NotAt(level) => set_level(&mut privilege, *level, content != 0),
            Place::Enable if content == 0 => return None,
            Place::Enable | Place::None => {}
        }
    }
    privilege.exclude_guest |= host && !guest;
    privilege.exclude_host |= guest && !host;
    let Privilege { exclude_user, exclude_kernel, exclude_hv, .. } = privilege;
    let stands_still = has_levels && exclude_user && exclude_kernel && exclude_hv;
    (!stands_still).then_some((words, privilege))
}

fn is_level(field: &Field) -> bool {
    matches!(field.place, Place::At(Level::User | Level::Kernel | Level::Hypervisor))
}

fn set_level(privilege: &mut Privilege, level: Level, is_excluded: bool) {
    match level {
        Level::User => privilege.exclude_user = is_excluded,
        Level::Kernel => privilege.exclude_kernel = is_excluded,
        Level::Hypervisor => privilege.exclude_hv = is_excluded,
        Level::Guest => privilege.exclude_guest = is_excluded,
        Level::Host => privilege.exclude_host = is_excluded,
    }
}
