//! Debian packages of other architectures and suites: downloaded and unpacked into the cache, never installed.
//!
//! apt works on a state of its own there, so that the host's list of architectures and its package lists stay as
//! they are. The mirrors are those that the host's apt uses.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::run::{Scratch, files_below, make_directory, output_of, read_text, rename, write};

/// A suite's packages of one architecture.
#[derive(Debug)]
pub(super) struct Apt {
    state: Scratch,
    suite: String,
    arch: String,
}

impl Apt {
    /// Reads the package lists of `suite` for `arch`, by Debian's names, below `cache`.
    pub(super) fn open(cache: &Path, suite: &str, arch: &str) -> Result<Self, String> {
        eprintln!("xtask: reading the package lists of {suite} for {arch}");
        let state = Scratch::new(cache, &format!("apt-{suite}-{arch}"))?;
        for directory in ["lists/partial", "cache/archives/partial"] {
            make_directory(&state.path().join(directory))?;
        }
        write(&state.path().join("status"), "")?;
        write(&state.path().join("sources.list"), &sources(suite)?)?;
        write(&state.path().join("apt.conf"), &configuration(state.path(), suite, arch))?;
        let apt = Self { state, suite: suite.to_owned(), arch: arch.to_owned() };
        output_of(apt.command("apt-get").args(["-q", "update"]))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.state.path().join("apt.conf"));
        command.current_dir(self.state.path());
        command
    }

    /// Downloads `packages` (`NAME` or `NAME=VERSION`) and unpacks them as `target`, which appears when it is whole.
    pub(super) fn unpack(&self, packages: &[String], target: &Path) -> Result<(), String> {
        eprintln!("xtask: fetching {} for {}", packages.join(" "), self.arch);
        let down = Scratch::new(self.state.path(), "down")?;
        let mut download = self.command("apt-get");
        download.args(["-q", "download"]).args(packages).current_dir(down.path());
        output_of(&mut download)?;
        let new = target.with_extension("new");
        let _ = std::fs::remove_dir_all(&new);
        make_directory(&new)?;
        let is_package = |path: &Path| path.extension().is_some_and(|extension| extension == "deb");
        for package in files_below(down.path(), &is_package) {
            output_of(Command::new("dpkg-deb").arg("-x").arg(package).arg(&new))?;
        }
        let _ = std::fs::remove_dir_all(target);
        rename(&new, target)
    }

    /// What `package` depends on, in order; of alternatives all.
    pub(super) fn dependencies(&self, package: &str) -> Result<Vec<String>, String> {
        let mut show = self.command("apt-cache");
        let text = output_of(show.args(["--no-all-versions", "show", package]))?;
        let depends = text.lines().filter_map(|line| line.strip_prefix("Depends: "));
        let names = depends.flat_map(|line| line.split([',', '|']));
        Ok(names.filter_map(|name| name.split_whitespace().next()).map(str::to_owned).collect())
    }

    /// The package whose name begins with `prefix` among those that `package` depends on.
    pub(super) fn dependency(&self, package: &str, prefix: &str) -> Result<String, String> {
        let names = self.dependencies(package)?;
        names
            .into_iter()
            .find(|name| name.starts_with(prefix))
            .ok_or_else(|| format!("{package} of {} depends on no {prefix}…", self.suite))
    }
}

/// The release of the host, such as `bookworm`.
pub(super) fn host_release() -> Result<String, String> {
    let text = read_text(Path::new("/etc/os-release"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let is_debian = text.lines().any(|line| line == "ID=debian");
    match name {
        Some(name) if is_debian => Ok(name.trim_matches('"').to_owned()),
        _ => Err("guests are made of Debian's packages, and this machine is no Debian".to_owned()),
    }
}

/// `sources.list` for a suite; backports need the release that they are for.
fn sources(suite: &str) -> Result<String, String> {
    let release = host_release()?;
    let mut command = Command::new("apt-get");
    command.args([
        "indextargets",
        "--format",
        "$(ORIGIN) $(REPO_URI) $(CODENAME)",
        "Created-By: Packages",
    ]);
    let known = output_of(&mut command)?;
    let mirror = |codename: &str| {
        known.lines().find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            ["Debian", uri, name] if name == codename => Some(uri.to_owned()),
            _ => None,
        })
    };
    let main = mirror(&release).ok_or("apt knows no Debian mirror: run apt-get update")?;
    let keys =
        ["pgp", "gpg"].map(|kind| format!("/usr/share/keyrings/debian-archive-keyring.{kind}"));
    let key = keys.iter().find(|key| Path::new(key).exists());
    let options = key.map_or_else(String::new, |key| format!("[signed-by={key}] "));
    let base = suite.split('-').next().unwrap_or(suite);
    let mut lines = format!("deb {options}{main} {base} main\n");
    if let Some(security) = mirror(&format!("{release}-security")) {
        lines += &format!("deb {options}{security} {base}-security main\n");
    }
    if base != suite {
        lines += &format!("deb {options}{main} {suite} main\n");
    }
    Ok(lines)
}

fn configuration(state: &Path, suite: &str, arch: &str) -> String {
    let state = state.display();
    let mut text = format!(
        r#"APT::Architecture "{arch}";
APT::Architectures {{ "{arch}"; }};
APT::Update::Post-Invoke-Success "";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::State "{state}";
Dir::State::status "{state}/status";
Dir::State::lists "{state}/lists";
Dir::Cache "{state}/cache";
Dir::Etc::SourceList "{state}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
"#
    );
    if suite.ends_with("-backports") {
        // They rank low unless asked for.
        text += &format!("APT::Default-Release \"{suite}\";\n");
    }
    text
}

/// Installs what is missing of `packages` on the host, as root only.
pub(super) fn install(packages: &[&str]) -> Result<(), String> {
    eprintln!("xtask: installing {}", packages.join(" "));
    let lock = ["-q", "-o", "DPkg::Lock::Timeout=300"];
    output_of(Command::new("apt-get").args(lock).arg("update"))?;
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(lock);
    command.args(["install", "-y", "--no-install-recommends"]).args(packages);
    output_of(&mut command).map(drop)
}

/// The version of a package that is installed on the host.
pub(super) fn installed(package: &str) -> Option<String> {
    let mut query = Command::new("dpkg-query");
    let text =
        output_of(query.args(["-W", "-f", "${db:Status-Abbrev} ${Version}", package])).ok()?;
    text.strip_prefix("ii  ").map(|version| version.trim().to_owned())
}

/// A file of an unpacked package by its name, wherever in it.
pub(super) fn file_named(directory: &Path, name: &str) -> Option<PathBuf> {
    let has_name = |path: &Path| path.file_name().is_some_and(|file| file == name);
    files_below(directory, &has_name).into_iter().next()
}
