//! Programs of the host, and what they say when they fail.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `command` wrote to standard output; what it wrote to standard error if it fails.
pub(super) fn output_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("{name} failed ({}): {}", output.status, last.join("; ")))
}

/// Where a program is in `PATH`.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

pub(super) fn read_text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| told("read", path, &error))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| told("write", path, &error))
}

pub(super) fn make_directory(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| told("make", path, &error))
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::rename(from, to).map_err(|error| told("rename", from, &error))
}

pub(super) fn told(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

/// A directory that is removed when dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A new and empty one in `parent`.
    pub(super) fn new(parent: &Path, name: &str) -> Result<Self, String> {
        let path = parent.join(format!("{name}.{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        make_directory(&path)?;
        Ok(Self(path))
    }

    /// Removes what runs that were killed left in `parent`.
    pub(super) fn sweep(parent: &Path) {
        let Ok(entries) = std::fs::read_dir(parent) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_number =
                |text: &OsStr| text.to_str().is_some_and(|it| it.parse::<u32>().is_ok());
            if path.is_dir() && path.extension().is_some_and(is_number) {
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files below `directory` for which `is_wanted` is true of the path.
pub(super) fn files_below(directory: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() && !path.is_symlink() {
            files.extend(files_below(&path, is_wanted));
        } else if is_wanted(&path) {
            files.push(path);
        }
    }
    files.sort();
    files
}
