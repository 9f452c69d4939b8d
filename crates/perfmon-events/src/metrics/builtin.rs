//! The groups that come with perfmon: the files of the folder `metrics`.

use super::group::Group;

macro_rules! builtins {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../../metrics/", $name, ".toml")))),*]
    };
}

/// Name and text of each, by name.
const BUILTINS: [(&str, &str); 11] = builtins![
    "branches",
    "cache",
    "clock",
    "cpu",
    "faults",
    "frontend-backend",
    "ipc",
    "l1d",
    "llc",
    "switches",
    "tlb"
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}

pub(super) fn find(name: &str) -> Option<Group> {
    let (name, text) = BUILTINS.iter().find(|(known, _)| *known == name)?;
    let group = Group::from_toml(text, &format!("metrics/{name}.toml"));
    Some(group.expect("the files that are built in are read by a test"))
}
