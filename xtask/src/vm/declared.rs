//! Which tests run in which guests: each test file says it in a line of its own.

use super::rows::{self, Row};
use crate::finding::Finding;
use crate::tree::Tree;

/// Begins the line with which a test file says in which guests its tests run.
const MARK: &str = "// guest rows: ";

/// The tests of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestFile {
    /// Its path from the workspace's root.
    pub(crate) path: String,
    /// The root file of the test binary that it is part of, likewise.
    pub(crate) root: String,
    /// Its module in that binary; `None` for the binary as a whole.
    pub(crate) module: Option<String>,
    pub(crate) rows: Vec<&'static Row>,
}

/// The test files that say where they run, and the findings in what they say.
pub(crate) fn find(tree: &Tree) -> (Vec<TestFile>, Vec<Finding>) {
    let mut files = Vec::new();
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".rs")) {
        let lines = text.lines().enumerate();
        let marked = lines.filter_map(|(line, text)| Some((line + 1, text.strip_prefix(MARK)?)));
        for (line, words) in marked {
            match read(path, words, tree) {
                Ok(file) => files.push(file),
                Err(what) => findings.push(Finding::new(path, line, what)),
            }
        }
    }
    (files, findings)
}

fn read(path: &str, words: &str, tree: &Tree) -> Result<TestFile, String> {
    let (root, module) =
        binary_of(path, tree).ok_or("no test binary begins here or has this module")?;
    let mut rows: Vec<&'static Row> = Vec::new();
    for word in words.split(',').map(str::trim) {
        for row in rows::called(word)? {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    Ok(TestFile { path: path.to_owned(), root, module, rows })
}

/// The root file of the test binary that the file at `path` is part of, and its module there.
fn binary_of(path: &str, tree: &Tree) -> Option<(String, Option<String>)> {
    if path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs") {
        return Some((path.to_owned(), None));
    }
    let (package, inside) = path.split_once("/tests/")?;
    let stem = inside.strip_suffix(".rs")?;
    let Some((binary, module)) = stem.split_once('/') else {
        return Some((path.to_owned(), None));
    };
    let root = format!("{package}/tests/{binary}/main.rs");
    tree.text(&root)?;
    let module = (module != "main").then(|| module.trim_end_matches("/mod").replace('/', "::"));
    Some((root, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> (Vec<TestFile>, Vec<String>) {
        let (files, findings) = find(&Tree::of(files));
        (files, findings.iter().map(ToString::to_string).collect())
    }

    /// Check which binary and module a file's line stands for.
    #[test]
    fn lines_name_modules_of_binaries() {
        let (files, findings) = found(&[
            ("crates/a/src/lib.rs", "//! Doc.\n// guest rows: arm64-6.12\n"),
            ("crates/a/tests/one.rs", "// guest rows: x86_64-6.1\n"),
            ("crates/a/tests/suite/main.rs", ""),
            ("crates/a/tests/suite/pmu.rs", "// guest rows: exact, arm64-6.1, no-pmu\n"),
            ("crates/a/tests/suite/part/inner.rs", "// guest rows: 32-bit\n"),
        ]);
        assert_eq!(findings, [""; 0]);
        let told: Vec<_> = files
            .iter()
            .map(|file| (file.root.as_str(), file.module.as_deref(), file.rows.len()))
            .collect();
        let suite = "crates/a/tests/suite/main.rs";
        let expected = [
            ("crates/a/src/lib.rs", None, 1),
            ("crates/a/tests/one.rs", None, 1),
            (suite, Some("part::inner"), 3),
            (suite, Some("pmu"), 8),
        ];
        assert_eq!(told, expected);
    }

    /// Check that an unknown row, and a file of no test binary, are found.
    #[test]
    fn wrong_lines_are_found() {
        let (files, findings) = found(&[
            ("crates/a/tests/suite/pmu.rs", "// guest rows: exact\n"),
            ("crates/a/tests/two.rs", "\n// guest rows: exact, sparc\n"),
        ]);
        assert_eq!(files, []);
        let binary = "crates/a/tests/suite/pmu.rs:1: no test binary begins here or has this module";
        assert_eq!(findings[0], binary);
        assert!(
            findings[1].starts_with("crates/a/tests/two.rs:2: no guest is called 'sparc'"),
            "{findings:?}"
        );
    }
}
