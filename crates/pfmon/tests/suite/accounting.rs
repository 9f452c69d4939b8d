//! `pfmon stat --accounting switch`: rows of threads and processes.

use serde_json::Value;

use crate::helper::{WRITES, ask, check_schema, run, skipped, stat, workload};

/// `pfmon stat --accounting switch --json` with `args`; nothing where programs in the kernel may not account.
fn accounted(name: &str, args: &[&str]) -> Option<Value> {
    let always = ["--accounting", "switch", "--json"];
    let (err, status) = run(stat(always.iter().chain(args)));
    let Ok(value) = serde_json::from_str(&err) else {
        let not_allowed = err.contains("CAP_BPF") || err.contains("CONFIG_DEBUG_INFO_BTF");
        assert!(not_allowed && status != 0, "{status} {err}");
        skipped(name, err);
        return None;
    };
    Some(value)
}

/// The rows of the only event: scope and value.
fn rows(result: &Value) -> Vec<(String, u64)> {
    let row = |row: &Value| Some((row["scope"].as_str()?.to_owned(), row["value"].as_u64()?));
    result["events"].as_array().unwrap().iter().map(|it| row(it).unwrap()).collect()
}

fn values(result: &Value) -> Vec<u64> {
    let mut values: Vec<u64> = rows(result).into_iter().map(|(_, value)| value).collect();
    values.sort_unstable();
    values
}

/// Check that each thread, or each process, has a row with its writes, and that there is no other.
#[test]
fn threads_and_processes_have_rows() {
    let name = "threads_and_processes_have_rows";
    let workload = workload();
    let args = ["--per-thread", "-e", WRITES, workload, "threads", "5", "7"];
    let Some(result) = accounted(name, &args) else { return };
    check_schema("stat", &result);
    assert_eq!(values(&result), [0, 7, 7, 7, 7, 7]);
    assert!(rows(&result).iter().all(|(scope, _)| scope.starts_with("tid:")), "{result}");
    let args = ["--per-process", "-e", WRITES, workload, "threads", "5", "7"];
    let result = accounted(name, &args).unwrap();
    assert_eq!(values(&result), [35]);
    assert!(rows(&result)[0].0.starts_with("pid:"), "{result}");
    assert_eq!(result["events"][0]["comm"], "workload");
    let args = ["--per-process", "-e", WRITES, workload, "forks", "4", "2"];
    assert_eq!(values(&accounted(name, &args).unwrap()), [0, 1, 1, 1, 1]);
}

/// Check that the whole system's rows are those of the tasks that ran, and that they and the rest are all there is.
#[test]
fn the_system_has_rows() {
    let name = "the_system_has_rows";
    let workload = workload();
    let args = ["-a", "--per-process", "-e", WRITES, workload, "writes", "1234"];
    let Some(result) = accounted(name, &args) else { return };
    assert_eq!(rows(&result).iter().filter(|(_, value)| *value == 1234).count(), 1, "{result}");
}

/// Check that options that don't go together are refused with what to do instead.
#[test]
fn options_that_exclude_each_other_are_refused() {
    for (args, why) in [
        (&["-a", "--per-thread"][..], "take --accounting switch"),
        (&["-A", "--accounting", "switch"], "exclude each other"),
        (&["--per-process", "--accounting", "kernel"], "take --accounting switch"),
        (&["--per-process", "-I", "10"], "leave out --interval"),
        (&["-C", "0", "--accounting", "switch"], "cannot be used with"),
    ] {
        let args = ["stat", "-e", "cs"].iter().chain(args).chain(&["true"]);
        let said = ask(args);
        assert!(said.status != 0 && said.err.contains(why), "{}", said.err);
    }
}
