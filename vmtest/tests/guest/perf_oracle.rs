// guest rows: arm64-6.1
//! The distribution's perf beside pfmon.

use std::process::{Command, Stdio};

use crate::helper::{Guest, exact_counts, number, of_loop, pfmon, program, repeated, skipped};

/// The counts and running shares (in percent) that `perf stat` gives.
fn perf(list: &str, work: &[&str]) -> Option<Vec<(u64, f64)>> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "-x;", "-e", list, "--", &program("perfmon-known")]).args(work);
    let output = perf.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stderr).unwrap();
    let rows = text.lines().map(|line| {
        let words: Vec<&str> = line.split(';').collect();
        (words[0].parse().unwrap(), words[4].parse().unwrap())
    });
    Some(rows.collect())
}

/// Check that the same loop is as many instructions to the unit for perf, alone, in a group and with descendants. (The
/// start of a program differs: it reads the environment, to which perf adds.)
#[test]
fn perf_counts_alike() {
    const NAME: &str = "perf_counts_alike";
    if Guest::exact(NAME).is_none() {
        return;
    }
    let known = program("perfmon-known");
    let cases: [(&str, &[&str]); 3] = [
        ("instructions:u", &["spin"]),
        ("{instructions:u,cycles:u}", &["spin"]),
        ("instructions:u,instructions:u", &["threads", "3"]),
    ];
    for (list, work) in cases {
        let of = |iterations| {
            let number = number(iterations);
            let work = [work, &[&number]].concat();
            let theirs: Option<Vec<u64>> =
                perf(list, &work).map(|rows| rows.into_iter().map(|(count, _)| count).collect());
            let ours = pfmon("stat", &[&["-e", list, "--", &known], &work[..]].concat());
            theirs.map(|theirs| (theirs, exact_counts(&ours)))
        };
        let (Some(short), Some(long)) = (of(1), of(1_000_001)) else {
            return skipped(NAME, "there is no perf");
        };
        let grown = |short: &[u64], long: &[u64]| -> Vec<u64> {
            short.iter().zip(long).map(|(short, long)| long - short).collect()
        };
        let (theirs, ours) = (grown(&short.0, &long.0), grown(&short.1, &long.1));
        assert_eq!(theirs, ours, "{list}");
        let loops = if work.len() == 1 { 1 } else { 1 + 2 + 3 };
        assert_eq!(ours[0], loops * of_loop(1_000_000));
    }
}

/// Check that perf estimates shared counters at the same share, and as large.
#[test]
fn perf_estimates_alike() {
    const NAME: &str = "perf_estimates_alike";
    if Guest::exact(NAME).is_none() {
        return;
    }
    let list = repeated("instructions:u", 12);
    let work = ["spin", "200000000"];
    let Some(theirs) = perf(&list, &work) else { return skipped(NAME, "there is no perf") };
    let known = program("perfmon-known");
    let ours = pfmon("stat", &[&["-e", &list, "--", &known], &work[..]].concat());
    assert_eq!(theirs.len(), 12);
    for (ours, (count, share)) in ours["events"].as_array().unwrap().iter().zip(theirs) {
        let value = ours["value"].as_u64().unwrap();
        assert!(value.abs_diff(count) <= count / 200, "{ours} and perf's {count}");
        let coverage = ours["coverage"].as_f64().unwrap();
        assert!((coverage - share / 100.0).abs() < 0.05, "{ours} and perf's {share} %");
    }
}
