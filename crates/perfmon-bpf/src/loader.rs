use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya_obj::btf::BtfFeatures;
use aya_obj::{EbpfSectionKind, Function};
use perfmon_sys::{BpfInfo, BpfMap, Errno, MapSpec, MapTypes, ProgramSpec, VerifierLog, map_type};

use crate::btf::kernel_types;
use crate::kind::Kind;
use crate::object::{chain, guarded};
use crate::{Error, Loaded, Map, Object, Program, Refusal};

/// Map types for which the kernel takes no types of keys and values.
const UNTYPED: [u32; 12] = [3, 4, 7, 8, 12, 13, 14, 15, 16, 17, 18, map_type::RINGBUF];
/// The verifier's log is asked for in these sizes, until it is complete.
const LOG_BYTES: [usize; 3] = [1 << 16, 1 << 20, 1 << 24];
/// The parser keeps these parts of each record.
const FUNCTION_RECORD_BYTES: u32 = 8;
const LINE_RECORD_BYTES: u32 = 16;

/// Loads objects: what to change about them first.
#[derive(Debug, Default)]
pub struct Loader<'a> {
    settings: HashMap<String, Vec<u8>>,
    entries: HashMap<String, u32>,
    flags: HashMap<String, u32>,
    shared: HashMap<String, &'a Map>,
    without: HashSet<String>,
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
    /// [`Error::Refused`] by the verifier, [`Error::Kernel`] for what the kernel does not have, [`Error::Call`],
    /// [`Error::Object`].
    pub fn load(&self, object: &Object) -> Result<Loaded, Error> {
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
            Ok(btf.map(aya_obj::btf::Btf::to_bytes))
        })?;
        let btf = btf.map(|bytes| load_types(name, &bytes)).transpose()?;
        if parsed.has_btf_relocations() {
            guarded(name, || {
                let kernel = aya_obj::btf::Btf::from_sys_fs().map_err(chain)?;
                parsed.relocate_btf(&kernel).map_err(chain)
            })?;
        }
        let mut maps = BTreeMap::new();
        for (name, map) in &mut parsed.maps {
            maps.insert(name.clone(), self.map(name, map, btf.as_ref().map(AsFd::as_fd))?);
        }
        guarded(name, || relocate(&mut parsed, &maps))?;
        let mut programs = BTreeMap::new();
        let wanted = object.programs().into_iter();
        for program in wanted.filter(|&program| !self.without.contains(program)) {
            let loaded = load_program(object, &parsed, program, btf.as_ref())?;
            programs.insert(program.to_owned(), loaded);
        }
        Ok(Loaded { object: name.into(), maps, programs })
    }

    fn map(
        &self,
        name: &str,
        map: &mut aya_obj::Map,
        btf: Option<BorrowedFd<'_>>,
    ) -> Result<Map, Error> {
        if let Some(&entries) = self.entries.get(name) {
            map.set_max_entries(entries);
        }
        let mut spec = MapSpec {
            map_type: map.map_type(),
            key_bytes: map.key_size(),
            value_bytes: map.value_size(),
            max_entries: map.max_entries(),
            flags: map.map_flags() | self.flags.get(name).unwrap_or(&0),
        };
        if spec.map_type == map_type::RINGBUF {
            (spec.key_bytes, spec.value_bytes) = (0, 0);
        }
        if let Some(shared) = self.shared.get(name) {
            return adopt(name, spec, shared);
        }
        let types = match (&*map, btf) {
            (aya_obj::Map::Btf(map), Some(btf)) if !UNTYPED.contains(&spec.map_type) => {
                let (key, value) = (map.def.btf_key_type_id, map.def.btf_value_type_id);
                Some(MapTypes { btf, key, value })
            }
            _ => None,
        };
        let inner = match map.inner() {
            Some(mut inner) => Some(self.map("inner", &mut inner, None)?),
            None => None,
        };
        let failed = |call| move |errno| Error::call(format!("map {name} {spec:?}"), call)(errno);
        let made = BpfMap::create(name, spec, types, inner.as_ref().map(AsFd::as_fd))
            .map_err(failed("bpf(BPF_MAP_CREATE)"))?;
        let kind = map.section_kind();
        if matches!(kind, EbpfSectionKind::Data | EbpfSectionKind::Rodata) {
            made.update(&0u32.to_ne_bytes(), map.data())
                .map_err(failed("bpf(BPF_MAP_UPDATE_ELEM)"))?;
        }
        if kind == EbpfSectionKind::Rodata {
            made.freeze().map_err(failed("bpf(BPF_MAP_FREEZE)"))?;
        }
        Ok(Map { name: name.into(), map: made })
    }
}

