use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::btf::Btf;
use crate::check;
use crate::{Error, Layout};

/// An eBPF object, read and checked; nothing of it is in the kernel yet.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) name: String,
    pub(crate) parsed: aya_obj::Object,
    /// The true names of sections, by index.
    pub(crate) sections: HashMap<usize, String>,
}

impl Object {
    /// Reads an object. `name` is for messages. Touches nothing but the bytes.
    ///
    /// # Errors
    /// [`Error::Object`] if the file is damaged, oversized, or has what can't be loaded.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        Self::parse_with(name, bytes, &[])
    }

    /// As [`parse`](Self::parse), and checks the structs that both sides use.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); [`Error::Object`] also if a struct is laid out in another way.
    pub fn parse_with(name: &str, bytes: &[u8], layouts: &[Layout]) -> Result<Self, Error> {
        let checked = check::check(bytes).map_err(|why| Error::object(name, why))?;
        if let Some(btf) = &checked.btf {
            check_layouts(btf, layouts).map_err(|why| Error::object(name, why))?;
        }
        let mut parsed = guarded(name, || aya_obj::Object::parse(&checked.bytes).map_err(chain))?;
        let maps: HashSet<usize> =
            parsed.maps.values().filter_map(|map| map.symbol_index()).collect();
        if checked.map_symbols.iter().any(|symbol| !maps.contains(symbol)) {
            return Err(Error::object(name, "its code refers to a map that it does not declare"));
        }
        if let Some(btf) = &checked.btf {
            correct_sizes(&mut parsed, btf).map_err(|why| Error::object(name, why))?;
        }
        Ok(Self { name: name.into(), parsed, sections: checked.names })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its maps, in alphabetical order.
    pub fn maps(&self) -> Vec<&str> {
        sorted(self.parsed.maps.keys())
    }

    /// The names of its programs, in alphabetical order.
    pub fn programs(&self) -> Vec<&str> {
        sorted(self.parsed.programs.keys())
    }

    /// The section of a program, which says what it is for.
    pub fn section(&self, program: &str) -> Option<&str> {
        let program = self.parsed.programs.get(program)?;
        self.sections.get(&program.section_index).map(String::as_str)
    }
}

/// The parser takes only the innermost dimension of arrays in arrays for the size of a map's keys and values.
fn correct_sizes(parsed: &mut aya_obj::Object, btf: &Btf) -> Result<(), String> {
    for (name, map) in &mut parsed.maps {
        let aya_obj::Map::Btf(typed) = &*map else { continue };
        let (key, value) = (typed.def.btf_key_type_id, typed.def.btf_value_type_id);
        let bytes = |id: u32, said: u32| match id {
            0 => Some(said),
            id => btf.size(id).and_then(|bytes| u32::try_from(bytes).ok()),
        };
        let (key_bytes, value_bytes) = (bytes(key, map.key_size()), bytes(value, map.value_size()));
        if key_bytes != Some(map.key_size()) {
            return Err(format!("map {name}: the size of its keys is not known"));
        }
        let value_bytes = value_bytes
            .ok_or_else(|| format!("map {name}: the size of its values is not known"))?;
        map.set_value_size(value_bytes);
    }
    Ok(())
}

fn check_layouts(btf: &Btf, layouts: &[Layout]) -> Result<(), String> {
    layouts.iter().try_for_each(|layout| layout.check(btf))
}

fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Runs a step of the parser, which panics on some damaged files that look well formed.
pub(crate) fn guarded<T>(
    object: &str,
    step: impl FnOnce() -> Result<T, String>,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(step))
        .unwrap_or_else(|_| Err("it is damaged".into()))
        .map_err(|why| Error::object(object, why))
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
