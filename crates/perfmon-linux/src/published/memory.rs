//! The contexts' array, as words: programs change it at the same time.

use std::mem::offset_of;

use perfmon_bpf::{Layout, SharedMemory};

use super::layout::{self, Context, Pmd, Value};

pub(super) const LAYOUTS: &[Layout] = &[
    Layout {
        name: "Context",
        bytes: size_of::<Context>(),
        members: &[
            ("state", offset_of!(Context, state)),
            ("flags", offset_of!(Context, flags)),
            ("target", offset_of!(Context, target)),
            ("nr_pmds", offset_of!(Context, nr_pmds)),
            ("first_event", offset_of!(Context, first_event)),
            ("active_set", offset_of!(Context, active_set)),
            ("busy", offset_of!(Context, busy)),
            ("generation", offset_of!(Context, generation)),
            ("samples", offset_of!(Context, samples)),
            ("unplugged", offset_of!(Context, unplugged)),
            ("hits_left", offset_of!(Context, hits_left)),
            ("hit_period", offset_of!(Context, hit_period)),
            ("pmds", offset_of!(Context, pmds)),
        ],
    },
    Layout {
        name: "Pmd",
        bytes: size_of::<Pmd>(),
        members: &[
            ("set", offset_of!(Pmd, set)),
            ("base", offset_of!(Pmd, base)),
            ("frozen", offset_of!(Pmd, frozen)),
        ],
    },
    Layout {
        name: "Value",
        bytes: size_of::<Value>(),
        members: &[
            ("value", offset_of!(Value, value)),
            ("enabled_ns", offset_of!(Value, enabled_ns)),
            ("running_ns", offset_of!(Value, running_ns)),
        ],
    },
];

/// How a published context stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextInfo {
    /// It counts; otherwise a program has stopped it.
    pub is_started: bool,
    /// It belongs to a CPU, and not to a thread.
    pub is_system_wide: bool,
    /// The thread or the CPU.
    pub target: u32,
    /// How many registers it has.
    pub nr_pmds: u32,
    /// The set whose registers can be read.
    pub active_set: u32,
    /// Starts and stops by programs.
    pub generation: u64,
    /// Overflows and hits that came to the call-back,
    pub samples: u64,
    /// and those of them that found none.
    pub unplugged: u64,
}

pub(super) struct Written<'a> {
    pub(super) flags: u32,
    pub(super) target: u32,
    pub(super) first_event: u32,
    pub(super) sets: &'a [u32],
}

fn at(context: u32, field: usize) -> usize {
    context as usize * size_of::<Context>() + field
}

fn put(memory: &SharedMemory, at: usize, value: u64) {
    if let Some(word) = memory.word(at) {
        word.store(value);
    }
}

fn get(memory: &SharedMemory, at: usize) -> u64 {
    memory.word(at).map_or(0, |word| word.load())
}

/// Two halves of a word, the one at the lower address first.
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn halves(word: u64) -> (u32, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
    let low = word as u32;
    let high = (word >> 32) as u32;
    (low, high)
}

/// Writes a context that nobody reads yet: its state comes last.
pub(super) fn write(memory: &SharedMemory, context: u32, what: &Written<'_>) {
    let &Written { flags, target, first_event, sets } = what;
    let nr_pmds = u32::try_from(sets.len()).unwrap_or(u32::MAX);
    let active_set = sets.iter().copied().min().unwrap_or(0);
    for (number, &set) in sets.iter().enumerate() {
        put(
            memory,
            at(context, offset_of!(Context, pmds) + number * size_of::<Pmd>()),
            pair(set, 0),
        );
    }
    put(memory, at(context, offset_of!(Context, target)), pair(target, nr_pmds));
    put(memory, at(context, offset_of!(Context, first_event)), pair(first_event, active_set));
    let state = pair(layout::LOADED, flags | layout::STARTED);
    put(memory, at(context, offset_of!(Context, state)), state);
}

pub(super) fn free(memory: &SharedMemory, context: u32) {
    put(memory, at(context, offset_of!(Context, state)), pair(layout::FREE, 0));
}

pub(super) fn set_active_set(memory: &SharedMemory, context: u32, set: u32) {
    let place = at(context, offset_of!(Context, first_event));
    let (first_event, _) = halves(get(memory, place));
    put(memory, place, pair(first_event, set));
}

pub(super) fn set_hit_period(memory: &SharedMemory, context: u32, period: u64) {
    put(memory, at(context, offset_of!(Context, hits_left)), period);
    put(memory, at(context, offset_of!(Context, hit_period)), period);
}

pub(super) fn info(memory: &SharedMemory, context: u32) -> Option<ContextInfo> {
    let field = |field| get(memory, at(context, field));
    let (state, flags) = halves(field(offset_of!(Context, state)));
    if state != layout::LOADED {
        return None;
    }
    let (target, nr_pmds) = halves(field(offset_of!(Context, target)));
    let (_, active_set) = halves(field(offset_of!(Context, first_event)));
    Some(ContextInfo {
        is_started: flags & layout::STARTED != 0,
        is_system_wide: flags & layout::SYSTEM_WIDE != 0,
        target,
        nr_pmds,
        active_set,
        generation: field(offset_of!(Context, generation)),
        samples: field(offset_of!(Context, samples)),
        unplugged: field(offset_of!(Context, unplugged)),
    })
}

#[cfg(test)]
mod tests {
    use perfmon_bpf::Object;

    use super::*;

    static OBJECTS: [&[u8]; 5] = [
        include_bytes!("../../../../bpf/objects/stubs.bpf.o"),
        include_bytes!("../../../../bpf/objects/reader.bpf.o"),
        include_bytes!("../../../../bpf/objects/reader_c.bpf.o"),
        include_bytes!("../../../../bpf/objects/faults_per_call.bpf.o"),
        include_bytes!("../../../../bpf/objects/faults_per_call_c.bpf.o"),
    ];

    /// Check that programs in Rust and in C have the structs as they are here, and that a difference is seen in each.
    #[test]
    fn structs_are_the_same_on_both_sides() {
        for bytes in OBJECTS {
            assert!(Object::parse_with("object", bytes, LAYOUTS).is_ok());
            for layout in LAYOUTS {
                let wrong = Layout { bytes: layout.bytes + 8, ..*layout };
                let text = Object::parse_with("object", bytes, &[wrong]).unwrap_err().to_string();
                assert!(text.contains(&format!("struct {} has", layout.name)), "{text}");
                let members = &[("no_such_member", 0)];
                let wrong = Layout { members, ..*layout };
                assert!(Object::parse_with("object", bytes, &[wrong]).is_err());
            }
        }
    }
}
