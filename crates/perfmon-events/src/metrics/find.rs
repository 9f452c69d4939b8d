//! Groups of metrics by name: files, then what is built in.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::builtin;
use super::error::MetricsError;
use super::group::{FILE_BYTES_MAX, Group, NAME, is_name};

/// The two formats, by the ending of a file's name; of two files of one name the first counts.
const ENDINGS: [&str; 2] = ["toml", "txt"];

/// Where groups are looked for before those that are built in: `$XDG_CONFIG_HOME/perfmon/metrics`
/// (`~/.config/perfmon/metrics` if that is not set), then `/etc/perfmon/metrics`.
pub fn directories() -> Vec<PathBuf> {
    // There what is read last counts, here what is found first.
    let folders = crate::configuration_folders().into_iter().rev();
    folders.map(|folder| folder.join("metrics")).collect()
}

/// The group called `name`: from the first of the directories that has `<name>.toml` or `<name>.txt`,
/// or built in.
///
/// # Errors
/// [`MetricsError`] if there is none, with the nearest names; or if its file is wrong, or calls itself
/// something else.
pub fn find(name: &str, directories: &[PathBuf]) -> Result<Group, MetricsError> {
    if !is_name(name) {
        return Err(MetricsError::new("", format!("expected {NAME} for metrics, found '{name}'")));
    }
    for directory in directories {
        for ending in ENDINGS {
            let path = directory.join(format!("{name}.{ending}"));
            let Some(group) = load_if_any(&path)? else { continue };
            if group.name == name {
                return Ok(group);
            }
            let why = format!("expected '{name}', as the file is called, found '{}'", group.name);
            return Err(MetricsError::new(&path.display().to_string(), why).field("name"));
        }
    }
    builtin::find(name).ok_or_else(|| {
        let why = format!("there are no metrics called '{name}'");
        MetricsError::new("", why).near(crate::near::matches(name, names(directories)))
    })
}

/// The names of all groups that [`find`] would find, in order.
pub fn names(directories: &[PathBuf]) -> Vec<String> {
    let files = directories.iter().flat_map(|directory| crate::read::names_in(directory));
    let stems = files.filter_map(|file| {
        let (stem, ending) = file.rsplit_once('.')?;
        (ENDINGS.contains(&ending) && is_name(stem)).then(|| stem.to_owned())
    });
    let mut names: Vec<String> = stems.chain(builtin::names().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}

/// The group in a file; `None` if there is no such file.
pub(super) fn load_if_any(path: &Path) -> Result<Option<Group>, MetricsError> {
    let file = path.display().to_string();
    let read = match path.extension().and_then(|ending| ending.to_str()) {
        Some("toml") => Group::from_toml,
        Some("txt") => Group::from_likwid,
        _ => return Err(MetricsError::new(&file, "expected a name that ends in .toml or .txt")),
    };
    let bytes = match crate::read::bytes_and_one(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(path, &error) => return Ok(None),
        Err(error) => return Err(MetricsError::new(&file, format!("cannot read it: {error}"))),
    };
    let text = str::from_utf8(&bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        MetricsError::new(&file, "expected text in UTF-8").line(line)
    });
    // A file that is too long may be cut within a character.
    let text =
        if bytes.len() > FILE_BYTES_MAX { String::from_utf8_lossy(&bytes) } else { text?.into() };
    read(&text, &file).map(Some)
}

/// Whether there is no such file, as far as this user may know.
fn is_absent(path: &Path, error: &io::Error) -> bool {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => true,
        // A folder that can't be searched is somebody else's, as with `HOME` of another user.
        ErrorKind::PermissionDenied => path.metadata().is_err(),
        _ => false,
    }
}
