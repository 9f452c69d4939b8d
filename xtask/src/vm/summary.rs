//! What all guests said, for people and for CI.

use std::collections::BTreeMap;

use super::SENTINEL;
use super::declared::TestFile;
use super::guest::Output;
use super::report::{self, FileResult};
use super::rows::{ROWS, Row};

/// So many lines of a guest's console tell why it did not come to its end.
const CONSOLE_LINES: usize = 40;

/// The tests that only guests run.
const GUEST_TESTS: &str = "vmtest/";

/// How one guest ended.
#[derive(Debug)]
pub(super) struct RowOutcome<'a> {
    pub(super) row: &'static Row,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    /// It could not be made.
    Skipped(String),
    Ran {
        kernel: String,
        files: Vec<&'a TestFile>,
        output: Output,
    },
}

/// All guests.
#[derive(Debug)]
pub(super) struct Summary<'a> {
    pub(super) files: &'a [TestFile],
    pub(super) outcomes: &'a [RowOutcome<'a>],
    /// Not all tests were to run.
    pub(super) is_part: bool,
    /// Only tests of such names were to run.
    pub(super) only: Option<&'a str>,
}

impl<'a> RowOutcome<'a> {
    pub(super) fn skipped(row: &'static Row, why: String) -> Self {
        Self { row, kind: Kind::Skipped(why) }
    }

    pub(super) fn ran(
        row: &'static Row,
        kernel: String,
        files: Vec<&'a TestFile>,
        output: Output,
    ) -> Self {
        Self { row, kind: Kind::Ran { kernel, files, output } }
    }

    /// Whether the guest ran a command to its end, with success.
    pub(super) fn ran_its_command(&self) -> bool {
        matches!(&self.kind, Kind::Ran { output, .. } if output.results.contains("\n@@ status 0\n")
            || output.results.starts_with("@@ status 0\n"))
    }

    /// Tells that it ended.
    pub(super) fn tell(&self) {
        match &self.kind {
            Kind::Skipped(why) => println!("skipped: guest {}: {why}", self.row.name),
            Kind::Ran { kernel, output, .. } => {
                let name = self.row.name;
                println!("== {name}: {kernel}, {:.0} s", output.took.as_secs_f64());
                let (results, done) = report::read(&output.results);
                if results.is_empty() {
                    let text = output.results.replace("@@ done\n", "");
                    print!("{text}");
                }
                if !done || output.trouble.is_some() {
                    let why = output.trouble.as_deref().unwrap_or("its init did not end");
                    println!("{name}: {why}");
                    let lines: Vec<&str> = output.console.lines().collect();
                    for line in lines.iter().skip(lines.len().saturating_sub(CONSOLE_LINES)) {
                        println!("{name}: console: {line}");
                    }
                }
                let troubled = results.values().filter(|result| result.trouble.is_some());
                for result in troubled {
                    println!("{}", result.output.trim_end());
                }
            }
        }
    }
}

/// What the guests said, put together.
#[derive(Debug, Default)]
struct Judgement<'a> {
    /// A line for each guest that ran.
    lines: Vec<String>,
    /// What is wrong.
    troubles: Vec<String>,
    passed: u32,
    /// Names and reasons of skipped tests, with the guests.
    skipped: BTreeMap<(String, String), Vec<&'static str>>,
    guests_skipped: Vec<(&'static str, &'a str)>,
    by_file: BTreeMap<&'a str, Vec<FileResult>>,
}

impl<'a> Summary<'a> {
    /// Prints what happened; true if nothing is wrong.
    pub(super) fn print(&self) -> bool {
        let judgement = self.judge(must_have_guests());
        println!();
        judgement.lines.iter().for_each(|line| println!("{line}"));
        println!();
        for ((name, why), rows) in &judgement.skipped {
            println!("skipped: {name}: {why} [{}]", rows.join(" "));
        }
        for (name, why) in &judgement.guests_skipped {
            println!("skipped: guest {name}: {why}");
        }
        for trouble in &judgement.troubles {
            println!("failed: {trouble}");
        }
        let skips = judgement.skipped.values().map(Vec::len).sum::<usize>()
            + judgement.guests_skipped.len();
        let (passed, failed) = (judgement.passed, judgement.troubles.len());
        println!("{passed} passed, {failed} failed, {skips} skipped");
        judgement.troubles.is_empty()
    }

