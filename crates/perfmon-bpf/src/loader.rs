use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use aya_obj::btf::{Btf, BtfFeatures};

use crate::object::{chain, guarded};
use crate::prepared::Prepared;
use crate::{Error, Loaded, Map, Object};

/// Loads objects: what to change about them first.
#[derive(Debug, Default)]
pub struct Loader<'a> {
    settings: HashMap<String, Vec<u8>>,
    pub(crate) entries: HashMap<String, u32>,
    pub(crate) flags: HashMap<String, u32>,
    pub(crate) shared: HashMap<String, &'a Map>,
    pub(crate) without: HashSet<String>,
}

/// A value for a global of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting(Vec<u8>);

impl From<u32> for Setting {
    fn from(value: u32) -> Self {
        Self(value.to_ne_bytes().to_vec())
    }
}

impl From<u64> for Setting {
    fn from(value: u64) -> Self {
        Self(value.to_ne_bytes().to_vec())
    }
}

impl<'a> Loader<'a> {
    /// Changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a global before the object is loaded. Its size must be the variable's.
    pub fn set(mut self, name: &str, value: impl Into<Setting>) -> Self {
        self.settings.insert(name.into(), value.into().0);
        self
    }

    /// How many elements a map has; bytes for a ring buffer.
    pub fn entries(mut self, map: &str, entries: u32) -> Self {
        self.entries.insert(map.into(), entries);
        self
    }

    /// Adds flags to a map, such as `BPF_F_MMAPABLE` (1024) to the object's `.bss`.
    pub fn flags(mut self, map: &str, flags: u32) -> Self {
        self.flags.insert(map.into(), flags);
        self
    }

    /// Leaves out a program, such as one that this kernel is too old for.
    pub fn without(mut self, program: &str) -> Self {
        self.without.insert(program.into());
        self
    }

    /// Uses an existing map instead of making the one of this name. It may have another number of elements than the
    /// object declares.
    pub fn share(mut self, name: &str, map: &'a Map) -> Self {
        self.shared.insert(name.into(), map);
        self
    }

    /// [Shares](Self::share) every map of another object, except its globals.
    pub fn share_all(mut self, from: &'a Loaded) -> Self {
        self.shared.extend(from.maps().map(|(name, map)| (name.to_owned(), map)));
        self
    }

    /// Loads everything in the object, or nothing.
    ///
    /// # Errors
    /// [`Error::Refused`] by the verifier, [`Error::Kernel`] for what the kernel does not have, [`Error::Missing`] for
    /// a name that the object does not have, [`Error::Call`], [`Error::Object`].
    pub fn load(&self, object: &Object) -> Result<Loaded, Error> {
        self.prepare(object)?.load()
    }

    /// Does all of [`load`](Self::load) that makes nothing in the kernel and needs no privilege: settings,
    /// relocations, calls. Only for an object that is relocated to the kernel's types are these read.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Object`].
    pub fn prepare<'l>(&'l self, object: &'l Object) -> Result<Prepared<'l>, Error> {
        self.check_names(object)?;
        let name = object.name.as_str();
        let mut parsed = object.parsed.clone();
        let settings = self.settings.iter();
        let settings =
            settings.map(|(name, value)| (name.as_str(), (value.as_slice(), true))).collect();
        guarded(name, || parsed.patch_map_data(settings).map_err(chain))?;
        // All features: what uses cookies needs a kernel that has them anyway.
        let features = BtfFeatures::new(true, true, true, true, true, true, true, true);
        let btf = guarded(name, || {
            let btf = parsed.fixup_and_sanitize_btf(&features).map_err(chain)?;
            Ok(btf.map(Btf::to_bytes))
        })?;
        if parsed.has_btf_relocations() {
            let kernel = kernel_btf().map_err(|why| Error::object(name, why))?;
            guarded(name, || parsed.relocate_btf(kernel).map_err(chain))?;
        }
        guarded(name, || relocate(&mut parsed))?;
        Ok(Prepared { loader: self, object, parsed, btf })
    }

    /// A name that nothing has is a slip of the pen.
    fn check_names(&self, object: &Object) -> Result<(), Error> {
        let check = |what, known: Vec<&str>, mut names: Vec<&String>| {
            names.sort_unstable();
            match names.into_iter().find(|name| !known.contains(&name.as_str())) {
                Some(name) => Err(Error::missing(&object.name, what, name, &known)),
                None => Ok(()),
            }
        };
        check("map", object.maps(), self.entries.keys().chain(self.flags.keys()).collect())?;
        check("program", object.programs(), self.without.iter().collect())
    }
}

/// The kernel's types as the parser wants them, read once.
fn kernel_btf() -> Result<&'static Btf, &'static str> {
    static TYPES: OnceLock<Result<Btf, String>> = OnceLock::new();
    TYPES.get_or_init(|| Btf::from_sys_fs().map_err(chain)).as_ref().map_err(String::as_str)
}

/// Puts the maps' numbers, in alphabetical order, into the code where their descriptors will be, and subprograms
/// behind the programs that call them.
fn relocate(parsed: &mut aya_obj::Object) -> Result<(), String> {
    let text: HashSet<usize> = parsed.functions.keys().map(|(section, _)| *section).collect();
    let maps = std::mem::take(&mut parsed.maps);
    let names: BTreeSet<&String> = maps.keys().collect();
    let numbered =
        (0..).zip(names).filter_map(|(n, name)| Some((name.as_str(), n, maps.get(name)?)));
    parsed.relocate_maps(numbered, &text).map_err(chain)?;
    parsed.relocate_calls(&text).map_err(chain)?;
    parsed.maps = maps;
    Ok(())
}
