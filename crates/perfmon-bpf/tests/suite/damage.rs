use std::cell::Cell;
use std::sync::Once;

use perfmon_bpf::{Loader, Object};

use crate::helper::{ACCOUNT, BAD, CORE, LAB, PLACES, SECTIONS};

/// How often each object is damaged; the environment may ask for more.
const TIMES: usize = 3_000;
const TIMES_VARIABLE: &str = "PERFMON_DAMAGES";
/// What a section may claim, and as much again for the copy that is loaded.
const MEMORY_BYTES_MAX: u64 = 3 * (64 << 20);
/// Where the file says where its section headers are.
const HEADERS_AT: usize = 0x28;
const EXTREMES: [u64; 12] =
    [0, 1, 7, 0x7f, 0xff, 0xfff0, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX];

thread_local! {
    /// Panics of this thread, while it counts them.
    static PANICS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Numbers that look random and are the same each time (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % end.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Damages `bytes` in one to three places: bits, bytes, fields of sizes, headers of sections; or cuts them off.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(3) {
        let mut at = numbers.below(bytes.len());
        let value = numbers.one_of(&EXTREMES).to_le_bytes();
        let width = numbers.one_of(&[1, 2, 4, 8]);
        match numbers.below(48) {
            0..12 => bytes[at] ^= 1 << numbers.below(8),
            12..18 => bytes[at] = value[0],
            18..24 => {
                let field = bytes[HEADERS_AT..HEADERS_AT + 8].try_into().unwrap();
                let headers = usize::try_from(u64::from_le_bytes(field)).unwrap();
                at = headers.saturating_add(numbers.below(bytes.len().saturating_sub(headers)));
                put(bytes, at & !3, &value[..width]);
            }
            24..30 => {
                let more = u8::try_from(numbers.below(64)).unwrap();
                bytes[at & !3] = bytes[at & !3].wrapping_add(more);
            }
            30 => bytes.truncate(at.max(64)),
            _ => put(bytes, at - at % width, &value[..width]),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = at.checked_add(value.len()).and_then(|end| bytes.get_mut(at..end)) {
        place.copy_from_slice(value);
    }
}

/// Counts panics of this thread, which the loader catches, and shows those of others.
fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if let Some(count) = PANICS.get() {
                PANICS.set(Some(count + 1));
            }
            others(info);
        }));
    });
    PANICS.set(Some(0));
}

/// Damages an object many times, and checks that it is read and made ready, or refused: the parser never panics, and
/// allocates no more than was claimed within limits.
fn check(name: &str, good: &[u8], times: usize) {
    let asked = std::env::var(TIMES_VARIABLE).ok().and_then(|times| times.parse().ok());
    let is_ready = |bytes: &[u8]| {
        Object::parse(name, bytes).is_ok_and(|object| Loader::new().prepare(&object).is_ok())
    };
    assert!(is_ready(good));
    count_panics();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut ready = 0;
    for time in 0..asked.unwrap_or(times) {
        let mut bytes = good.to_vec();
        damage(&mut bytes, &mut numbers);
        let mut is_taken = false;
        let memory = allocation_counter::measure(|| is_taken = is_ready(&bytes));
        assert!(memory.bytes_max < MEMORY_BYTES_MAX, "time {time}: {} bytes", memory.bytes_max);
        assert_eq!(PANICS.get(), Some(0), "the parser panicked at time {time}");
        ready += usize::from(is_taken);
    }
    PANICS.set(None);
    assert!(ready > 0);
}

/// Check that damage to the lab is refused or harmless.
#[test]
fn of_the_lab() {
    check("lab", LAB, TIMES);
}

/// Check that damage to an object that is relocated to the kernel's types is refused or harmless. Each time all of these
/// are searched, so it is done less often.
#[test]
fn of_relocations_to_types() {
    check("core", CORE, TIMES / 6);
}

/// Check that damage to an object with other sections is refused or harmless.
#[test]
fn of_other_sections() {
    check("sections", SECTIONS, TIMES);
}

/// Check that damage to a small object is refused or harmless.
#[test]
fn of_a_small_object() {
    check("bad", BAD, TIMES);
}

/// Check that damage to an object with many kinds of programs is refused or harmless.
#[test]
fn of_many_kinds() {
    check("places", PLACES, TIMES);
}

/// Check that damage to the product's programs is refused or harmless.
#[test]
fn of_the_products_programs() {
    check("account", ACCOUNT, TIMES);
}
