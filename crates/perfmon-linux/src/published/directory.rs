//! Names of published contexts: a BPF file system that belongs to the publisher and ends with it, and a symbolic link by
//! name that leads there.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use perfmon_bpf::Errno;
use perfmon_core::Refusal;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where the links are.
const DIRECTORY: &str = "/run/perfmon";
const NAME_BYTES_MAX: usize = 64;

/// A BPF file system that is mounted nowhere: what is pinned in it lives as long as the descriptor, whatever ends the
/// process.
#[derive(Debug)]
pub(super) struct Mount(OwnedFd);

impl Mount {
    pub(super) fn new() -> Result<Self, Refusal> {
        let make = || {
            let context = fsopen("bpf", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(context.as_fd())?;
            fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        };
        make().map(Self).map_err(|errno: Errno| {
            Refusal::new(format!("can't make a BPF file system: {errno}"))
                .hint("run as root; `pfmon doctor` says what is missing")
        })
    }

    /// The path of `file` in it, for this process.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{file}", self.0.as_raw_fd()).into()
    }

    /// Its path for other processes.
    fn path_for_others(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

impl AsFd for Mount {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A link by name; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Name {
    path: PathBuf,
    target: PathBuf,
}

impl Name {
    /// Gives `mount` a name that no living publisher has.
    pub(super) fn new(name: &str, mount: &Mount) -> Result<Self, Refusal> {
        let path = path_of(name)?;
        let failed = |what: &str, error: std::io::Error| {
            Refusal::new(format!("can't {what} {}: {error}", path.display()))
                .hint("publishing takes root, and a /run that can be written")
        };
        std::fs::create_dir_all(DIRECTORY)
            .map_err(|error| failed("make the directory of", error))?;
        let target = mount.path_for_others();
        for _ in 0..2 {
            match std::os::unix::fs::symlink(&target, &path) {
                Ok(()) => return Ok(Self { path, target }),
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(failed("make", error));
                }
                Err(_) if is_stale(&path) => {
                    // Whoever else cleans up has done so.
                    let _ = std::fs::remove_file(&path);
                }
                Err(_) => break,
            }
        }
        Err(Refusal::new(format!("the name {name} is in use")).hint("choose another one"))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // Only our own: it may have been taken for stale and given to another.
        if std::fs::read_link(&self.path).is_ok_and(|target| target == self.target) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The path of a name's link.
pub(super) fn path_of(name: &str) -> Result<PathBuf, Refusal> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_name = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.bytes().all(allowed);
    if is_name {
        Ok(Path::new(DIRECTORY).join(name))
    } else {
        Err(Refusal::new(format!("'{name}' is no name for published contexts"))
            .hint("take up to 64 letters, digits, '-', '_' and '.'"))
    }
}

/// Where a link's publisher has its contexts.
pub(super) fn place_of(link: &Path) -> PathBuf {
    std::fs::read_link(link).unwrap_or_else(|_| link.into())
}

/// Whether contexts are no longer at a place (or link): their publisher has ended. Where that can't be seen it has not.
pub(super) fn is_gone(place: &Path) -> bool {
    match std::fs::symlink_metadata(place.join(super::CONTEXTS)) {
        Ok(_) => false,
        // ENOTDIR: the process or its descriptor is another one now.
        Err(error) => [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory]
            .contains(&error.kind()),
    }
}

/// Whether a link leads nowhere.
pub(super) fn is_stale(link: &Path) -> bool {
    is_gone(link) && link.symlink_metadata().is_ok()
}

/// The names of all living publishers' contexts. Those of dead ones are removed.
pub(super) fn names() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| {
            let stale = is_stale(&entry.path());
            if stale {
                // Without the right to, it stays.
                let _ = std::fs::remove_file(entry.path());
            }
            !stale
        })
        .filter_map(|entry| OsString::into_string(entry.file_name()).ok())
        .collect();
    names.sort_unstable();
    names
}
