// guest rows: arm64-6.12, x86_64-6.1
use serde_json::{Value, json};

use crate::helper::{ask, check_schema, check_spoilt, skipped};
use crate::ordinary_user::{Ordinary, is_root, paranoid};

/// What an ability of `area` called `name` says.
fn ability<'r>(result: &'r Value, area: &str, name: &str) -> &'r Value {
    let all = result["abilities"].as_array().unwrap();
    let is_it = |it: &&Value| it["area"] == area && it["name"] == name;
    let mut found = all.iter().filter(is_it);
    let it = found.next().unwrap_or_else(|| panic!("{area}, {name}: {result}"));
    assert!(found.next().is_none(), "{name} twice");
    it
}

fn is_available(result: &Value, area: &str, name: &str) -> bool {
    ability(result, area, name)["available"].as_bool().unwrap()
}

/// Check that root may count everything that the machine has, and that the result fits the schema.
#[test]
fn root_may_count() {
    if !is_root() {
        return skipped("root_may_count", "not root");
    }
    let said = ask(["doctor", "--json"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let result = said.json();
    for name in ["own programs", "the kernel's part", "whole CPUs", "others' programs"] {
        assert!(is_available(&result, "perf events", name), "{name}: {result}");
    }
    assert_eq!(is_available(&result, "perf events", "core PMU"), perfmon::has_core_pmu());
    for pmu in ["uprobe", "kprobe"] {
        let exists = std::fs::exists(format!("/sys/bus/event_source/devices/{pmu}/type")).unwrap();
        assert_eq!(is_available(&result, "perf events", &format!("{pmu}s")), exists, "{pmu}");
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!((&result["kernel"], &result["uid"]), (&json!(release.trim()), &json!(0)));
    let own = ability(&result, "perf events", "own programs")["detail"].as_str().unwrap();
    assert!(own.starts_with(&format!("perf_event_paranoid is {}: ", paranoid())), "{own}");
    check_schema("doctor", &result);
    check_spoilt("doctor", &result, "/abilities/0/why", json!("none"));
    check_spoilt("doctor", &result, "/abilities/0/available", json!(false));
    check_spoilt("doctor", &result, "/abilities/0/area", json!("magic"));
}

/// Check that an ordinary user is told of each thing that needs privilege, with what to do.
#[test]
fn an_ordinary_user_is_told_what_to_change() {
    let name = "an_ordinary_user_is_told_what_to_change";
    let Some(user) = Ordinary::new(name) else { return };
    let said = user.ask(&["doctor", "--json"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let result = said.json();
    check_schema("doctor", &result);
    assert!(is_available(&result, "perf events", "own programs"), "{result}");
    let refused = |area: &str, name: &str| {
        let it = ability(&result, area, name);
        assert_eq!(it["available"], false, "{name}");
        (it["why"].as_str().unwrap().to_owned(), it["hint"].as_str().unwrap().to_owned())
    };
    if paranoid() == 2 {
        let (why, hint) = refused("perf events", "the kernel's part");
        assert_eq!(why, "counting in the kernel needs privilege (EACCES)");
        assert!(
            hint.contains("CAP_PERFMON") && hint.contains("perf_event_paranoid to 1"),
            "{hint}"
        );
        let (_, hint) = refused("perf events", "whole CPUs");
        assert!(hint.contains("perf_event_paranoid to 0"), "{hint}");
    }
    for name in ["programs", "typed tracepoints", "task storage", "task iterators"] {
        let (why, hint) = refused("eBPF", name);
        if is_available(&result, "eBPF", "type information") {
            assert!(why.starts_with("it needs CAP_BPF and CAP_PERFMON (EPERM from bpf("), "{why}");
            assert!(hint.contains("run as root, or give pfmon CAP_BPF and CAP_PERFMON"), "{hint}");
        }
    }
    assert_eq!(result["capabilities"], json!([]));
}

/// Check that the text says of everything that JSON has whether it is there, and once what to change.
#[test]
fn text_has_every_ability() {
    let (text, result) = (ask(["doctor"]), ask(["doctor", "--json"]).json());
    assert_eq!((text.status, text.err.as_str()), (0, ""));
    assert!(text.out.starts_with("Linux "), "{}", text.out);
    for it in result["abilities"].as_array().unwrap() {
        let name = it["name"].as_str().unwrap();
        let state = if it["available"] == true { "yes" } else { "no" };
        let is_row = |line: &str| {
            let rest = line.strip_prefix("  ").and_then(|line| line.strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with("  ") && rest.trim_start().starts_with(state))
        };
        assert!(text.out.lines().any(is_row), "{name} {state}: {}", text.out);
        if let Some(why) = it["why"].as_str() {
            assert!(text.out.contains(why), "{why}");
        }
    }
    assert!(text.out.contains("\nperf events\n") && text.out.contains("\neBPF\n"), "{}", text.out);
}
