//! Arm's repository: `cpus.json` names CPUs, `pmu/NAME.json` holds the events of each.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::entry::parse;
use super::load::bytes;
use super::problems::Problems;
use crate::read;

#[derive(Deserialize)]
struct Cpus<'a> {
    #[serde(borrow)]
    cpus: Vec<Cpu<'a>>,
}

#[derive(Deserialize)]
struct Cpu<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    cpuid: Cow<'a, str>,
}

/// What a file of events says of its CPU.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    cpuid: Option<Cow<'a, str>>,
}

/// The file of events in the repository at `root` for the CPU whose main ID register is given.
pub(super) fn file(root: &Path, midr: u64, problems: &mut Problems) -> Option<PathBuf> {
    let id = (midr >> 24 & 0xff) << 12 | midr >> 4 & 0xfff;
    let named = named_file(root, id).unwrap_or_else(|why| {
        problems.add(&root.join("cpus.json"), why);
        None
    });
    named.or_else(|| file_of_cpu(root, id))
}

/// The file named as `cpus.json` names the CPU.
fn named_file(root: &Path, id: u64) -> Result<Option<PathBuf>, String> {
    let bytes = bytes(&root.join("cpus.json"))?;
    let cpus: Cpus<'_> = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let Some(cpu) = cpus.cpus.iter().find(|cpu| parse(&cpu.cpuid) == Some(id)) else {
        return Ok(None);
    };
    let is_fine = |char: char| char.is_ascii_alphanumeric() || " +-_".contains(char);
    if !cpu.name.chars().all(is_fine) {
        return Err(format!("'{}' is no name of a CPU", cpu.name));
    }
    let lower = cpu.name.to_ascii_lowercase();
    let files = ["-", "_"]
        .map(|space| root.join("pmu").join(format!("{}.json", lower.replace(' ', space))));
    Ok(files.into_iter().find(|file| file.is_file()))
}

/// The file that says of itself that it is for the CPU.
fn file_of_cpu(root: &Path, id: u64) -> Option<PathBuf> {
    let folder = root.join("pmu");
    let files = read::names_in(&folder).into_iter().filter(|name| name.ends_with(".json"));
    files.map(|name| folder.join(name)).find(|file| {
        let bytes = bytes(file).unwrap_or_default();
        let header: Option<Header<'_>> = serde_json::from_slice(&bytes).ok();
        let cpuid = header.and_then(|header| header.cpuid);
        cpuid.is_some_and(|cpuid| parse(&cpuid) == Some(id))
    })
}
