//! A vendor's event file, on an Intel machine of two core types and on an Arm machine.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use perfmon_events::{Source, Wanted};
use perfmon_fuzz::{check_list, machine, scratch};

static FILE: LazyLock<std::path::PathBuf> = LazyLock::new(|| scratch().join("fuzzed.json"));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("the file can be written");
    for name in ["alder_lake", "big_little"] {
        let names = machine(name).vendor_events_at(&*FILE);
        let mut found = Vec::new();
        let wanted = Wanted { sources: vec![Source::Vendor], ..Wanted::default() };
        names.catalog(&wanted, &mut |entry| {
            if found.len() < 8 {
                found.push(entry.name.into_owned());
            }
        });
        for event in found {
            check_list(&names, &event);
        }
        for problem in names.problems() {
            assert!(!problem.is_empty());
        }
    }
});
