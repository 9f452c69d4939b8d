//! Compilers that are run, and where their files go.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `command` wrote to standard output; if it fails, all it wrote to standard error. Warnings are shown.
pub(super) fn output_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    // Cargo sets the path of its own toolchain's libraries.
    command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{name} failed ({}):\n{}", output.status, said.trim_end()));
    }
    eprint!("{said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn told(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

/// A temporary directory that is removed when dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A new and empty one that only this user can read.
    pub(super) fn new(name: &str) -> Result<Self, String> {
        use std::os::unix::fs::DirBuilderExt;
        let parent = std::env::temp_dir();
        let path = parent.join(format!("{name}.{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        // It must not exist: a directory of somebody else's would be an invitation.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| told("make", &path, &error))?;
        Ok(Self(path))
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
