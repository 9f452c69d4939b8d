use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya_obj::{EbpfSectionKind, Function};
use perfmon_sys::{BpfInfo, BpfMap, Errno, MapSpec, MapTypes, ProgramSpec, VerifierLog, map_type};

use crate::btf::kernel_types;
use crate::kind::Kind;
use crate::{Error, Loaded, Loader, Map, Object, Program, Refusal};

/// Map types for which the kernel takes no types of keys and values.
const UNTYPED: [u32; 12] = [3, 4, 7, 8, 12, 13, 14, 15, 16, 17, 18, map_type::RINGBUF];
/// The verifier's log is asked for in these sizes, until it is complete.
const LOG_BYTES: [usize; 3] = [1 << 16, 1 << 20, 1 << 24];
/// The parser keeps these parts of each record.
const FUNCTION_RECORD_BYTES: u32 = 8;
const LINE_RECORD_BYTES: u32 = 16;
const WIDE_LOAD: u8 = 0x18;
/// `BPF_PSEUDO_MAP_FD` and `BPF_PSEUDO_MAP_VALUE`: a wide load of a map, or of an address in its only element.
const MAPS: [u8; 2] = [1, 2];

/// An object that is ready to be loaded, from [`Loader::prepare`].
#[derive(Debug)]
pub struct Prepared<'l> {
    pub(crate) loader: &'l Loader<'l>,
    pub(crate) object: &'l Object,
    /// Relocated, with maps' numbers in place of their descriptors.
    pub(crate) parsed: aya_obj::Object,
    /// Its type information as the kernel takes it.
    pub(crate) btf: Option<Vec<u8>>,
}

impl Prepared<'_> {
    /// Loads everything in the object, or nothing.
    ///
    /// # Errors
    /// As [`Loader::load`].
    pub fn load(&self) -> Result<Loaded, Error> {
        let name = self.object.name.as_str();
        let btf = self.btf.as_ref().map(|bytes| load_types(name, bytes)).transpose()?;
        let btf = btf.as_ref().map(AsFd::as_fd);
        let declared: BTreeMap<&String, &aya_obj::Map> = self.parsed.maps.iter().collect();
        let mut maps = BTreeMap::new();
        for (name, map) in declared {
            maps.insert(name.clone(), self.map(name, map, btf)?);
        }
        let mut programs = BTreeMap::new();
        let wanted = self.object.programs().into_iter();
        for program in wanted.filter(|&program| !self.loader.without.contains(program)) {
            programs.insert(program.to_owned(), self.program(program, &maps, btf)?);
        }
        Ok(Loaded { object: name.into(), maps, programs })
    }

    fn map(
        &self,
        name: &str,
        map: &aya_obj::Map,
        btf: Option<BorrowedFd<'_>>,
    ) -> Result<Map, Error> {
        let loader = self.loader;
        let mut spec = MapSpec {
            map_type: map.map_type(),
            key_bytes: map.key_size(),
            value_bytes: map.value_size(),
            max_entries: *loader.entries.get(name).unwrap_or(&map.max_entries()),
            flags: map.map_flags() | loader.flags.get(name).unwrap_or(&0),
        };
        if spec.map_type == map_type::RINGBUF {
            (spec.key_bytes, spec.value_bytes) = (0, 0);
        }
        if let Some(shared) = loader.shared.get(name) {
            return adopt(name, spec, shared);
        }
        let types = match (map, btf) {
            (aya_obj::Map::Btf(map), Some(btf)) if !UNTYPED.contains(&spec.map_type) => {
                let (key, value) = (map.def.btf_key_type_id, map.def.btf_value_type_id);
                Some(MapTypes { btf, key, value })
            }
            _ => None,
        };
        let inner = match map.inner() {
            Some(inner) => Some(self.map("inner", &inner, None)?),
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

    fn program(
        &self,
        name: &str,
        maps: &BTreeMap<String, Map>,
        btf: Option<BorrowedFd<'_>>,
    ) -> Result<Program, Error> {
        let Self { object, parsed, .. } = self;
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
        let instructions = instruction_bytes(function, maps)
            .ok_or_else(|| bad(format!("{what}: a map that is not there")))?;
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
            btf,
            functions: BpfInfo { bytes: &functions, record_bytes: FUNCTION_RECORD_BYTES },
            lines: BpfInfo { bytes: &lines, record_bytes: LINE_RECORD_BYTES },
        };
        let fd = verified(&what, &spec)?;
        Ok(Program { name: name.into(), fd, section: section.into(), attach: kind.attach })
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

/// The instructions as the kernel takes them (`struct bpf_insn`), with descriptors in place of maps' numbers.
fn instruction_bytes(function: &Function, maps: &BTreeMap<String, Map>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(function.instructions.len() * 8);
    let mut is_second_half = false;
    for instruction in &function.instructions {
        let mut immediate = instruction.imm;
        let is_wide = instruction.code == WIDE_LOAD && !is_second_half;
        if is_wide && MAPS.contains(&instruction.src_reg()) {
            let number = usize::try_from(immediate).ok()?;
            immediate = maps.values().nth(number)?.as_fd().as_raw_fd();
        }
        is_second_half = is_wide;
        bytes.extend([instruction.code, instruction.dst_reg() | instruction.src_reg() << 4]);
        bytes.extend(instruction.off.to_ne_bytes());
        bytes.extend(immediate.to_ne_bytes());
    }
    Some(bytes)
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