/// One more handle of a map that exists, if it is what was declared.
fn adopt(name: &str, wanted: MapSpec, shared: &Map) -> Result<Map, Error> {
    let given = shared.map.spec();
    let same = MapSpec { max_entries: wanted.max_entries, ..given };
    if same != wanted {
        return Err(Error::Mismatch { map: name.into(), wanted, given });
    }
    let map = shared.map.try_clone().map_err(Error::call(format!("map {name}"), "dup"))?;
    Ok(Map { name: name.into(), map })
}

/// Puts the maps' descriptors into the code, and subprograms behind the programs that call them.
fn relocate(parsed: &mut aya_obj::Object, maps: &BTreeMap<String, Map>) -> Result<(), String> {
    let text: HashSet<usize> = parsed.functions.keys().map(|(section, _)| *section).collect();
    let declared = std::mem::take(&mut parsed.maps);
    let references = declared
        .iter()
        .filter_map(|(name, map)| Some((name.as_str(), maps.get(name)?.as_fd().as_raw_fd(), map)));
    parsed.relocate_maps(references, &text).map_err(chain)?;
    parsed.relocate_calls(&text).map_err(chain)
}

fn load_program(
    object: &Object,
    parsed: &aya_obj::Object,
    name: &str,
    btf: Option<&OwnedFd>,
) -> Result<Program, Error> {
    let bad = |why: String| Error::object(&object.name, why);
    let program = parsed.programs.get(name).ok_or_else(|| bad(format!("no program {name}")))?;
    let function = parsed
        .functions
        .get(&program.function_key())
        .ok_or_else(|| bad(format!("program {name} has no code")))?;
    let section = object.section(name).unwrap_or_default();
    let kind = Kind::of(section)
        .ok_or_else(|| bad(format!("program {name}: section {section} is not handled")))?;
    let what = format!("program {name} ({section})");
    let attach_btf_id = if kind.attach.needs_kernel_types() {
        let types = kernel_types().map_err(|why| bad(format!("{what}: {why}")))?;
        kind.attach.id_in(types).map_err(|needs| Error::Kernel { what: what.clone(), needs })?
    } else {
        0
    };
    let instructions = instruction_bytes(function);
    let (functions, lines) =
        (function.func_info.func_info_bytes(), function.line_info.line_info_bytes());
    let spec = ProgramSpec {
        name,
        program_type: kind.program_type,
        attach_type: kind.attach_type,
        flags: kind.flags,
        attach_btf_id,
        instructions: &instructions,
        license: &program.license,
        btf: btf.map(AsFd::as_fd),
        functions: BpfInfo { bytes: &functions, record_bytes: FUNCTION_RECORD_BYTES },
        lines: BpfInfo { bytes: &lines, record_bytes: LINE_RECORD_BYTES },
    };
    let fd = verified(&what, &spec)?;
    Ok(Program { name: name.into(), fd, section: section.into(), attach: kind.attach })
}

/// The instructions as the kernel takes them (`struct bpf_insn`).
fn instruction_bytes(function: &Function) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(function.instructions.len() * 8);
    for instruction in &function.instructions {
        let registers = instruction.dst_reg() | instruction.src_reg() << 4;
        bytes.extend([instruction.code, registers]);
        bytes.extend(instruction.off.to_ne_bytes());
        bytes.extend(instruction.imm.to_ne_bytes());
    }
    bytes
}

/// Loads without a log first: that is fast, and its error is the true one. Only a refused program is verified again
/// for the log; a buffer of ours that is too short would turn the error into `ENOSPC`.
fn verified(what: &str, spec: &ProgramSpec<'_>) -> Result<OwnedFd, Error> {
    let errno = match perfmon_sys::program_load(spec, None) {
        Ok(fd) => return Ok(fd),
        Err(errno) => errno,
    };
    let mut buffer = Vec::new();
    let mut log_cut = false;
    for bytes in LOG_BYTES {
        buffer = vec![0; bytes];
        let log = VerifierLog { level: 1, buffer: &mut buffer };
        log_cut =
            perfmon_sys::program_load(spec, Some(log)).is_err_and(|errno| errno == Errno::NOSPC);
        if !log_cut {
            break;
        }
    }
    Err(Error::Refused(Box::new(Refusal {
        what: what.into(),
        errno,
        instructions: spec.instructions.len() / 8,
        log: text(&buffer),
        log_cut,
    })))
}

fn load_types(object: &str, bytes: &[u8]) -> Result<OwnedFd, Error> {
    let errno = match perfmon_sys::btf_load(bytes, None) {
        Ok(fd) => return Ok(fd),
        Err(errno) => errno,
    };
    let mut buffer = vec![0; LOG_BYTES[0]];
    let log = VerifierLog { level: 1, buffer: &mut buffer };
    let _ = perfmon_sys::btf_load(bytes, Some(log));
    Err(Error::Refused(Box::new(Refusal {
        what: format!("the type information of {object}"),
        errno,
        instructions: 0,
        log: text(&buffer),
        log_cut: false,
    })))
}

fn text(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(log.get(..end).unwrap_or_default()).into_owned()
}
