//! Which files at a path are for the CPU: the kind of layout is told by what is there.

use std::path::{Path, PathBuf};

use perfmon_core::Refusal;

use super::load::{FILES_MAX, bytes};
use super::problems::Problems;
use super::{arm, map};
use crate::machine::CpuId;
use crate::read;

/// How deep, and at how many, folders below a folder without a map are looked.
const DEPTH_MAX: usize = 3;
const FOLDERS_MAX: usize = 4096;
const MAP: &str = "mapfile.csv";
/// The kernel's descriptions of groups of metrics.
const GROUPS: &str = "metricgroups.json";
/// The kernel's events of devices that are found by other means than the CPU.
const DEVICES: &str = "sys";

const GIVE_ONE: &str = "give the folder or the file of one CPU";

/// The files to read.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Each with the PMU of its events that name none.
    pub(super) files: Vec<(PathBuf, &'static str)>,
    /// Files of the architecture's events, to which the others may refer.
    pub(super) standard: Vec<PathBuf>,
}

/// What to read at `path` for `cpu`.
pub(super) fn plan(path: &Path, cpu: &CpuId, problems: &mut Problems) -> Result<Plan, Refusal> {
    let kind = std::fs::metadata(path).map_err(|error| read::refusal("stat", path, &error))?;
    if kind.is_file() {
        return Ok(Plan { files: vec![(path.to_owned(), "cpu")], standard: standard_above(path) });
    }
    if !kind.is_dir() {
        let why = format!("'{}' is neither a file nor a folder", path.display());
        return Err(Refusal::new(why));
    }
    if let Some(folder) = map_folder(path, cpu) {
        return by_map(&folder, cpu, problems);
    }
    if let Some(root) = arm_root(path) {
        return by_arm(&root, cpu, problems);
    }
    let mut files = Vec::new();
    files_below(path, DEPTH_MAX, &mut 0, &mut files);
    limit(&mut files, path, problems);
    if files.is_empty() {
        let why = format!("there are no files of events in '{}'", path.display());
        let hint = "a folder of Intel's or Arm's event files, the kernel's pmu-events, or *.json";
        return Err(Refusal::new(why).hint(format!("it may be {hint}")));
    }
    let files = files.into_iter().map(|file| (file, "cpu")).collect();
    Ok(Plan { files, standard: standard_above(path) })
}

/// The folder with the map for the CPU's architecture: the given one, or one of the kernel's below it.
fn map_folder(path: &Path, cpu: &CpuId) -> Option<PathBuf> {
    let arch = match cpu {
        CpuId::X86 { .. } => "x86",
        CpuId::Arm64 { .. } => "arm64",
        CpuId::Riscv { .. } => "riscv",
        CpuId::Unknown => "",
    };
    let places = [path.to_owned(), path.join(arch), path.join("arch").join(arch)];
    places.into_iter().find(|place| place.join(MAP).is_file())
}

fn by_map(folder: &Path, cpu: &CpuId, problems: &mut Problems) -> Result<Plan, Refusal> {
    let map = folder.join(MAP);
    let cannot = |why: String| Refusal::new(format!("cannot read '{}': {why}", map.display()));
    let text = String::from_utf8(bytes(&map).map_err(cannot)?);
    let text = text.map_err(|_| cannot("it is not UTF-8".to_owned()))?;
    let mut plan = Plan::default();
    for row in map::rows(&text, cpu, &map, problems) {
        let place = folder.join(&row.place);
        if place.is_dir() {
            plan.files.extend(files_in(&place).into_iter().map(|file| (file, row.pmu)));
            plan.standard = files_in(folder);
        } else if place.is_file() {
            plan.files.push((place, row.pmu));
        } else {
            problems.add(&map, format!("there is no '{}'", row.place));
        }
    }
    if plan.files.is_empty() {
        let written = map::written(cpu);
        let why = match problems.first() {
            None => format!("'{}' names no files for this CPU ({written})", map.display()),
            Some(why) => {
                format!("'{}' names no usable files for this CPU ({written}): {why}", map.display())
            }
        };
        return Err(Refusal::new(why).hint(GIVE_ONE));
    }
    limit(&mut plan.files, folder, problems);
    Ok(plan)
}

fn limit<F>(files: &mut Vec<F>, folder: &Path, problems: &mut Problems) {
    if files.len() > FILES_MAX {
        problems.add(folder, format!("only the first {FILES_MAX} files are read"));
        files.truncate(FILES_MAX);
    }
}

/// The root of Arm's repository, if it or its folder of events is given.
fn arm_root(path: &Path) -> Option<PathBuf> {
    let is_root = |root: &Path| root.join("cpus.json").is_file() && root.join("pmu").is_dir();
    if is_root(path) {
        return Some(path.to_owned());
    }
    let above = path.parent().filter(|_| path.file_name().is_some_and(|name| name == "pmu"))?;
    is_root(above).then(|| above.to_owned())
}

fn by_arm(root: &Path, cpu: &CpuId, problems: &mut Problems) -> Result<Plan, Refusal> {
    let file = match cpu {
        CpuId::Arm64 { midr } => arm::file(root, *midr, problems),
        _ => None,
    };
    let file = file.ok_or_else(|| {
        let written = map::written(cpu);
        let why = format!("'{}' has no file for this CPU ({written})", root.display());
        Refusal::new(why).hint(GIVE_ONE)
    })?;
    Ok(Plan { files: vec![(file, "cpu")], standard: Vec::new() })
}

/// The files of the architecture's events for a file or folder below the kernel's folder of the architecture.
fn standard_above(path: &Path) -> Vec<PathBuf> {
    let Ok(path) = path.canonicalize() else { return Vec::new() };
    let above = path.ancestors().skip(1).take(DEPTH_MAX).find(|above| above.join(MAP).is_file());
    above.map(files_in).unwrap_or_default()
}

/// The JSON files in a folder, in order of their names.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let is_of_events = |name: &String| name.ends_with(".json") && name != GROUPS;
    let names = read::names_in(folder).into_iter().filter(is_of_events);
    names.map(|name| folder.join(name)).filter(|file| file.is_file()).collect()
}

/// The JSON files in a folder and the ones below it; `looked` counts the folders.
fn files_below(folder: &Path, depth: usize, looked: &mut usize, found: &mut Vec<PathBuf>) {
    *looked += 1;
    found.extend(files_in(folder));
    for name in read::names_in(folder) {
        let below = folder.join(&name);
        let is_more = depth > 0 && *looked < FOLDERS_MAX && found.len() <= FILES_MAX;
        if is_more && name != DEVICES && below.is_dir() {
            files_below(&below, depth - 1, looked, found);
        }
    }
}
