//! What a guest's output says: which tests ran, failed, and were skipped.

use std::collections::BTreeMap;

use super::declared::TestFile;

/// Before the first and after the last line that a test file's run printed, with its number in the plan.
const BEGIN: &str = "@@ begin ";
const END: &str = "@@ end ";
/// The guest went through its whole plan.
const DONE: &str = "@@ done";

/// What one test file did in one guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileResult {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// Names with reasons, as the tests tell them.
    pub(crate) skipped: Vec<(String, String)>,
    /// What is wrong; empty if all passed.
    pub(crate) trouble: Option<String>,
    pub(crate) output: String,
}

/// What a guest's output says of each test file of its plan, by number in the plan; a file that it does not name did
/// not run. And whether the guest went through its plan.
pub(crate) fn read(output: &str) -> (BTreeMap<usize, FileResult>, bool) {
    let mut results = BTreeMap::new();
    let mut open: Option<(usize, String)> = None;
    let mut done = false;
    for line in output.lines() {
        if let Some(number) = line.strip_prefix(BEGIN) {
            close(&mut results, open.take(), None);
            open = number.trim().parse().ok().map(|number| (number, String::new()));
        } else if let Some(rest) = line.strip_prefix(END) {
            let status = rest.split_whitespace().nth(1).and_then(|status| status.parse().ok());
            close(&mut results, open.take(), status);
        } else if line.starts_with(DONE) {
            done = true;
        } else if let Some((_, text)) = &mut open {
            text.push_str(line);
            text.push('\n');
        }
    }
    close(&mut results, open, None);
    (results, done)
}

fn close(
    results: &mut BTreeMap<usize, FileResult>,
    open: Option<(usize, String)>,
    status: Option<i32>,
) {
    if let Some((number, text)) = open {
        results.insert(number, file_result(text, status));
    }
}

/// What the output of one test binary says, which ended with `status`.
fn file_result(output: String, status: Option<i32>) -> FileResult {
    let mut result = FileResult::default();
    let mut closing = false;
    for line in output.lines() {
        if let Some((_, told)) = line.split_once("skipped: ")
            && let Some((name, why)) = told.split_once(": ")
        {
            result.skipped.push((name.to_owned(), why.to_owned()));
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            closing = true;
            result.passed = count(counts, " passed");
            result.failed = count(counts, " failed");
        }
    }
    result.trouble = match status {
        None => Some("the guest ended within it".to_owned()),
        Some(0) if !closing => Some("it ended without a result".to_owned()),
        Some(0) if result.passed == 0 => Some("it ran no test".to_owned()),
        Some(0) => None,
        Some(_) if closing => Some(format!("{} failed", result.failed)),
        Some(status) => Some(format!("it ended with status {status} and no result")),
    };
    result.output = output;
    result
}

/// The number before `word` in "ok. 5 passed; 0 failed; …".
fn count(counts: &str, word: &str) -> u32 {
    let before = counts.split_once(word).map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The tests that were skipped in each guest in which they were to run: `results` are those of `file` in its guests.
pub(crate) fn never_ran(file: &TestFile, results: &[&FileResult]) -> Vec<String> {
    let Some((first, others)) = results.split_first() else { return Vec::new() };
    let is_skipped = |result: &&FileResult, name: &String| {
        result.skipped.iter().any(|(skipped, _)| skipped == name)
    };
    first
        .skipped
        .iter()
        .filter(|(name, _)| others.iter().all(|result| is_skipped(result, name)))
        .map(|(name, why)| {
            format!("{}: {name} was skipped in each guest in which it was to run: {why}", file.path)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSES: &str = "@@ begin 0\nrunning 2 tests\ntest a ... skipped: a: no luck\nok\ntest b ... ok\n\n\
        test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n@@ end 0 0\n";

    /// Check the counts, the skipped tests and the end of a run in which all passed.
    #[test]
    fn passing_run_is_read() {
        let (results, done) = read(&format!("{PASSES}@@ done\n"));
        assert!(done);
        let result = &results[&0];
        assert_eq!((result.passed, result.failed, result.trouble.as_deref()), (2, 0, None));
        assert_eq!(result.skipped, [("a".to_owned(), "no luck".to_owned())]);
        assert!(!read(PASSES).1);
    }

    /// Check that each way not to pass is trouble: a failure, a crash, an early end, no result, no test.
    #[test]
    fn trouble_is_named() {
        let trouble = |text: &str| read(text).0[&3].trouble.clone().unwrap();
        let result = |counts: &str| format!("test result: {counts}; 0 ignored");
        let failed =
            format!("@@ begin 3\n{}\n@@ end 3 101\n", result("FAILED. 1 passed; 2 failed"));
        assert_eq!(trouble(&failed), "2 failed");
        assert_eq!(trouble("@@ begin 3\n@@ end 3 139\n"), "it ended with status 139 and no result");
        assert_eq!(trouble("@@ begin 3\ntest a ... "), "the guest ended within it");
        assert_eq!(trouble("@@ begin 3\n@@ end 3 0\n"), "it ended without a result");
        let none = format!("@@ begin 3\n{}\n@@ end 3 0\n", result("ok. 0 passed; 0 failed"));
        assert_eq!(trouble(&none), "it ran no test");
    }

    /// Check that a test skipped in each of its guests is named, and one that ran in a guest is not.
    #[test]
    fn tests_that_never_ran_are_named() {
        let skips = |names: &[&str]| FileResult {
            skipped: names.iter().map(|&name| (name.to_owned(), "why".to_owned())).collect(),
            ..FileResult::default()
        };
        let file =
            TestFile { path: "f.rs".into(), root: "f.rs".into(), module: None, rows: Vec::new() };
        let (both, one) = (skips(&["a", "b"]), skips(&["b"]));
        let expected = ["f.rs: b was skipped in each guest in which it was to run: why"];
        assert_eq!(never_ran(&file, &[&both, &one]), expected);
        assert_eq!(never_ran(&file, &[&both, &FileResult::default()]), [""; 0]);
        assert_eq!(never_ran(&file, &[]), [""; 0]);
    }
}
