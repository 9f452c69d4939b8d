//! What the host must have to make guests.

use std::path::Path;

use super::build::DEBIAN_RUSTC;
use super::packages::{host_release, install, installed};
use super::rows::Arch;
use super::run::program;

/// Programs of the host with the packages that have them.
fn needed(arch: Arch) -> &'static [(&'static str, &'static str)] {
    match arch {
        Arch::Arm64 => &[
            ("cpio", "cpio"),
            ("objdump", "binutils"),
            ("qemu-system-aarch64", "qemu-system-arm"),
            ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
            ("", "libc6-dev-arm64-cross"),
            (DEBIAN_RUSTC, "rustc-web"),
        ],
        Arch::X86_64 => {
            &[("cpio", "cpio"), ("strip", "binutils"), ("qemu-system-x86_64", "qemu-system-x86")]
        }
    }
}

/// Finds what guests of `arch` need, or installs it if told to.
pub(super) fn prepare(arch: Arch, may_install: bool) -> Result<(), String> {
    host_release()?;
    let missing = missing(arch);
    if !missing.is_empty() {
        if !may_install {
            return Err(format!(
                "not installed: {0}; run apt-get install {0}, or cargo xtask vm --install as root",
                missing.join(" ")
            ));
        }
        install(&missing)?;
    }
    if arch == Arch::X86_64 && !cfg!(target_arch = "x86_64") {
        return Err(
            "guests of x86_64 run the host's own tests, and this host is no x86_64".to_owned()
        );
    }
    Ok(())
}

fn missing(arch: Arch) -> Vec<&'static str> {
    let is_there = |name: &str, package: &str| match name {
        "" => installed(package).is_some(),
        path if path.starts_with('/') => Path::new(path).exists() && installed(package).is_some(),
        name => program(name).is_some(),
    };
    let mut packages: Vec<&str> = Vec::new();
    for (name, package) in needed(arch) {
        if !is_there(name, package) {
            packages.push(package);
        }
    }
    packages
}