    fn judge(&self, must_have_guests: bool) -> Judgement<'a> {
        let mut judgement = Judgement::default();
        for outcome in self.outcomes {
            match &outcome.kind {
                Kind::Skipped(why) => judgement.guests_skipped.push((outcome.row.name, why)),
                Kind::Ran { files, output, .. } => {
                    self.judge_guest(outcome.row, files, output, &mut judgement);
                }
            }
        }
        let skipped = judgement.guests_skipped.len();
        if !self.is_part && skipped == 0 {
            // Other tests run on the host, too.
            for file in self.files.iter().filter(|file| file.path.starts_with(GUEST_TESTS)) {
                let results: Vec<_> =
                    judgement.by_file.get(file.path.as_str()).into_iter().flatten().collect();
                judgement.troubles.extend(report::never_ran(file, &results));
            }
        }
        let ran = |file: &TestFile| judgement.by_file.contains_key(file.path.as_str());
        let has_match = self.files.iter().any(|file| file.path != SENTINEL && ran(file));
        if let Some(only) = self.only.filter(|_| !has_match && skipped < self.outcomes.len()) {
            judgement.troubles.push(format!(
                "no test of these guests has a name that matches '{only}'; see cargo xtask vm --list"
            ));
        }
        if skipped > 0 && must_have_guests {
            judgement.troubles.push(format!(
                "{skipped} guests could not be made (PERFMON_GUESTS=optional allows it)"
            ));
        }
        judgement
    }

    fn judge_guest(
        &self,
        row: &'static Row,
        files: &[&'a TestFile],
        output: &Output,
        judgement: &mut Judgement<'a>,
    ) {
        let name = row.name;
        let (mut results, done) = report::read(&output.results);
        let (mut passed, mut skipped) = (0, 0);
        let mut troubles = Vec::new();
        let is_as_it_should_be = results.get(&0).is_some_and(|result| result.trouble.is_none());
        if !done {
            let why = output.trouble.as_deref().unwrap_or("its init did not end");
            troubles.push(format!("{name}: {why}"));
        } else if !is_as_it_should_be {
            troubles.push(format!(
                "{name}: the guest is not what it should be, so nothing else means anything in it ({})",
                files.first().map_or("no sentinel", |file| file.path.as_str())
            ));
        }
        for (number, file) in files.iter().enumerate() {
            let Some(result) = results.remove(&number) else {
                if !self.is_part && done && is_as_it_should_be {
                    troubles.push(format!("{name}: {} did not run", file.path));
                }
                continue;
            };
            if let Some(why) = result.trouble.as_ref().filter(|_| is_as_it_should_be) {
                troubles.push(format!("{name}: {}: {why}", file.path));
            }
            let skips = u32::try_from(result.skipped.len()).unwrap_or(u32::MAX);
            passed += result.passed.saturating_sub(skips);
            skipped += skips;
            for skip in &result.skipped {
                judgement.skipped.entry(skip.clone()).or_default().push(name);
            }
            judgement.by_file.entry(file.path.as_str()).or_default().push(result);
        }
        judgement.passed += passed;
        let state = if troubles.is_empty() { "ok" } else { "FAILED" };
        let seconds = output.took.as_secs_f64();
        judgement.lines.push(format!(
            "{name:<14} {passed:>4} passed {skipped:>3} skipped {seconds:>5.0} s  {state}"
        ));
        judgement.troubles.extend(troubles);
    }
}

/// Whether a guest that can't be made is a failure.
fn must_have_guests() -> bool {
    let is_set = |name: &str| {
        std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
    };
    is_set("CI") && std::env::var("PERFMON_GUESTS").as_deref() != Ok("optional")
}

