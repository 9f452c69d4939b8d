//! What must hold of an object's type information beyond that of the kernel's own, which is trusted.

use crate::btf::{Btf, CHAIN_MAX, KIND_STRUCT, KIND_UNION, TYPE_BYTES};
use crate::reader::Bytes;

const KIND_INTEGER: u32 = 1;
const KIND_POINTER: u32 = 2;
const KIND_ARRAY: u32 = 3;
const KIND_ENUM: u32 = 6;
const KIND_FUNCTION: u32 = 12;
const KIND_PROTOTYPE: u32 = 13;
const KIND_VARIABLE: u32 = 14;
const KIND_SECTION: u32 = 15;
const KIND_FLOAT: u32 = 16;
const KIND_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;
/// No type is larger: offsets in bits fit into 32 bits.
const TYPE_BYTES_MAX: u64 = 1 << 28;
/// The longest way into a type.
const PATH_MAX: usize = 64;

impl Btf {
    /// Itself, if its types are what a compiler could have written: sizes that fit, members inside of their structs,
    /// references to what has values.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn checked(self) -> Result<Self, String> {
        if !self.is_plain() {
            return Err("its parts are not where compilers put them".into());
        }
        match (1..self.count()).find(|&id| self.check_type(id).is_none()) {
            Some(id) => Err(format!("type {id} is not possible")),
            None => Ok(self),
        }
    }

    fn check_type(&self, id: u32) -> Option<()> {
        let found = self.get(id)?;
        let all = Bytes(self.bytes());
        let word = |offset| all.u32(found.at + TYPE_BYTES + offset);
        let fine = match found.kind {
            KIND_POINTER | 8..=11 | 18 => self.is_value(found.size_or_type),
            KIND_ARRAY => self.is_value(word(0)?) && self.size(id).is_some(),
            KIND_STRUCT | KIND_UNION => {
                u64::from(found.size_or_type) <= TYPE_BYTES_MAX
                    && (0..found.count).all(|number| self.check_member(id, number).is_some())
            }
            KIND_FUNCTION => self.get(found.size_or_type)?.kind == KIND_PROTOTYPE,
            KIND_PROTOTYPE => {
                self.is_value(found.size_or_type)
                    && (0..found.count)
                        .all(|n| word(n * 8 + 4).is_some_and(|param| self.is_value(param)))
            }
            // The parser reads the linkage as one of three values, whatever it is.
            KIND_VARIABLE => self.is_value(found.size_or_type) && word(0)? <= 2,
            KIND_SECTION => (0..found.count).all(|n| {
                let id = word(n * 12);
                id.and_then(|id| self.get(id)).is_some_and(|it| it.kind == KIND_VARIABLE)
            }),
            KIND_INTEGER | KIND_FLOAT => found.size_or_type <= 16,
            KIND_ENUM | KIND_ENUM64 => found.size_or_type <= 8,
            _ => true,
        };
        fine.then_some(())
    }

    fn check_member(&self, id: u32, number: usize) -> Option<()> {
        let outer = self.get(id)?;
        let (inner, begin, width) = self.member_at(id, number)?;
        let inside = |bytes: u64| {
            let end = u64::from(begin) + bytes * 8;
            end <= u64::from(outer.size_or_type) * 8
        };
        if !self.is_value(inner) {
            return None;
        }
        if width == 0 {
            return inside(self.size(inner)?).then_some(());
        }
        // Reads of bit fields are computed from a size which is a power of 2.
        let end = u64::from(begin) + u64::from(width);
        let bytes = self.size(inner)?;
        let fits = u64::from(width) <= bytes * 8 && end <= u64::from(outer.size_or_type) * 8;
        (self.is_number(inner) && matches!(bytes, 1 | 2 | 4 | 8) && fits).then_some(())
    }

    /// The type, the offset in bits and the width as a bit field of a member.
    fn member_at(&self, id: u32, number: usize) -> Option<(u32, u32, u32)> {
        let outer = self.get(id).filter(|outer| number < outer.count)?;
        let at = outer.at + TYPE_BYTES + number * 12;
        let all = Bytes(self.bytes());
        let (inner, bits) = (all.u32(at + 4)?, all.u32(at + 8)?);
        let kind_flag = outer.kind_flag;
        Some(if kind_flag { (inner, bits & 0xff_ffff, bits >> 24) } else { (inner, bits, 0) })
    }

    /// Whether something can be of this type; 0 is `void`.
    pub(crate) fn is_value(&self, id: u32) -> bool {
        let unfit = [KIND_FUNCTION, KIND_VARIABLE, KIND_SECTION, KIND_TAG];
        id == 0 || self.get(id).is_some_and(|found| !unfit.contains(&found.kind))
    }

    pub(crate) fn is_function(&self, id: u32) -> bool {
        self.get(id).is_some_and(|found| found.kind == KIND_FUNCTION)
    }

    /// Whether it is an integer or an enumeration.
    pub(crate) fn is_number(&self, id: u32) -> bool {
        let kind = self.resolve(id).and_then(|id| self.get(id)).map(|found| found.kind);
        matches!(kind, Some(KIND_INTEGER | KIND_ENUM | KIND_ENUM64))
    }

    /// Bytes of a value of this type. A function and a struct that is only declared have none.
    pub(crate) fn size(&self, id: u32) -> Option<u64> {
        let mut bytes: u64 = 1;
        let mut id = id;
        for _ in 0..CHAIN_MAX {
            let inner = self.resolve(id)?;
            let found = self.get(inner)?;
            let size = match found.kind {
                KIND_ARRAY => {
                    let all = Bytes(self.bytes());
                    let count = all.u32(found.at + TYPE_BYTES + 8)?;
                    bytes = bytes.checked_mul(u64::from(count))?;
                    id = all.u32(found.at + TYPE_BYTES)?;
                    if bytes > TYPE_BYTES_MAX {
                        return None;
                    }
                    continue;
                }
                KIND_POINTER => 8,
                KIND_INTEGER | KIND_STRUCT | KIND_UNION | KIND_ENUM | KIND_FLOAT | KIND_ENUM64 => {
                    u64::from(found.size_or_type)
                }
                _ => return None,
            };
            return bytes.checked_mul(size).filter(|&bytes| bytes <= TYPE_BYTES_MAX);
        }
        None
    }

    /// Follows indices of elements and members, the first one among values of the type itself; gives the last type.
    /// Offsets on the way fit into 32 bits.
    pub(crate) fn walk(&self, id: u32, path: &[u32]) -> Option<u32> {
        let (first, path) = path.split_first()?;
        let mut id = self.resolve(id)?;
        let mut bits = u64::from(*first).checked_mul(self.size(id)?)?.checked_mul(8)?;
        if path.len() > PATH_MAX {
            return None;
        }
        for &number in path {
            let found = self.get(self.resolve(id)?)?;
            if found.kind == KIND_ARRAY {
                id = self.resolve(Bytes(self.bytes()).u32(found.at + TYPE_BYTES)?)?;
                bits += u64::from(number).checked_mul(self.size(id)?)?.checked_mul(8)?;
            } else if found.kind == KIND_STRUCT || found.kind == KIND_UNION {
                let (inner, begin, _) = self.member_at(self.resolve(id)?, number as usize)?;
                bits += u64::from(begin);
                id = inner;
            } else {
                return None;
            }
            if bits >= TYPE_BYTES_MAX * 8 {
                return None;
            }
        }
        (bits < TYPE_BYTES_MAX * 8).then_some(id)
    }
}
