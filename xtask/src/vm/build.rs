//! The workspace's test binaries: the host's own, and cross-built for arm64 with Debian's packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::cache::Cache;
use super::rows::Arch;
use super::run::output_of;

/// The target of Rust's and of GCC's names.
const ARM64_TARGET: &str = "aarch64-unknown-linux-gnu";
const ARM64_GCC: &str = "aarch64-linux-gnu-gcc";
/// Debian's compiler, of which there is a standard library for arm64.
pub(super) const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// What was built.
#[derive(Debug, Default)]
pub(super) struct Build {
    pub(super) tests: Vec<TestBinary>,
    /// Programs and examples, which tests start.
    pub(super) programs: Vec<PathBuf>,
}

/// One test binary.
#[derive(Debug)]
pub(super) struct TestBinary {
    pub(super) path: PathBuf,
    /// The root of its source.
    pub(super) source: PathBuf,
    /// Its package's directory, in which Cargo starts it.
    pub(super) package: PathBuf,
}

/// Why there is no build.
#[derive(Debug)]
pub(super) enum NoBuild {
    /// The means to build are missing.
    Skipped(String),
    /// The workspace does not build.
    Failed(String),
}

/// Builds all tests of the workspace at `root` for `arch`.
pub(super) fn build(root: &Path, arch: Arch, cache: &Cache) -> Result<Build, NoBuild> {
    eprintln!("xtask: building the tests for {}", arch.debian());
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args([
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
        "--quiet",
    ]);
    command.args(["--workspace", "--exclude", "xtask"]);
    match arch {
        Arch::X86_64 => {}
        Arch::Arm64 => cross(&mut command, cache).map_err(NoBuild::Skipped)?,
    }
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| NoBuild::Skipped(format!("cannot run cargo: {error}")))?;
    if !output.status.success() {
        return Err(NoBuild::Failed(format!("the tests don't build for {}", arch.debian())));
    }
    Ok(read(&String::from_utf8_lossy(&output.stdout)))
}

/// Has `command`, Cargo's, build for arm64: static programs, of one size.
fn cross(command: &mut Command, cache: &Cache) -> Result<(), String> {
    let standard_library = cache.standard_library()?;
    let key = ARM64_TARGET.replace('-', "_").to_uppercase();
    let flags = format!("--sysroot={} -Ctarget-feature=+crt-static", standard_library.display());
    command.env("RUSTC", DEBIAN_RUSTC).env("CARGO_BUILD_TARGET", ARM64_TARGET);
    command.env(format!("CARGO_TARGET_{key}_LINKER"), ARM64_GCC);
    command.env(format!("CARGO_TARGET_{key}_RUSTFLAGS"), flags);
    command.env("CARGO_TARGET_DIR", cache.directory().join("target"));
    // Nobody debugs them.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    Ok(())
}

/// What Cargo's messages say of executables.
fn read(messages: &str) -> Build {
    let mut build = Build::default();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let Some(path) = text("/executable").map(PathBuf::from) else { continue };
        if message.pointer("/profile/test") != Some(&Value::Bool(true)) {
            build.programs.push(path);
        } else if let (Some(source), Some(manifest)) =
            (text("/target/src_path"), text("/manifest_path"))
        {
            let package = Path::new(manifest).parent().unwrap_or(Path::new("/")).to_path_buf();
            build.tests.push(TestBinary { path, source: source.into(), package });
        }
    }
    build
}

/// Copies `from` to `to` without what only a debugger needs.
pub(super) fn strip(arch: Arch, from: &Path, to: &Path) -> Result<(), String> {
    let strip = match arch {
        Arch::Arm64 => "aarch64-linux-gnu-strip",
        Arch::X86_64 => "strip",
    };
    output_of(Command::new(strip).arg("-g").arg("-o").arg(to).arg(from)).map(drop)
}

/// The libraries that a program of the host is linked to, at the paths where it looks for them.
pub(super) fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let text = output_of(Command::new("ldd").arg(program))?;
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that test binaries, programs and everything else of Cargo's messages are told apart.
    #[test]
    fn executables_are_told_apart() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/tests/suite/main.rs"},"profile":{"test":true},"executable":"/t/suite-1"}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/src/main.rs"},"profile":{"test":false},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/src/lib.rs"},"profile":{"test":false},"executable":null}
no json
{"reason":"build-finished","success":true}"#;
        let build = read(messages);
        assert_eq!(build.programs, [Path::new("/t/a")]);
        assert_eq!(build.tests.len(), 1);
        let test = &build.tests[0];
        assert_eq!(test.path, Path::new("/t/suite-1"));
        assert_eq!(test.source, Path::new("/w/a/tests/suite/main.rs"));
        assert_eq!(test.package, Path::new("/w/a"));
    }
}
