//! An eBPF object. One that is taken can be made ready to be loaded, or is refused, and the parser never panics.

#![no_main]

use std::cell::Cell;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use perfmon_bpf::{Loader, Object};

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// The loader catches panics of the parser; here they are to be found.
fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            eprintln!("{info}");
            PANICS.set(PANICS.get() + 1);
        }));
    });
}

fuzz_target!(|bytes: &[u8]| {
    count_panics();
    match Object::parse("fuzzed", bytes) {
        Ok(object) => {
            for program in object.programs() {
                assert!(object.section(program).is_some());
            }
            let maps = object.maps();
            let loader = maps.iter().fold(Loader::new(), |loader, map| loader.entries(map, 1));
            if let Err(error) = loader.prepare(&object) {
                assert!(!error.to_string().is_empty());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if PANICS.get() > 0 {
        std::process::abort();
    }
});
