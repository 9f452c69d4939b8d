//! A crate uses only crates of rows below its own; its tests may also use those beside it.

use crate::finding::Finding;
use crate::manifest::{Dependency, Kind};
use crate::tree::{Tree, crate_of};

/// The crates, top row first.
const ROWS: [&[&str]; 7] = [
    &["pfmon", "perfmon-capi"],
    &["perfmon"],
    &["perfmon-linux", "perfmon-sim", "perfmon-report"],
    &["perfmon-events"],
    &["perfmon-bpf"],
    &["perfmon-sys", "perfmon-data"],
    &["perfmon-core"],
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, manifest) in tree.manifests() {
        let Some(directory) = crate_of(path) else { continue };
        if manifest.package.as_deref() != Some(directory) {
            let what = format!("the package in crates/{directory} must be called {directory}");
            findings.push(Finding::new(path, 1, what));
        }
        let Some(row) = row_of(directory) else {
            let what = format!("{directory} has no row; give it one in {}", file!());
            findings.push(Finding::new(path, 1, what));
            continue;
        };
        let upward = |dependency: &Dependency| {
            upward(directory, row, dependency).map(|what| Finding::new(path, dependency.line, what))
        };
        findings.extend(manifest.dependencies.iter().filter_map(upward));
    }
    findings
}

fn row_of(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}

fn upward(user: &str, row: usize, dependency: &Dependency) -> Option<String> {
    let used = &dependency.name;
    let used_row = row_of(used)?;
    match dependency.kind {
        Kind::Product if used_row <= row => {
            Some(format!("{user} may use only rows below its own, and {used} is not below it"))
        }
        Kind::Dev if used_row < row => Some(format!(
            "tests of {user} may use rows beside and below it, and {used} is above it"
        )),
        Kind::Product | Kind::Dev | Kind::Workspace => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn found_in(name: &str, tables: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{name}\"\n{tables}");
        found(check, &[(&format!("crates/{name}/Cargo.toml"), &text)])
    }

    /// Check that a crate may use what is below it and nothing of its own row or above.
    #[test]
    fn upward_dependency_is_found() {
        let below = "[dependencies]\nperfmon-core.workspace = true\nlibc.workspace = true\n";
        assert_eq!(found_in("perfmon-linux", below), [""; 0]);
        let beside = "[dependencies]\nperfmon-sim.workspace = true\n";
        let why = "may use only rows below its own, and perfmon-sim is not below it";
        let expected = format!("crates/perfmon-linux/Cargo.toml:4: perfmon-linux {why}");
        assert_eq!(found_in("perfmon-linux", beside), [expected]);
        assert_eq!(found_in("perfmon-core", beside).len(), 1);
    }

    /// Check that a build script is held to the same rule.
    #[test]
    fn build_dependency_is_held_to_the_rule() {
        let above = "[build-dependencies]\nperfmon.workspace = true\n";
        assert_eq!(found_in("perfmon-sys", above).len(), 1);
    }

    /// Check that tests may use what is beside, but not what is above.
    #[test]
    fn tests_may_use_what_is_beside() {
        let tests_use = |name| format!("[dev-dependencies]\n{name}.workspace = true\n");
        assert_eq!(found_in("perfmon-linux", &tests_use("perfmon-sim")), [""; 0]);
        let why = "may use rows beside and below it, and perfmon is above it";
        let expected = format!("crates/perfmon-linux/Cargo.toml:4: tests of perfmon-linux {why}");
        assert_eq!(found_in("perfmon-linux", &tests_use("perfmon")), [expected]);
    }

    /// Check that a crate without a row, and one in a directory of another name, are found.
    #[test]
    fn unknown_crate_is_found() {
        assert!(found_in("perfmon-extra", "")[0].contains("perfmon-extra has no row"));
        let files = [("crates/perfmon/Cargo.toml", "[package]\nname = \"perfmon2\"\n")];
        let expected =
            "crates/perfmon/Cargo.toml:1: the package in crates/perfmon must be called perfmon";
        assert_eq!(found(check, &files), [expected]);
    }

    /// Check that crates outside `crates/` are outside the rows.
    #[test]
    fn other_crates_are_outside() {
        let files = [("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n")];
        assert_eq!(found(check, &files), [""; 0]);
    }
}
