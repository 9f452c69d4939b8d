use std::sync::OnceLock;

use crate::reader::Bytes;

const MAGIC: usize = 0xeb9f;
const HEADER_BYTES: usize = 24;
pub(crate) const TYPE_BYTES: usize = 12;
const KIND_POINTER: u32 = 2;
pub(crate) const KIND_STRUCT: u32 = 4;
pub(crate) const KIND_UNION: u32 = 5;
const KIND_TYPEDEF: u32 = 8;
const KIND_FUNCTION: u32 = 12;
/// volatile, const, restrict, typedef, type tag: the type is that which they name.
const TRANSPARENT: [u32; 5] = [KIND_TYPEDEF, 9, 10, 11, 18];
/// No chain of names for one type is longer in what compilers write.
pub(crate) const CHAIN_MAX: usize = 32;

/// Type information in the BPF Type Format.
///
/// # References
/// - Documentation/bpf/btf.rst
#[derive(Debug)]
pub struct Btf {
    bytes: Vec<u8>,
    /// Where each type begins, by id (there is no type 0).
    types: Vec<usize>,
    strings: usize,
    strings_bytes: usize,
}

/// A type's first words.
#[derive(Clone, Copy)]
pub(crate) struct Type<'a> {
    name: &'a str,
    pub(crate) kind: u32,
    /// Members, parameters...
    pub(crate) count: usize,
    /// Bit fields have their width in the members' offsets.
    pub(crate) kind_flag: bool,
    /// Its size, or the type that it refers to.
    pub(crate) size_or_type: u32,
    pub(crate) at: usize,
}

