//! Event strings against the encodings, errors and refusals that they must give. Needs no privilege
//! and no PMU.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod blind;
mod defaults;
mod descriptions;
mod elf_file;
mod errors;
mod fixed;
mod groups;
mod kprobes;
mod libpfm;
mod machines;
mod metrics;
mod perf_strings;
mod properties;
mod sysfs;
mod tracepoints;
mod uprobes;

use std::path::PathBuf;

use perfmon_events::{Event, Names};

/// The names of the fixture trees.
fn names() -> Names {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    Names::with_roots(fixtures.join("sysfs"), fixtures.join("tracefs"))
}

/// The only event of `list`.
fn event(list: &str) -> Event {
    let mut events = names().parse(list).unwrap_or_else(|error| panic!("{list}: {error}"));
    assert_eq!(events.len(), 1, "{list}");
    events.remove(0)
}

/// An encoding as text: type and config, then each field that is not 0, then the levels left out.
fn show(event: &Event) -> String {
    let encoding = match &event.encoding {
        Ok(encoding) => encoding,
        Err(refusal) => return format!("refused: {refusal}"),
    };
    let mut text = format!("type {} config {:#x}", encoding.pmu_type, encoding.config);
    let words = [
        (" config1", encoding.config1),
        (" config2", encoding.config2),
        (" config3", encoding.config3),
        (" bp_type", encoding.bp_type.into()),
        (" precise", encoding.precise_ip.into()),
    ];
    for (name, word) in words {
        if word != 0 {
            text += &format!("{name} {word:#x}");
        }
    }
    let privilege = encoding.privilege;
    let flags = [
        (" -u", privilege.exclude_user),
        (" -k", privilege.exclude_kernel),
        (" -h", privilege.exclude_hv),
        (" -idle", privilege.exclude_idle),
        (" -host", privilege.exclude_host),
        (" -guest", privilege.exclude_guest),
        (" pinned", encoding.pinned),
        (" exclusive", encoding.exclusive),
        (" path", encoding.path.is_some()),
    ];
    text.extend(flags.into_iter().filter_map(|(name, flag)| flag.then_some(name)));
    text
}

/// Checks the encoding, or the refusal, of one event.
fn check(list: &str, expected: &str) {
    assert_eq!(show(&event(list)), expected, "{list}");
}

/// Checks that the refusal of one event holds `expected`.
fn check_refused(list: &str, expected: &str) {
    let shown = show(&event(list));
    assert!(shown.starts_with("refused: ") && shown.contains(expected), "{list}: {shown}");
}
