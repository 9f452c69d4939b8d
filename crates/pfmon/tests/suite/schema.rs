use jsonschema::Validator;
use serde_json::{Value, json};

use crate::helper::{can_count, json as run_json, run, stat, workload};

fn schema() -> Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pfmon.stat-1.schema.json");
    let text = std::fs::read_to_string(path).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

fn check(schema: &Validator, result: &Value) {
    let errors: Vec<String> = schema
        .iter_errors(result)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{result}");
}

/// Check that real results fit the schema: all states, rows of CPUs and threads, repeats, notes, no command.
#[test]
fn results_fit() {
    let schema = schema();
    let events = "page-faults:u,task-clock,cycles,context-switches:u,{minor-faults:u,r1}";
    for args in [
        &["true"][..],
        &["-e", events, "true"],
        &["-e", events, "-r", "3", "true"],
        &["-e", events, "-a", "-A", "true"],
        &["-e", events, "-C", "0", "true"],
        &["-e", "page-faults:u", "-D", "60s", "true"],
        &["-i", "-e", "page-faults:u", "true"],
        &["--per-thread", "-e", "page-faults:u", workload(), "threads", "3", "1"],
        &["-p", &std::process::id().to_string(), "-e", "page-faults:u", "sleep", "0.05"],
        &["-e", "page-faults:u", "sh", "-c", "exit 0"],
        &["-g", "ipc", "-g", "cpu", "-g", "switches", "true"],
        &["-g", "cpu", "-r", "2", "true"],
    ] {
        check(&schema, &run_json(args));
    }
}

/// Check that each line of a run with intervals fits the schema.
#[test]
fn intervals_fit() {
    let schema = schema();
    let (text, _) =
        run(stat(["--json", "-I", "20", "-g", "cpu", "-e", "page-faults:u,cs:u", "sleep", "0.2"]));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 2, "{text}");
    lines.iter().for_each(|line| check(&schema, line));
    let (last, intervals) = lines.split_last().unwrap();
    assert_eq!(last["schema"], "pfmon.stat/1");
    assert!(intervals.iter().all(|line| line["schema"] == "pfmon.stat-interval/1"));
}

/// Check that a result may grow: unknown fields are no error.
#[test]
fn results_may_grow() {
    if !can_count("results_may_grow", "page-faults:u") {
        return;
    }
    let mut result = run_json(&["-e", "page-faults:u", "true"]);
    result["later"] = json!({"any": "thing"});
    result["events"][0]["later"] = json!(7);
    check(&schema(), &result);
}

/// Check that results that were spoilt, each in one place, no longer fit.
#[test]
fn spoilt_results_do_not_fit() {
    if !can_count("spoilt_results_do_not_fit", "page-faults:u") {
        return;
    }
    let schema = schema();
    let result = run_json(&["-r", "2", "-e", "page-faults:u,context-switches:u", "true"]);
    check(&schema, &result);
    for (pointer, value) in [
        ("/schema", json!("pfmon.stat/2")),
        ("/schema", json!("pfmon.stat-interval/1")),
        ("/wall_ns", json!(-1)),
        ("/wall_ns", json!(1.5)),
        ("/exit_status", json!(256)),
        ("/runs", json!(0)),
        ("/notes", Value::Null),
        ("/command", json!("true")),
        ("/events", json!({})),
        ("/events/0/state", json!("certain")),
        ("/events/0/value", Value::Null),
        ("/events/0/value", json!(-3)),
        ("/events/0/coverage", json!(1.01)),
        ("/events/0/unit", Value::Null),
        ("/events/0/repeats/stddev", json!("0")),
        // A number in place of no count.
        ("/events/1/value", json!(0)),
        ("/events/1/reason", Value::Null),
    ] {
        let mut spoilt = result.clone();
        *spoilt.pointer_mut(pointer).unwrap() = value.clone();
        assert!(!schema.is_valid(&spoilt), "{pointer} as {value}");
    }
}

/// Check that each field that the schema requires is missed when it is missing.
#[test]
fn missing_fields_are_missed() {
    let schema = schema();
    let result = run_json(&["-e", "page-faults:u", "true"]);
    let fields: Vec<String> = result.as_object().unwrap().keys().cloned().collect();
    for field in fields {
        let mut spoilt = result.clone();
        spoilt.as_object_mut().unwrap().remove(&field);
        assert!(!schema.is_valid(&spoilt), "without {field}");
    }
}