/// Prints the guests and which test files run in them.
pub(super) fn list(files: &[TestFile]) {
    for row in &ROWS {
        println!("{} ({})", row.name, row.tags.join(", "));
        for file in files.iter().filter(|file| file.rows.contains(&row)) {
            println!("    {}", file.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn file(path: &str) -> TestFile {
        TestFile { path: path.into(), root: path.into(), module: None, rows: vec![&ROWS[0]] }
    }

    fn ran(number: usize, result: &str, status: i32) -> String {
        format!("@@ begin {number}\ntest result: {result}; 0 ignored\n@@ end {number} {status}\n")
    }

    /// What is wrong with one guest of two files that printed `results`.
    fn troubles(results: &str, trouble: Option<&str>) -> Vec<String> {
        troubles_of(results, trouble, None)
    }

    fn troubles_of(results: &str, trouble: Option<&str>, only: Option<&str>) -> Vec<String> {
        let files = [file("vmtest/tests/guest/sentinel.rs"), file("crates/a/tests/one.rs")];
        let output = Output {
            results: results.to_owned(),
            console: String::new(),
            took: Duration::from_secs(1),
            trouble: trouble.map(str::to_owned),
        };
        let ran = RowOutcome::ran(&ROWS[0], "a kernel".into(), files.iter().collect(), output);
        let summary = Summary { files: &files, outcomes: &[ran], is_part: only.is_some(), only };
        summary.judge(true).troubles
    }

    /// Check that a pattern that no test's name matches is a failure, and that one which a test's matches is not.
    #[test]
    fn patterns_match_a_test() {
        let (first, second) =
            (ran(0, "ok. 3 passed; 0 failed", 0), ran(1, "ok. 1 passed; 0 failed", 0));
        let none = troubles_of(&format!("{first}@@ done\n"), None, Some("gropus"));
        let expected =
            "no test of these guests has a name that matches 'gropus'; see cargo xtask vm --list";
        assert_eq!(none, [expected]);
        let one = troubles_of(&format!("{first}{second}@@ done\n"), None, Some("groups"));
        assert_eq!(one, [""; 0]);
    }

    /// Check that a guest whose files all pass is fine, and one that lacks a file, or its end, is not.
    #[test]
    fn whole_plans_are_asked_for() {
        let (first, second) =
            (ran(0, "ok. 3 passed; 0 failed", 0), ran(1, "ok. 1 passed; 0 failed", 0));
        assert_eq!(troubles(&format!("{first}{second}@@ done\n"), None), [""; 0]);
        let missing = troubles(&format!("{first}@@ done\n"), None);
        assert_eq!(missing, ["arm64-6.1: crates/a/tests/one.rs did not run"]);
        let cut = troubles(&format!("{first}{second}"), Some("it did not end within 9 s"));
        assert_eq!(cut, ["arm64-6.1: it did not end within 9 s"]);
        let failed = ran(1, "FAILED. 1 passed; 2 failed", 101);
        let failed = troubles(&format!("{first}{failed}@@ done\n"), None);
        assert_eq!(failed, ["arm64-6.1: crates/a/tests/one.rs: 2 failed"]);
    }

    /// Check that a guest whose sentinel fails, or that has none, is the only thing said of that guest.
    #[test]
    fn failed_sentinel_is_all_there_is_to_say() {
        let expected = "arm64-6.1: the guest is not what it should be, so nothing else means anything in it \
                        (vmtest/tests/guest/sentinel.rs)";
        let failed = ran(0, "FAILED. 2 passed; 1 failed", 101);
        assert_eq!(troubles(&format!("{failed}@@ done\n"), None), [expected]);
        let second = ran(1, "FAILED. 0 passed; 1 failed", 101);
        assert_eq!(troubles(&format!("{second}@@ done\n"), None), [expected]);
    }

    /// Check that a guest that could not be made is a failure only where guests must be.
    #[test]
    fn skipped_guests_fail_where_they_must_not() {
        let outcomes = [RowOutcome::skipped(&ROWS[0], "no QEMU".into())];
        let summary = Summary { files: &[], outcomes: &outcomes, is_part: false, only: None };
        let judgement = summary.judge(false);
        assert_eq!(judgement.guests_skipped, [("arm64-6.1", "no QEMU")]);
        assert_eq!(judgement.troubles, [""; 0]);
        let expected = "1 guests could not be made (PERFMON_GUESTS=optional allows it)";
        assert_eq!(summary.judge(true).troubles, [expected]);
    }
}
