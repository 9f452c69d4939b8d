//! Small files that the kernel writes, and why they can't be read.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use perfmon_core::Refusal;

/// Longest file that is read, in bytes. Files of sysfs end at one page; formats of tracepoints may be longer.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The text of a small file, without the white space around it.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// The bytes of a file: all, or the first `bytes_max` and one more.
pub(crate) fn bytes_and_one(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    // A pipe may have no end, or no beginning.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file of at most `bytes_max` bytes.
pub(crate) fn text_of_at_most(path: &Path, bytes_max: usize) -> io::Result<String> {
    let bytes = bytes_and_one(path, bytes_max)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("longer than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// The text of a small file; `None` if there is no such file.
pub(crate) fn text_if_any(path: &Path) -> Result<Option<String>, Refusal> {
    match text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refusal("open", path, &error)),
    }
}

/// The names in a directory; none if it can't be read.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Why `call` failed on `path`.
pub(crate) fn refusal(call: &'static str, path: &Path, error: &io::Error) -> Refusal {
    let cannot_read = |why: &str| Refusal::new(format!("cannot read '{}': {why}", path.display()));
    match error.kind() {
        ErrorKind::NotFound => cannot_read("there is no such file").errno(call, "ENOENT", 2),
        ErrorKind::PermissionDenied => cannot_read("permission denied").errno(call, "EACCES", 13),
        _ => cannot_read(&error.to_string()),
    }
}
