//! Tracepoints: files of tracefs.
//!
//! References: Linux, `Documentation/trace/events.rst`.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use perfmon_core::{Encoding, Refusal};
use perfmon_data::pmu_type::TRACEPOINT;

use crate::blind::Subject;
use crate::found::Found;
use crate::{near, read};

/// Looks `group:name` up in the first of `mounts` that is a tracefs.
pub(crate) fn find(mounts: &[PathBuf], group: &str, name: &str) -> Result<Found, Refusal> {
    let events = events_directory(mounts)?;
    let directory = events.join(group).join(name);
    let id = match read::text(&directory.join("id")) {
        Ok(id) => id,
        Err(error) => return Err(refusal(&events, group, name, &error)),
    };
    let config = id.parse().map_err(|_| {
        Refusal::new(format!("the id of tracepoint '{group}:{name}' is no number: '{id}'"))
    })?;
    let subject = subject(&directory, group);
    Ok(Found::new(Encoding { pmu_type: TRACEPOINT, config, ..Encoding::default() }, subject))
}

/// Whether there is a tracepoint `group:name`. Where tracefs can't be read, any may be there.
pub(crate) fn exists(mounts: &[PathBuf], group: &str, name: &str) -> bool {
    let is_name = |text: &str| !text.is_empty() && !text.starts_with('.') && !text.contains('/');
    match events_directory(mounts) {
        Ok(events) => is_name(group) && is_name(name) && events.join(group).join(name).exists(),
        Err(_) => false,
    }
}

/// With whose registers the tracepoint is hit.
fn subject(directory: &Path, group: &str) -> Subject {
    // The fields of a probe's record begin with the address that it was set on.
    let format = read::text(&directory.join("format")).unwrap_or_default();
    if format.contains(" __probe_") {
        Subject::ProbeEvent
    } else if group == "syscalls" {
        Subject::SystemCall
    } else {
        Subject::Tracepoint
    }
}

pub(crate) fn events_directory(mounts: &[PathBuf]) -> Result<PathBuf, Refusal> {
    for mount in mounts {
        let events = mount.join("events");
        match events.metadata() {
            Ok(_) => return Ok(events),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(read::refusal("stat", &events, &error).hint(PERMISSION_HINT));
            }
            Err(_) => {}
        }
    }
    Err(Refusal::new("tracefs is not mounted")
        .hint("mount -t tracefs nodev /sys/kernel/tracing (as root)"))
}

const PERMISSION_HINT: &str = "the ids of tracepoints need root to read";

fn refusal(events: &Path, group: &str, name: &str, error: &io::Error) -> Refusal {
    let directory = events.join(group);
    match error.kind() {
        ErrorKind::NotFound if directory.is_dir() => {
            let why = format!("there is no tracepoint '{name}' in group '{group}'");
            with_near(Refusal::new(why), name, &directory)
        }
        ErrorKind::NotFound => {
            let why = format!("there is no group of tracepoints '{group}'");
            with_near(Refusal::new(why), group, events)
        }
        ErrorKind::PermissionDenied => {
            read::refusal("open", &directory.join(name).join("id"), error).hint(PERMISSION_HINT)
        }
        _ => read::refusal("open", &directory.join(name).join("id"), error),
    }
}

/// Proposes the entries of `directory` that are near to `name`.
fn with_near(refusal: Refusal, name: &str, directory: &Path) -> Refusal {
    match near::question(&near::matches(name, read::names_in(directory))) {
        Some(question) => refusal.hint(question),
        None => refusal.hint(format!("ls {} shows what there is", directory.display())),
    }
}
