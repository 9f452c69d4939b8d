//! The files of a PMU's folder in sysfs. Each line is one: its place (`type`, `cpus`, `cpumask`, `format/NAME`,
//! `events/NAME`), a space, and its content.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use perfmon_events::{Names, Source, Wanted};
use perfmon_fuzz::{check_list, scratch};

static ROOT: LazyLock<std::path::PathBuf> = LazyLock::new(scratch);
/// Most lines that count.
const FILES_MAX: usize = 12;

fuzz_target!(|text: &str| {
    let pmu = ROOT.join("bus/event_source/devices/fuzzed");
    // It is there from the input before.
    let _ = fs::remove_dir_all(&pmu);
    for folder in ["format", "events"] {
        fs::create_dir_all(pmu.join(folder)).expect("the PMU's folders can be made");
    }
    fs::write(pmu.join("type"), "10\n").expect("the PMU's type can be written");
    let mut terms = vec!["config=1".to_owned(), "config1".to_owned()];
    for line in text.lines().take(FILES_MAX) {
        let Some((place, content)) = line.split_once(' ') else { continue };
        let name = place.strip_prefix("format/").or_else(|| place.strip_prefix("events/"));
        let is_plain = |name: &str| {
            name.len() < 100 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        };
        match name {
            Some(name) if is_plain(name) && !name.starts_with('.') && !name.is_empty() => {
                terms.extend([name.to_owned(), format!("{name}=0x{:x}", content.len())]);
            }
            None if ["type", "cpus", "cpumask"].contains(&place) => {}
            _ => continue,
        }
        fs::write(pmu.join(place), content).expect("the PMU's files can be written");
    }
    let names = Names::with_roots(&*ROOT, "/nonexistent");
    for term in &terms {
        check_list(&names, &format!("fuzzed/{term}/"));
    }
    check_list(&names, &format!("fuzzed/{}/u,fuzz*/{}/", terms.join(","), terms[terms.len() - 1]));
    let wanted = Wanted { sources: vec![Source::Sysfs], ..Wanted::default() };
    names.catalog(&wanted, &mut |entry| check_list(&names, &entry.name));
});
