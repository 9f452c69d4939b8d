//! What guests are made of, fetched once: kernels, busybox, the cross compiler's standard library, perf.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{Apt, file_named, host_release, installed};
use super::rows::Arch;
use super::run::{Scratch, files_below, make_directory, output_of, read_text, rename, told, write};

/// The folder of what is fetched and built, outside the workspace.
#[derive(Debug)]
pub(super) struct Cache {
    directory: PathBuf,
    /// Held while this runs, so that two runs don't fill it at once.
    _lock: File,
}

/// A kernel image.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    pub(super) package: String,
}

impl Cache {
    /// `PERFMON_VM_CACHE`, or `perfmon-vm` in the user's cache folder.
    pub(super) fn open() -> Result<Self, String> {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let directory = named("PERFMON_VM_CACHE")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(named("XDG_CACHE_HOME")?).join("perfmon-vm")))
            .or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache/perfmon-vm")))
            .ok_or("set PERFMON_VM_CACHE to a folder for kernels and builds: there is no HOME")?;
        make_directory(&directory)?;
        let path = directory.join("lock");
        let lock = File::create(&path).map_err(|error| told("make", &path, &error))?;
        if lock.try_lock().is_err() {
            eprintln!("xtask: waiting for another run, which uses {}", directory.display());
            lock.lock().map_err(|error| told("lock", &path, &error))?;
        }
        Scratch::sweep(&directory);
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kernel of a suite for virtual machines.
    pub(super) fn kernel(&self, arch: Arch, suite: &str) -> Result<Kernel, String> {
        let arch = arch.debian();
        let target = self.directory.join(format!("kernel-{arch}-{suite}"));
        if !target.is_dir() {
            let apt = Apt::open(&self.directory, suite, arch)?;
            let meta = format!("linux-image-cloud-{arch}");
            let package = apt.dependency(&meta, "linux-image-")?;
            let new = target.with_extension("parts");
            apt.unpack(std::slice::from_ref(&package), &new)?;
            if image_in(&new).is_none() {
                // Newer kernels come in parts.
                let part = apt.dependency(&package, "linux-binary-")?;
                apt.unpack(&[part], &new)?;
            }
            let image = image_in(&new).ok_or_else(|| format!("{package} has no kernel image"))?;
            rename(&image, &new.join("image"))?;
            let _ = std::fs::remove_dir_all(new.join("lib"));
            let _ = std::fs::remove_dir_all(new.join("usr"));
            write(&new.join("package"), &package)?;
            rename(&new, &target)?;
        }
        Ok(Kernel { image: target.join("image"), package: read_text(&target.join("package"))? })
    }

    /// A static busybox.
    pub(super) fn busybox(&self, arch: Arch) -> Result<PathBuf, String> {
        let arch = arch.debian();
        let target = self.directory.join(format!("busybox-{arch}"));
        if !target.is_dir() {
            let apt = Apt::open(&self.directory, &host_release()?, arch)?;
            apt.unpack(&["busybox-static".to_owned()], &target)?;
        }
        file_named(&target, "busybox").ok_or_else(|| "busybox-static has no busybox".to_owned())
    }

    /// The arm64 standard library of the host's `rustc-web`: of the same version, or its metadata does not fit.
    pub(super) fn standard_library(&self) -> Result<PathBuf, String> {
        let version = installed("rustc-web").ok_or("rustc-web is not installed")?;
        let target = self.directory.join(format!("std-{version}"));
        if !target.is_dir() {
            let apt = Apt::open(&self.directory, &host_release()?, "arm64")?;
            let package = format!("libstd-rust-web-dev={version}");
            apt.unpack(&[package], &target).map_err(|error| {
                format!("{error} (an update may reach the architectures at different times)")
            })?;
        }
        Ok(target.join("usr"))
    }

    /// The distribution's perf of a suite, with the libraries that it is linked to: a folder to be laid over the
    /// guest's root.
    pub(super) fn perf(&self, suite: &str) -> Result<PathBuf, String> {
        let target = self.directory.join(format!("perf-arm64-{suite}"));
        if !target.is_dir() {
            let apt = Apt::open(&self.directory, suite, "arm64")?;
            let parts = target.with_extension("parts");
            apt.unpack(&library_closure(&apt, "linux-perf")?, &parts)?;
            let new = target.with_extension("chosen");
            let _ = std::fs::remove_dir_all(&new);
            choose_perf(&parts, &new)?;
            let _ = std::fs::remove_dir_all(&parts);
            rename(&new, &target)?;
        }
        Ok(target)
    }
}

fn image_in(directory: &Path) -> Option<PathBuf> {
    let is_image = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinu"))
    };
    files_below(directory, &is_image).into_iter().next()
}

/// `package` and the libraries that it depends on, directly or not.
fn library_closure(apt: &Apt, package: &str) -> Result<Vec<String>, String> {
    let mut found = BTreeSet::from([package.to_owned()]);
    let mut open = vec![package.to_owned()];
    while let Some(package) = open.pop() {
        for name in apt.dependencies(&package)? {
            // Data of Python and Perl is not needed to load their libraries.
            let is_library =
                (name.starts_with("lib") || name == "zlib1g") && !name.ends_with("-stdlib");
            if is_library && !found.contains(&name) && apt.dependencies(&name).is_ok() {
                found.insert(name.clone());
                open.push(name);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Copies perf and the libraries that it needs from `parts` to `root`.
fn choose_perf(parts: &Path, root: &Path) -> Result<(), String> {
    let is_perf = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name == "perf" || name.starts_with("perf_"))
            && path.parent().is_some_and(|at| at.ends_with("bin"))
    };
    let mut perf = files_below(parts, &is_perf);
    // A script of this name may choose among several.
    perf.retain(|path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")));
    let perf = perf.pop().ok_or("linux-perf has no perf")?;
    copy(&perf, &root.join("usr/bin/perf"))?;
    let mut open = vec![perf];
    let mut done = BTreeSet::new();
    while let Some(file) = open.pop() {
        for library in needed_by(&file)? {
            if !done.insert(library.clone()) {
                continue;
            }
            let found = file_named(parts, &library)
                .ok_or_else(|| format!("{library} is in none of perf's packages"))?;
            copy(&found, &root.join("lib/aarch64-linux-gnu").join(&library))?;
            open.push(found);
        }
    }
    let loader = file_named(parts, "ld-linux-aarch64.so.1").ok_or("there is no libc6 for perf")?;
    copy(&loader, &root.join("lib/ld-linux-aarch64.so.1"))
}

/// The libraries that an ELF file names.
fn needed_by(file: &Path) -> Result<Vec<String>, String> {
    let text = output_of(Command::new("objdump").arg("-p").arg(file))?;
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// Copies what `from` is, or links to.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(parent) = to.parent() {
        make_directory(parent)?;
    }
    std::fs::copy(from, to).map(drop).map_err(|error| told("copy", from, &error))
}