impl Btf {
    /// Reads type information. Every type, name and reference is checked to lie inside.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let damaged = || "its header is damaged".to_owned();
        let all = Bytes(bytes);
        if all.u16(0) != Some(MAGIC) {
            return Err("it does not begin as type information does".into());
        }
        let header = all.count(4).filter(|&header| header >= HEADER_BYTES).ok_or_else(damaged)?;
        let field = |at| all.count(at).ok_or_else(damaged);
        let start = header.checked_add(field(8)?).ok_or_else(damaged)?;
        let types_bytes = field(12)?;
        let strings = header.checked_add(field(16)?).ok_or_else(damaged)?;
        let strings_bytes = field(20)?;
        all.part(start, types_bytes).ok_or_else(damaged)?;
        let text = all.part(strings, strings_bytes).ok_or_else(damaged)?;
        if text.0.first() != Some(&0) || text.0.last() != Some(&0) {
            return Err("its names have no end".into());
        }
        let mut btf =
            Self { bytes: bytes.to_vec(), types: vec![usize::MAX], strings, strings_bytes };
        let mut at = start;
        while at < start + types_bytes {
            let length = btf.length_at(at).ok_or_else(|| {
                format!("type {} is damaged or of a kind that is not known", btf.types.len())
            })?;
            btf.types.push(at);
            at += length;
        }
        if at != start + types_bytes {
            return Err("its last type is cut off".into());
        }
        btf.check_references()?;
        Ok(btf)
    }

    fn length_at(&self, at: usize) -> Option<usize> {
        let info = Bytes(&self.bytes).u32(at + 4)?;
        let count = (info & 0xffff) as usize;
        let more = match (info >> 24) & 0x1f {
            2 | 7..=12 | 16 | 18 => 0,
            1 | 14 | 17 => 4,
            3 => 12,
            KIND_STRUCT | KIND_UNION | 15 | 19 => count * 12,
            6 | 13 => count * 8,
            _ => return None,
        };
        let length = TYPE_BYTES + more;
        Bytes(&self.bytes).part(at, length)?;
        Some(length)
    }

    fn check_references(&self) -> Result<(), String> {
        let all = Bytes(&self.bytes);
        for (id, &at) in self.types.iter().enumerate().skip(1) {
            let bad = || format!("type {id} refers to what is not there");
            let is_type = |at| all.count(at).is_some_and(|id| id < self.types.len());
            let is_name = |at| all.count(at).is_some_and(|name| name < self.strings_bytes);
            let info = all.u32(at + 4).ok_or_else(bad)?;
            let count = (info & 0xffff) as usize;
            let kind = (info >> 24) & 0x1f;
            let members = |step: usize| (0..count).map(move |n| at + TYPE_BYTES + n * step);
            let refers = match kind {
                KIND_POINTER | 8..=12 | 14 | 17 | 18 => is_type(at + 8),
                3 => is_type(at + TYPE_BYTES) && is_type(at + TYPE_BYTES + 4),
                KIND_STRUCT | KIND_UNION => {
                    members(12).all(|member| is_name(member) && is_type(member + 4))
                }
                6 => members(8).all(is_name),
                13 => {
                    is_type(at + 8)
                        && members(8).all(|member| is_name(member) && is_type(member + 4))
                }
                15 => members(12).all(is_type),
                19 => members(12).all(is_name),
                _ => true,
            };
            if !refers || !is_name(at) {
                return Err(bad());
            }
        }
        Ok(())
    }

    /// Whether header, types and names follow one another, as the parser takes for granted.
    pub(crate) fn is_plain(&self) -> bool {
        let all = Bytes(&self.bytes);
        let types_bytes = all.count(12);
        all.count(4) == Some(HEADER_BYTES)
            && all.count(8) == Some(0)
            && all.count(16) == types_bytes
            && types_bytes
                .is_some_and(|types| HEADER_BYTES + types + self.strings_bytes == self.bytes.len())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// One more than the last type's id.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.types.len()).unwrap_or(u32::MAX)
    }

    /// The text at an offset into the names.
    pub(crate) fn text(&self, offset: u32) -> Option<&str> {
        Bytes(&self.bytes).part(self.strings, self.strings_bytes)?.text(offset as usize)
    }

    fn name(&self, offset: u32) -> &str {
        Bytes(&self.bytes)
            .part(self.strings, self.strings_bytes)
            .and_then(|strings| strings.text(offset as usize))
            .unwrap_or_default()
    }

    pub(crate) fn get(&self, id: u32) -> Option<Type<'_>> {
        let at = *self.types.get(id as usize).filter(|_| id != 0)?;
        let all = Bytes(&self.bytes);
        let info = all.u32(at + 4)?;
        Some(Type {
            name: self.name(all.u32(at)?),
            kind: (info >> 24) & 0x1f,
            count: (info & 0xffff) as usize,
            kind_flag: info >> 31 != 0,
            size_or_type: all.u32(at + 8)?,
            at,
        })
    }

    fn find(&self, kind: u32, name: &str) -> Option<u32> {
        let all = Bytes(&self.bytes);
        let matches = |&(_, &at): &(u32, &usize)| {
            all.u32(at + 4).is_some_and(|info| (info >> 24) & 0x1f == kind)
                && all.u32(at).is_some_and(|offset| self.name_is(offset, name))
        };
        (0..).zip(&self.types).skip(1).find(matches).map(|(id, _)| id)
    }

    fn name_is(&self, offset: u32, name: &str) -> bool {
        let at = self.strings + offset as usize;
        let text = self.bytes.get(at..).unwrap_or_default();
        text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0)
    }

    /// The id of a typedef.
    pub fn typedef(&self, name: &str) -> Option<u32> {
        self.find(KIND_TYPEDEF, name)
    }

    /// The id of a function.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.find(KIND_FUNCTION, name)
    }

    /// Bytes of a struct.
    pub fn struct_bytes(&self, name: &str) -> Option<u32> {
        self.get(self.find(KIND_STRUCT, name)?).map(|found| found.size_or_type)
    }

    /// The offset in bytes of a member of a struct, through structs in it: `["se", "nr_migrations"]`. Members of unnamed
    /// structs and unions count as the struct's own.
    pub fn offset(&self, name: &str, path: &[&str]) -> Option<u32> {
        let mut id = self.find(KIND_STRUCT, name)?;
        let mut offset = 0;
        for member in path {
            let (more, inner) = self.member(id, member, CHAIN_MAX)?;
            offset += more;
            id = self.resolve(inner)?;
        }
        (offset % 8 == 0).then_some(offset / 8)
    }

    /// The offset in bits and the type of a member.
    fn member(&self, id: u32, wanted: &str, depth: usize) -> Option<(u32, u32)> {
        let outer = self
            .get(id)
            .filter(|found| depth > 0 && (found.kind == KIND_STRUCT || found.kind == KIND_UNION))?;
        let all = Bytes(&self.bytes);
        (0..outer.count).find_map(|number| {
            let at = outer.at + TYPE_BYTES + number * 12;
            let (name, inner, bits) = (all.u32(at)?, all.u32(at + 4)?, all.u32(at + 8)?);
            let bits = if outer.kind_flag { bits & 0xff_ffff } else { bits };
            if name != 0 {
                return self.name_is(name, wanted).then_some((bits, inner));
            }
            let (more, found) = self.member(self.resolve(inner)?, wanted, depth - 1)?;
            Some((bits + more, found))
        })
    }

    /// The type behind typedefs and qualifiers.
    pub(crate) fn resolve(&self, mut id: u32) -> Option<u32> {
        for _ in 0..CHAIN_MAX {
            let found = self.get(id)?;
            if !TRANSPARENT.contains(&found.kind) {
                return Some(id);
            }
            id = found.size_or_type;
        }
        None
    }

    /// The structs that it describes, by name.
    pub fn structs(&self) -> impl Iterator<Item = &str> {
        (1..)
            .map_while(|id| self.get(id))
            .filter(|found| found.kind == KIND_STRUCT)
            .map(|found| found.name)
    }
}

/// The running kernel's types, read once.
///
/// # Errors
/// Why they can't be had: a kernel built without `CONFIG_DEBUG_INFO_BTF` has none.
pub fn kernel_types() -> Result<&'static Btf, &'static str> {
    static TYPES: OnceLock<Result<Btf, String>> = OnceLock::new();
    TYPES
        .get_or_init(|| {
            const PATH: &str = "/sys/kernel/btf/vmlinux";
            let bytes = std::fs::read(PATH).map_err(|error| {
                format!("{PATH}: {error}; the kernel must be built with CONFIG_DEBUG_INFO_BTF")
            })?;
            Btf::parse(&bytes).map_err(|why| format!("{PATH}: {why}"))
        })
        .as_ref()
        .map_err(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that damage to any one byte of type information is refused or harmless.
    #[test]
    fn damaged_types_are_refused() {
        let good = include_bytes!("../tests/data/small.btf");
        let btf = Btf::parse(good).unwrap();
        let names: Vec<_> = btf.structs().map(str::to_owned).collect();
        for (at, byte) in (0..good.len()).flat_map(|at| [0, 0x7f, 0xff].map(|byte| (at, byte))) {
            let mut bytes = good.to_vec();
            bytes[at] = byte;
            if let Ok(btf) = Btf::parse(&bytes) {
                for name in &names {
                    btf.offset(name, &["read_errors"]);
                }
            }
        }
        assert!((0..good.len()).all(|length| Btf::parse(&good[..length]).is_err()));
    }
}
