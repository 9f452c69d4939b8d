//! PMU descriptions. Those that are right give every event and every register value an encoding or a reason.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use perfmon_events::{Names, PmuDescription, description};
use perfmon_fuzz::{machine, scratch};

static FILE: LazyLock<std::path::PathBuf> = LazyLock::new(|| scratch().join("fuzzed.toml"));

fuzz_target!(|text: &str| {
    match description::parse(text, "fuzzed.toml") {
        Ok(_) => use_it(text),
        Err(error) => {
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
        }
    }
});

fn use_it(text: &str) {
    std::fs::write(&*FILE, text).expect("the description can be written");
    let Ok(description) = PmuDescription::load(&FILE) else { return };
    for pmd in 0..=320 {
        for value in [0, 1, 0x53_00c0, u64::MAX] {
            let _ = description.encoding_of(pmd, value);
        }
    }
    let mut names: Names = machine("zen3");
    if names.add_description(&FILE).is_err() {
        return;
    }
    let pmu = &description.identity().name;
    for event in description.tables().events.iter().take(20) {
        let base = format!("{pmu}::{}", event.name);
        let masks = event.masks.iter().take(20).map(|mask| format!(":{}", mask.name));
        for mask in std::iter::once(String::new()).chain(masks) {
            let _ = names.explain(&format!("{base}{mask}"));
            for modifier in description.tables().modifiers.iter().take(8) {
                for value in ["0", "1", "0xffffffffffffffff"] {
                    let _ = names.encoding(&format!("{base}{mask}:{}={value}:uk", modifier.name));
                }
            }
        }
    }
}
