//! `unsafe` lives in two crates; all others forbid it.

use crate::finding::Finding;
use crate::syntax::segments;
use crate::tree::{Tree, crate_of};

/// The system calls, and the C interface.
const MAY_BE_UNSAFE: [&str; 2] = ["perfmon-sys", "perfmon-capi"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, file) in tree.sources() {
        // Fuzz targets are neither; nor are the programs of bpf/, which the kernel's verifier proves safe.
        let Some(name) = crate_of(path).or_else(|| path.starts_with("xtask/").then_some("xtask"))
        else {
            continue;
        };
        let is_root = path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
        if is_root && !MAY_BE_UNSAFE.contains(&name) && !forbids_unsafe(file) {
            findings.push(Finding::new(path, 1, "needs #![forbid(unsafe_code)]"));
        }
    }
    findings
}

fn forbids_unsafe(file: &syn::File) -> bool {
    file.attrs.iter().any(|attribute| {
        attribute.path().is_ident("forbid")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|lint| segments(&lint) == ["unsafe_code"])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    /// Check that a crate root without the attribute is found, and that a comment is no attribute.
    #[test]
    fn missing_forbid_is_found() {
        let files = [
            ("crates/perfmon/src/lib.rs", "//! Doc.\n\n#![forbid(unsafe_code)]\n"),
            ("crates/perfmon/src/part.rs", ""),
            ("bpf/perfmon_bpf/lib.rs", ""),
            ("bpf/programs/count.rs", ""),
            ("crates/pfmon/src/main.rs", "// #![forbid(unsafe_code)]\n#![deny(unsafe_code)]\n"),
        ];
        let expected = "crates/pfmon/src/main.rs:1: needs #![forbid(unsafe_code)]";
        assert_eq!(found(check, &files), [expected]);
    }

    /// Check that the two crates that may contain `unsafe` are exempt.
    #[test]
    fn two_crates_are_exempt() {
        let files = [("crates/perfmon-sys/src/lib.rs", ""), ("crates/perfmon-capi/src/lib.rs", "")];
        assert_eq!(found(check, &files), [""; 0]);
    }
}
