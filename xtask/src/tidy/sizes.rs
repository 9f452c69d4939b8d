//! Files and functions fit a reader's head: tables are exempt.

use crate::finding::Finding;
use crate::syntax;
use crate::tree::{Tree, is_tests};

const FILE_LINES_MAX: usize = 499;
const FUNCTION_LINES_MAX: usize = 69;

/// Among a file's leading comments, says that it is a table.
const TABLE_MARKER: &str = "// tidy: table";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, file) in tree.sources() {
        let text = tree.text(path).unwrap_or_default();
        if is_table(text) {
            continue;
        }
        if !is_tests(path) {
            findings.extend(long_file(path, text, file));
        }
        findings.extend(long_functions(path, file));
    }
    findings
}

fn is_table(text: &str) -> bool {
    let is_leading = |line: &&str| line.is_empty() || line.starts_with("//");
    text.lines().take_while(is_leading).any(|line| line == TABLE_MARKER)
}

fn long_file(path: &str, text: &str, file: &syn::File) -> Option<Finding> {
    let tests: usize = syntax::test_lines(file).into_iter().map(Iterator::count).sum();
    let lines = text.lines().count() - tests;
    (lines > FILE_LINES_MAX).then(|| {
        let what =
            format!("{lines} lines without tests, at most {FILE_LINES_MAX}: split it by job");
        Finding::new(path, 1, what)
    })
}

fn long_functions(path: &str, file: &syn::File) -> Vec<Finding> {
    let long = |function: syntax::Function<'_>| {
        let first = *function.lines.start();
        let lines = function.lines.count();
        let what = format!("`{}` has {lines} lines, at most {FUNCTION_LINES_MAX}", function.name);
        (lines > FUNCTION_LINES_MAX).then(|| Finding::new(path, first, what))
    };
    syntax::functions(file).into_iter().filter_map(long).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    /// Check both sides of the limit of a function.
    #[test]
    fn long_function_is_found() {
        assert_eq!(found(check, &[("a.rs", &function_of(69))]), [""; 0]);
        let long = format!("\n{}", function_of(70));
        assert_eq!(found(check, &[("a.rs", &long)]), ["a.rs:2: `long` has 70 lines, at most 69"]);
    }

    /// Check both sides of the limit of a file, whose test module does not count.
    #[test]
    fn long_file_is_found() {
        let tests = "#[cfg(test)]\nmod tests {\n}\n";
        let fits = "const A: u8 = 0;\n".repeat(499) + tests;
        assert_eq!(found(check, &[("a.rs", &fits)]), [""; 0]);
        let long = format!("const A: u8 = 0;\n{fits}");
        let expected = "a.rs:1: 500 lines without tests, at most 499: split it by job";
        assert_eq!(found(check, &[("a.rs", &long)]), [expected]);
        assert_eq!(found(check, &[("crates/a/tests/a.rs", &long)]), [""; 0]);
    }

    /// Check that a marked table is exempt, and that the marker counts only at the top.
    #[test]
    fn tables_are_exempt() {
        let long = "const A: u8 = 0;\n".repeat(500) + &function_of(70);
        let table = format!("//! Rows.\n\n// tidy: table\n{long}");
        assert_eq!(found(check, &[("a.rs", &table)]), [""; 0]);
        let late = format!("{long}// tidy: table\n");
        assert_eq!(found(check, &[("a.rs", &late)]).len(), 2);
    }
}
