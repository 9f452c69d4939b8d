//! What the compiler does not check.

mod documents;
mod hygiene;
mod rows;
mod sizes;
mod unsafe_policy;
mod walk;

use crate::finding::Finding;
use crate::tree::Tree;
use crate::vm::declared;

/// All findings, by file and line.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = tree.broken().to_vec();
    findings.extend(sizes::check(tree));
    findings.extend(rows::check(tree));
    findings.extend(unsafe_policy::check(tree));
    findings.extend(walk::check(tree));
    findings.extend(hygiene::check(tree));
    findings.extend(documents::check(tree));
    findings.extend(declared::find(tree).1);
    findings.sort();
    findings
}

/// What a check finds in a tree, as it is printed.
#[cfg(test)]
fn found(check: impl Fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
    let tree = Tree::of(files);
    assert_eq!(tree.broken(), []);
    check(&tree).iter().map(ToString::to_string).collect()
}
