use serde_json::{Value, json};

use crate::helper::{
    Directory, ask, can_count, json as run_json, leaves_records, run, stat, workload,
};

/// Events that this machine has, with formulas over them that have one answer each.
const GROUP: &str = r#"
format = 1
name = "known"
about = "Known answers"
together = [["faults", "again"]]
[events]
faults = "page-faults:u"
again = "page-faults:u"
[[metric]]
name = "one"
formula = "faults / again"
unit = "x"
[[metric]]
name = "quarter"
formula = "(faults + again) / (8 * faults)"
unit = "x"
[[metric]]
name = "by nothing"
formula = "faults / (faults - again)"
unit = "x"
"#;

/// `group` and `metric` with `state`, `value` and `unit`.
fn metrics(result: &Value) -> Vec<(&str, &str, &str, Option<f64>)> {
    let metrics = result["metrics"].as_array().unwrap().iter();
    metrics
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap();
            (text("group"), text("metric"), text("state"), row["value"].as_f64())
        })
        .collect()
}

/// Check formulas of a file over real counts: in JSON, for parts of a scope, and beside other events.
#[test]
fn formulas_are_over_counts() {
    if !can_count("formulas_are_over_counts", "page-faults:u") {
        return;
    }
    let directory = Directory::new("metrics");
    let file = directory.path("known.toml");
    std::fs::write(&file, GROUP).unwrap();
    let result = run_json(&["-g", &file, "-e", "context-switches:u,page-faults:u", "true"]);
    let expected = [
        ("known", "one", "exact", Some(1.0)),
        ("known", "quarter", "exact", Some(0.25)),
        ("known", "by nothing", "undefined", None),
    ];
    assert_eq!(metrics(&result), expected);
    assert_eq!(result["metrics"][2]["reason"], "'(faults - again)' is 0");
    assert_eq!(result["events"].as_array().unwrap().len(), 4);
    let repeated = run_json(&["-g", &file, "-r", "2", "true"]);
    let repeats = json!({ "mean": 1.0, "stddev": 0.0, "min": 1.0, "max": 1.0 });
    assert_eq!(repeated["metrics"][0]["repeats"], repeats);
    let threads = run_json(&["-g", &file, "--per-thread", workload(), "threads", "2", "1"]);
    let scopes: Vec<&str> = threads["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["scope"].as_str().unwrap())
        .collect();
    assert_eq!(scopes.len() % 3, 0, "{threads}");
    assert!(scopes.chunks(3).all(|of_thread| of_thread.iter().all(|it| *it == of_thread[0])));
    assert!(scopes.len() >= if leaves_records() { 9 } else { 3 }, "{threads}");
}

/// Check the table and CSV.
#[test]
fn metrics_are_shown() {
    if !can_count("metrics_are_shown", "page-faults:u") {
        return;
    }
    let directory = Directory::new("shown");
    let file = directory.path("known.toml");
    std::fs::write(&file, GROUP).unwrap();
    let (table, status) = run(stat(["-g", &file, "true"]));
    assert_eq!(status, 0, "{table}");
    for line in
        ["1.00000 x one", "0.250000 x quarter", "undefined x by nothing  '(faults - again)' is 0"]
    {
        assert!(table.contains(line), "{line}: {table}");
    }
    let (csv, _) = run(stat(["-g", &file, "--csv", "true"]));
    assert!(csv.contains("\nknown/quarter,,,exact,0.25,x,,,,,,,,,,,,\n"), "{csv}");
    let (csv, _) = run(stat(["-g", &file, "--csv", "-I", "60s", "true"]));
    let lines: Vec<&str> = csv.lines().filter(|line| line.contains("known/one,")).collect();
    assert_eq!(lines.len(), 2, "{csv}");
}

/// Check a group in LIKWID's syntax: what can't be had is refused by name, the rest is evaluated.
#[test]
fn likwid_groups_are_read() {
    if !can_count("likwid_groups_are_read", "page-faults:u") {
        return;
    }
    let directory = Directory::new("likwid");
    let file = directory.path("FAULTS.txt");
    let text = "SHORT Faults\n\nEVENTSET\nPMC0 page-faults\nPMC1 page-faults\n\nMETRICS\n\
                Ratio PMC0/PMC1\nClock [MHz] 1.E-06*PMC0*inverseClock\n\nLONG\nTwice the same\n";
    std::fs::write(&file, text).unwrap();
    let (text, status) = run(stat(["--json", "-g", &file, "true"]));
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 0, "{result}");
    assert_eq!(result["metrics"][0]["state"], "exact", "{result}");
    assert_eq!(result["metrics"][0]["value"], 1.0);
    assert_eq!(result["metrics"][1]["state"], "refused");
    assert!(result["metrics"][1]["reason"].as_str().unwrap().contains("inverseClock"), "{result}");
}

/// Check CPU time against wall time: of a command that keeps one CPU busy.
#[test]
fn built_in_groups_are_found() {
    let result =
        run_json(&["-g", "cpu", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
    let cpus = result["metrics"][0]["value"].as_f64().unwrap();
    let seconds = |field: &str| result[field].as_f64().unwrap() / 1e9;
    let expected = (seconds("user_ns") + seconds("system_ns")) / seconds("wall_ns");
    assert!((cpus - expected).abs() < 1e-6, "{result}");
    assert_eq!(result["metrics"][0]["metric"], "CPUs used");
}

/// Check what is said of groups that are not there, and of files that are wrong.
#[test]
fn wrong_groups_are_refused() {
    let said = ask(["stat", "-g", "faultz", "true"]);
    let there =
        "branches, cache, clock, cpu, faults, frontend-backend, ipc, l1d, llc, switches, tlb";
    let expected = format!(
        "pfmon: there are no metrics called 'faultz'\ndid you mean 'faults'?\nthere are: {there}; or write a file's path\n"
    );
    assert_eq!((said.err, said.status), (expected, 125));
    let directory = Directory::new("wrong-metrics");
    let file = directory.path("known.toml");
    std::fs::write(&file, GROUP.replace("faults / again", "faults / agian")).unwrap();
    let (text, status) = run(stat(["-g", &file, "true"]));
    assert_eq!(status, 125);
    assert!(
        text.contains("known.toml:11: metric 'one': formula: ") && text.contains("agian"),
        "{text}"
    );
    std::fs::write(&file, GROUP.replace("again = \"page-faults:u\"", "again = \"page-fault:u\""))
        .unwrap();
    let (text, status) = run(stat(["-g", &file, "true"]));
    assert_eq!(status, 125);
    assert!(text.contains("'page-faults'") && text.contains("known.toml"), "{text}");
    let (text, status) = run(stat(["-g", "/nonexistent.toml", "true"]));
    assert_eq!(status, 125);
    assert!(text.contains("/nonexistent.toml") && text.contains("no such file"), "{text}");
    let (text, status) = run(stat(["--across-groups", "true"]));
    assert_eq!(status, 125);
    assert!(text.contains("--group"), "{text}");
}
