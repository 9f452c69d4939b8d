//! Small files of /proc and /sys.

use std::path::Path;

/// Most bytes taken of any such file: enough for all that are read here, whatever the file claims.
const LIMIT_BYTES: u64 = 1 << 20;

/// The text of `path`; `None` if it can't be read.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(LIMIT_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The number that `path` holds.
pub(crate) fn read_number(path: impl AsRef<Path>) -> Option<i64> {
    read(path)?.trim().parse().ok()
}
