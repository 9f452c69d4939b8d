//! What the targets share: machines to look names up on, and folders for input that must be files.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use perfmon_events::{Names, ParseError};

/// The fixtures of `perfmon-events`.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/perfmon-events/tests/fixtures")
}

/// The machine of the fixtures called `name`.
pub fn machine(name: &str) -> Names {
    let machine = fixtures().join("machines").join(name);
    Names::with_roots(machine.join("sys"), fixtures().join("tracefs")).proc(machine.join("proc"))
}

/// A folder of this process, in memory where the system offers that.
pub fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = parent.join(format!("perfmon-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the input's files can be made");
    folder
}

/// What must be so for any list, each way that reads it.
///
/// # Panics
/// Something is not so.
pub fn check_list(names: &Names, list: &str) {
    let explained = names.explain(list).events;
    let first = names.encoding(list);
    let events = match names.parse(list) {
        Ok(events) => events,
        Err(error) => {
            check_error(list, &error);
            assert_eq!(explained.expect_err("one way reads the list"), error);
            return;
        }
    };
    let explained = explained.expect("the other way reads the list");
    let explained: Vec<_> = explained.into_iter().map(|it| it.event).collect();
    assert_eq!(format!("{explained:?}"), format!("{events:?}"));
    if let (Some(event), false) = (events.first(), list.contains('{')) {
        let first = first.expect("the first event can be read");
        assert_eq!(first.as_ref().ok(), event.encoding.as_deref().ok());
    }
    for event in &events {
        let again = names.parse(&event.text).unwrap_or_else(|error| panic!("{error}"));
        assert!(again.iter().any(|again| again.encoding == event.encoding), "{}", event.text);
    }
}

fn check_error(list: &str, error: &ParseError) {
    assert!(error.position() <= list.len());
    assert!(list.is_char_boundary(error.position()));
    assert!(!error.to_string().is_empty());
}
