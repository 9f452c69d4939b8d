//! Documents name what there is: dependencies, crates, files.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::manifest::Dependency;
use crate::tree::Tree;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = unexplained_dependencies(tree);
    findings.extend(unmentioned_crates(tree));
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        findings.extend(dead_links(tree, path, text));
    }
    findings
}

/// Dependencies without a row in the architecture's table of dependencies, each where it is first used.
fn unexplained_dependencies(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(ARCHITECTURE).unwrap_or_default();
    let has_row = |row: &str| text.lines().any(|line| line.starts_with(row));
    let own: BTreeSet<&str> =
        tree.manifests().filter_map(|(_, manifest)| manifest.package.as_deref()).collect();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for (path, manifest) in tree.manifests() {
        for Dependency { name, line, .. } in &manifest.dependencies {
            let row = format!("| `{name}` |");
            if !own.contains(name.as_str()) && !has_row(&row) && seen.insert(name) {
                let what = format!("the dependency has no row in {ARCHITECTURE} that begins {row}");
                findings.push(Finding::new(path, *line, what));
            }
        }
    }
    findings
}

fn unmentioned_crates(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(ARCHITECTURE).unwrap_or_default();
    let mut findings = Vec::new();
    for (path, manifest) in tree.manifests() {
        let Some(name) = &manifest.package else { continue };
        if !text.contains(&format!("`{name}`")) {
            findings.push(Finding::new(path, 1, format!("{ARCHITECTURE} has no word on `{name}`")));
        }
    }
    findings
}

fn dead_links(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let is_dead = |target: &str| {
        let file = target.split(['#', '?']).next().unwrap_or_default();
        let is_outside = target.contains("://") || target.starts_with("mailto:");
        let exists = || resolve(directory, file).is_some_and(|path| tree.contains(&path));
        !is_outside && !file.is_empty() && !exists()
    };
    let dead = links(text).into_iter().filter(|(_, target)| is_dead(target));
    dead.map(|(line, target)| Finding::new(path, line, format!("dead link: {target}"))).collect()
}

/// The path from the root that `target` means in `directory`; `None` if it leads out of the tree.
fn resolve(directory: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The targets of a Markdown text's links with their lines, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            found.extend(links_in(&without_code(line)).map(|target| (number, target)));
        }
    }
    found
}

/// The line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The targets of `[text](target "title")` and `[label]: target` in a line.
fn links_in(line: &str) -> impl Iterator<Item = String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_definition = line.starts_with('[') && !line.starts_with("[^");
    let definition = line.split_once("]: ").filter(|_| is_definition).map(|(_, rest)| rest);
    let targets = inline.chain(definition).filter_map(|target| target.split_whitespace().next());
    targets
        .map(|target| target.trim_start_matches('<').trim_end_matches('>').to_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const MANIFEST: &str = "[package]\nname = \"perfmon\"\n[dependencies]\nlibc = \"0.2\"\n\
                            perfmon-core.workspace = true\n";
    const CORE: &str = "[package]\nname = \"perfmon-core\"\n";

    fn found_with(architecture: &str) -> Vec<String> {
        let files = [
            (ARCHITECTURE, architecture),
            ("crates/perfmon/Cargo.toml", MANIFEST),
            ("crates/perfmon-core/Cargo.toml", CORE),
        ];
        found(check, &files)
    }

    /// Check that a dependency needs a row of its own; a mention is not enough.
    #[test]
    fn dependency_without_row_is_found() {
        let crates = "`perfmon`, `perfmon-core`\n";
        assert_eq!(found_with(&format!("{crates}| `libc` | why |\n")), [""; 0]);
        let expected = "crates/perfmon/Cargo.toml:4: the dependency has no row in ARCHITECTURE.md that \
                        begins | `libc` |";
        assert_eq!(found_with(&format!("{crates}| `libc-extra` | why |\n`libc`\n")), [expected]);
    }

    /// Check that a crate must be mentioned by its whole name.
    #[test]
    fn unmentioned_crate_is_found() {
        let expected = "crates/perfmon/Cargo.toml:1: ARCHITECTURE.md has no word on `perfmon`";
        assert_eq!(found_with("`perfmon-core`\n| `libc` | why |\n"), [expected]);
    }

    /// Check that links to what is not there are found, from the root and from below.
    #[test]
    fn dead_link_is_found() {
        let top = "[a](docs/one.md#part) [b](docs/) [c](docs/two.md)\n\n[d]: three.md \"title\"\n";
        let below = "[a](../README.md), ![b](one.md), [c](../../out.md), [d](/README.md)\n";
        let files = [("README.md", top), ("docs/one.md", below)];
        let expected = [
            "README.md:1: dead link: docs/two.md",
            "README.md:3: dead link: three.md",
            "docs/one.md:1: dead link: ../../out.md",
            "docs/one.md:1: dead link: /README.md",
        ];
        assert_eq!(found(check, &files), expected);
    }

    /// Check that links elsewhere, links within a page, and code are left alone.
    #[test]
    fn other_links_are_left_alone() {
        let text = "[a](https://example.org/x) [b](#part) `[c](none.md)`\n```\n[d](none.md)\n```\n\
                    a[0]: none\n";
        assert_eq!(found(check, &[("README.md", text)]), [""; 0]);
    }
}
