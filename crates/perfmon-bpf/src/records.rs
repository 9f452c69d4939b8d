//! What must hold of `.BTF.ext`: the records of functions, of lines, and of relocations to the kernel's types.

use crate::btf::Btf;
use crate::reader::Bytes;

const BLOCK_BYTES: usize = 8;
const RECORD_BYTES_MAX: usize = 256;
const HEADER_BYTES: usize = 24;
/// Kinds of relocations (`enum bpf_core_relo_kind`).
const LEFT_SHIFT: u32 = 4;
const RIGHT_SHIFT: u32 = 5;
const TYPE_LOCAL: u32 = 6;

/// Whether the records lie inside, in the order of the code, and name what is there.
pub(crate) fn check(extra: Bytes<'_>, btf: Option<&Btf>) -> Option<()> {
    let btf = btf?;
    let header = extra.count(4)?;
    if header < HEADER_BYTES || extra.u16(0) != Some(0xeb9f) {
        return None;
    }
    let tables = if header >= 32 { 3 } else { 2 };
    // Least sizes of a function's, a line's and a relocation's record.
    for (table, record_bytes_min) in (0..tables).zip([8, 16, 16]) {
        let begin = header.checked_add(extra.count(8 + table * 8)?)?;
        let length = extra.count(12 + table * 8)?;
        let records = extra.part(begin, length)?;
        if length == 0 {
            continue;
        }
        let record_bytes = records.count(0)?;
        if !(record_bytes_min..=RECORD_BYTES_MAX).contains(&record_bytes) {
            return None;
        }
        let mut at = 4;
        while at < length {
            let count = records.count(at + 4)?;
            let bytes = count.checked_mul(record_bytes)?;
            btf.text(records.u32(at)?)?;
            let block = records.part(at.checked_add(BLOCK_BYTES)?, bytes)?;
            check_block(block, record_bytes, table, btf)?;
            at += BLOCK_BYTES + bytes;
        }
    }
    Some(())
}

/// The records of one section.
fn check_block(block: Bytes<'_>, record_bytes: usize, table: usize, btf: &Btf) -> Option<()> {
    let mut before = 0;
    for record in block.0.chunks_exact(record_bytes).map(Bytes) {
        let offset = record.u32(0)?;
        // The parser subtracts the first line's place from that of the others.
        if !offset.is_multiple_of(8) || offset < before {
            return None;
        }
        before = offset;
        match table {
            0 => btf.is_function(record.u32(4)?).then_some(())?,
            1 => {
                btf.text(record.u32(4)?)?;
                btf.text(record.u32(8)?)?;
            }
            _ => check_relocation(record, btf)?,
        }
    }
    Some(())
}

fn check_relocation(record: Bytes<'_>, btf: &Btf) -> Option<()> {
    let (id, path, kind) = (record.u32(4)?, btf.text(record.u32(8)?)?, record.u32(12)?);
    if kind >= TYPE_LOCAL {
        return btf.is_value(id).then_some(());
    }
    let path = path.split(':').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>()?;
    let end = btf.walk(id, &path)?;
    // Their width is taken from 64.
    let is_shift = kind == LEFT_SHIFT || kind == RIGHT_SHIFT;
    (!is_shift || btf.is_number(end)).then_some(())
}
