//! Where the names of events are looked up, as the options say.

use std::path::{Path, PathBuf};

use perfmon::Names;

use crate::args::{Common, Sources};
use crate::exit::{self, Failure};

/// A tree in which there is nothing.
const NOTHING: &str = "/dev/null";

/// Said of results for another machine.
pub(crate) const NOT_TRIED: &str = "these are another machine's files: nothing was tried";

impl Common {
    /// Whether names are looked up on this machine, so that events can be tried.
    pub(crate) fn is_here(&self) -> bool {
        self.sysfs.is_none() && self.tracefs.is_none() && self.proc.is_none()
    }

    /// Where sysfs is.
    pub(crate) fn sysfs(&self) -> PathBuf {
        let own = if self.is_here() { "/sys" } else { NOTHING };
        self.sysfs.clone().unwrap_or_else(|| own.into())
    }
}

/// The names that `common` asks for.
///
/// # Errors
/// A file of the options that can't be read or is wrong.
pub(crate) fn names(common: &Common) -> Result<Names, Failure> {
    if common.is_here() {
        return of_this_machine(&common.sources);
    }
    let tree = |tree: &Option<PathBuf>| tree.clone().unwrap_or_else(|| NOTHING.into());
    for tree in [&common.sysfs, &common.tracefs, &common.proc].into_iter().flatten() {
        require(tree)?;
    }
    let names = Names::with_roots(common.sysfs(), tree(&common.tracefs));
    with_sources(names.proc(tree(&common.proc)), &common.sources)
}

/// The names of this machine, and what the options add.
///
/// # Errors
/// A file of the options that can't be read or is wrong.
pub(crate) fn of_this_machine(sources: &Sources) -> Result<Names, Failure> {
    with_sources(Names::system(), sources)
}

fn with_sources(mut names: Names, sources: &Sources) -> Result<Names, Failure> {
    for path in &sources.event_files {
        require(path)?;
        names = names.vendor_events_at(path);
    }
    for file in &sources.pmu {
        names.add_description(file).map_err(Failure::new)?;
    }
    Ok(names)
}

fn require(path: &Path) -> Result<(), Failure> {
    let missing = |error| Failure::new(format!("can't read {}: {error}", path.display()));
    path.metadata().map(|_| ()).map_err(missing)
}

/// Says on standard error what could not be looked at.
pub(crate) fn note(notes: impl IntoIterator<Item = String>) {
    for note in notes {
        exit::say(&format!("note: {note}"));
    }
}
