//! The compilers: Debian's rustc-web, whose LLVM is that of its package llvm-22.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::objects::versions_text;
use super::run::output_of;

pub(super) const TARGET: &str = "bpfel-unknown-none";

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Tools {
    rustc: PathBuf,
    llvm: PathBuf,
}

impl Tools {
    /// Finds them, and installs what is missing if told to.
    pub(super) fn find(may_install: bool) -> Result<Self, String> {
        let place = |variable: &str, default: &str| {
            std::env::var_os(variable).map_or_else(|| PathBuf::from(default), PathBuf::from)
        };
        let tools = Self {
            rustc: place("PERFMON_BPF_RUSTC", "/usr/bin/rustc"),
            llvm: place("PERFMON_BPF_LLVM", "/usr/lib/llvm-22/bin"),
        };
        let missing = tools.missing();
        if may_install && !missing.is_empty() {
            install(&missing.iter().map(|(package, _)| *package).collect::<Vec<_>>())?;
        }
        let missing = tools.missing();
        if missing.is_empty() {
            return Ok(tools);
        }
        let files: Vec<String> =
            missing.iter().map(|(_, file)| file.display().to_string()).collect();
        let packages: Vec<&str> = missing.iter().map(|(package, _)| *package).collect();
        Err(format!(
            "not found: {}; run apt-get install {}, or cargo xtask bpf --install as root, or say where \
             they are (cargo xtask bpf --help)",
            files.join(", "),
            packages.join(" ")
        ))
    }

    /// Debian's packages of what is not there, and the files.
    fn missing(&self) -> Vec<(&'static str, PathBuf)> {
        let needed = [
            ("rustc-web", self.rustc.clone()),
            ("libstd-rust-web-dev-bpf", self.core()),
            ("llvm-22", self.llvm.join("llc")),
            ("clang-22", self.llvm.join("clang")),
        ];
        needed.into_iter().filter(|(_, file)| !file.exists()).collect()
    }

    /// The directory of the target's `core`; a guess if the compiler can't be asked.
    fn core(&self) -> PathBuf {
        let mut ask = self.rustc();
        let answer = output_of(ask.args(["--print", "target-libdir", "--target", TARGET]));
        let guess = || Path::new("/usr/lib/rustlib").join(TARGET).join("lib");
        answer.map_or_else(|_| guess(), |text| PathBuf::from(text.trim_end()))
    }

    pub(super) fn rustc(&self) -> Command {
        let mut rustc = Command::new(&self.rustc);
        // The target and its assembly are no part of stable Rust.
        rustc.env("RUSTC_BOOTSTRAP", "1");
        rustc
    }

    /// A program of LLVM.
    pub(super) fn llvm(&self, name: &str) -> Command {
        Command::new(self.llvm.join(name))
    }

    /// What made the objects, as text: as much as decides on their bytes.
    pub(super) fn versions(&self) -> Result<String, String> {
        let rust = output_of(self.rustc().arg("-vV"))?;
        let llvm = output_of(self.llvm("opt").arg("--version"))?;
        let clang = output_of(self.llvm("clang").arg("--version"))?;
        let of_rust = |start: &str| rust.lines().find_map(|line| line.strip_prefix(start));
        let rust = format!(
            "{}, LLVM {}",
            of_rust("rustc ").unwrap_or("?"),
            of_rust("LLVM version: ").unwrap_or("?")
        );
        let llvm = llvm.lines().find(|line| line.contains("LLVM version")).unwrap_or("?");
        let clang = clang.lines().next().unwrap_or("?");
        Ok(versions_text(&[("clang", clang), ("llvm", llvm), ("rustc", &rust)]))
    }
}

/// Installs packages on the host, as root only.
fn install(packages: &[&str]) -> Result<(), String> {
    eprintln!("xtask: installing {}", packages.join(" "));
    let lock = ["-q", "-o", "DPkg::Lock::Timeout=300"];
    output_of(Command::new("apt-get").args(lock).arg("update"))?;
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(lock);
    command.args(["install", "-y", "--no-install-recommends"]).args(packages);
    output_of(&mut command).map(drop)
}
