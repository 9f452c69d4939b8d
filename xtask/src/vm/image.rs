//! A guest's files: an initramfs of what all guests of an architecture share, and one of what is a row's own, which
//! the kernel unpacks one over the other.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::build::{Build, libraries, strip};
use super::cache::copy;
use super::rows::Arch;
use super::run::{Scratch, files_below, make_directory, told, write};

const INIT: &str = include_str!("init.sh");

/// What tests read beside their own binary, from the workspace's root.
const DATA: [&str; 4] = ["docs", "pmu", "metrics", "crates"];

/// Makes the initramfs of `build` at `target`: all files lie where they lie on the host, since that is where the
/// tests look for them.
pub(super) fn make_shared(
    arch: Arch,
    build: &Build,
    workspace: &Path,
    busybox: &Path,
    target: &Path,
) -> Result<(), String> {
    let scratch = Scratch::new(parent(target), &format!("root-{}", arch.debian()))?;
    let root = scratch.path();
    for directory in
        ["bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "var"]
    {
        make_directory(&root.join(directory))?;
    }
    copy(busybox, &root.join("bin/busybox"))?;
    let link = root.join("bin/sh");
    std::os::unix::fs::symlink("busybox", &link).map_err(|error| told("make", &link, &error))?;
    write(
        &root.join("etc/passwd"),
        "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    )?;
    write(&root.join("etc/group"), "root:x:0:\nnogroup:x:65534:\n")?;
    write_program(&root.join("init"), INIT)?;

    for test in &build.tests {
        make_directory(&within(root, &test.package))?;
    }
    let tests = build.tests.iter().map(|test| &test.path);
    for program in tests.chain(&build.programs) {
        let inside = within(root, program);
        make_directory(parent(&inside))?;
        strip(arch, program, &inside)?;
        if arch == Arch::X86_64 {
            for library in libraries(program)? {
                copy(&library, &within(root, &library))?;
            }
        }
    }
    for data in DATA {
        let is_wanted = |path: &Path| {
            data != "crates" || path.components().any(|part| part.as_os_str() == "fixtures")
        };
        for file in files_below(&workspace.join(data), &is_wanted) {
            copy(&file, &within(root, &file))?;
        }
    }
    pack(root, target, None)
}

/// Makes the initramfs of one row at `target`: `shared`, and over it what is in `root`.
pub(super) fn make_own(shared: &Path, root: &Path, target: &Path) -> Result<(), String> {
    pack(root, target, Some(shared))
}

/// Writes the file `first` and then an archive of `root` to `target`.
fn pack(root: &Path, target: &Path, first: Option<&Path>) -> Result<(), String> {
    let mut file = File::create(target).map_err(|error| told("make", target, &error))?;
    if let Some(path) = first {
        let mut from = File::open(path).map_err(|error| told("read", path, &error))?;
        std::io::copy(&mut from, &mut file).map_err(|error| told("write", target, &error))?;
    }
    let status = Command::new("sh")
        .args(["-c", "find . -print0 | cpio --null -o -H newc --quiet --owner=0:0"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(file)
        .status()
        .map_err(|error| format!("cannot run cpio: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cpio failed ({status})")) }
}

fn write_program(path: &Path, text: &str) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    write(path, text)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| told("change", path, &error))
}

/// Where the host's `path` lies below `root`.
fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
