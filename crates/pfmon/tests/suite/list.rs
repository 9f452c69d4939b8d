// guest rows: arm64-64bit, arm64-no-pmu
use std::process::Command;

use serde_json::{Value, json};

use crate::helper::{
    Directory, EXAMPLE, Running, ask, ask_on, can_count, check_schema, check_spoilt, skipped,
};
use crate::ordinary_user::{Ordinary, paranoid};

/// The events of a result: name, source, whether it opens.
fn events(result: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let rows = result["events"].as_array().unwrap().iter();
    rows.map(|row| {
        (row["name"].as_str().unwrap(), row["source"].as_str().unwrap(), row["opens"].as_str())
    })
    .collect()
}

/// Check the table of another machine's events: all words are searched for, in names and descriptions.
#[test]
fn events_of_another_machine() {
    let said = ask_on("zen3", &["list", "retired", "SSE"]);
    let expected = "\
amd_zen3 (descriptions): AMD Zen 3 core counters
  amd_zen3::RETIRED_MMX_FP_INSTRUCTIONS  -      x87, MMX, SSE and AVX instructions retired, not only arithmetic ones
  amd_zen3::RETIRED_SERIALIZING_OPS      -      Serialising floating-point ops retired
  amd_zen3::RETIRED_SSE_AVX_FLOPS        -      Floating-point operations of retired SSE and AVX instructions, up to 64 a cycle

3 events; these are another machine's files: nothing was tried
";
    assert_eq!((said.out.as_str(), said.status), (expected, 0), "{}", said.err);
    let said = ask_on("alder_lake", &["list", "--source", "sysfs", "-r", "^cpu_.*mem"]);
    let expected = "\
cpu_atom (sysfs)
  cpu_atom/mem-loads/  -      event=0xd0,umask=0x5,ldlat=3

cpu_core (sysfs)
  cpu_core/mem-loads/  -      event=0xcd,umask=0x1,ldlat=3

2 events; these are another machine's files: nothing was tried
";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected, "", 0));
}

/// Check this machine's table: whether an event opens, and why not.
#[test]
fn events_of_this_machine() {
    if !can_count("events_of_this_machine", "page-faults") {
        return;
    }
    let said = ask(["list", "--of", "software", "-r", "^(page-faults|dummy)$"]);
    let expected = "\
software (descriptions): The kernel's software events
  dummy, PERF_COUNT_SW_DUMMY                      no     Nothing: a placeholder that carries records such as \
mappings [this event counts nothing: it only carries samples, and always reads 0]
  page-faults, faults, PERF_COUNT_SW_PAGE_FAULTS  yes    Page faults

2 events: 1 opens, 1 not
";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected, "", 0));
    let untried = ask(["list", "--of", "software", "--try", "none", "-r", "^page-faults$"]);
    assert!(untried.out.ends_with("1 event: 0 open, 1 not tried (-)\n"), "{}", untried.out);
}

/// Check that hardware events of a machine without a PMU are there, with the reason.
#[test]
fn hardware_events_say_why_they_do_not_open() {
    if perfmon::has_core_pmu() {
        let name = "hardware_events_say_why_they_do_not_open";
        return skipped(name, "this machine has a core PMU");
    }
    let result = ask(["list", "--json", "--source", "generic", "-r", "^cycles$"]).json();
    assert_eq!(events(&result), [("cpu-cycles", "generic", Some("no"))]);
    let reason = "this machine has no PMU that counts it (ENOENT from perf_event_open); in a virtual machine, ask \
                  for a virtual PMU; software events and tracepoints work without";
    assert_eq!(result["events"][0]["reason"], reason);
}

/// Check that an ordinary user sees what opens in user mode only, and is not told so of what would read 0 there.
#[test]
fn an_ordinary_user_sees_user_mode() {
    let name = "an_ordinary_user_sees_user_mode";
    let Some(user) = Ordinary::new(name) else { return };
    if paranoid() < 2 {
        return skipped(name, "this machine lets ordinary users count in the kernel");
    }
    let pattern = "^(page-faults|context-switches|task-clock)$";
    let said = user.ask(&["list", "--json", "--of", "software", "-r", pattern]);
    let result = said.json();
    let expected = [
        ("context-switches", "descriptions", Some("no")),
        ("page-faults", "descriptions", Some("user")),
        ("task-clock", "descriptions", Some("yes")),
    ];
    assert_eq!(events(&result), expected);
    let reason = result["events"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("counting in the kernel needs privilege (EACCES"), "{reason}");
    check_schema("list", &result);
}

/// Check the unit masks, one a line.
#[test]
fn masks_have_lines() {
    let said = ask_on("zen3", &["list", "-m", "-r", "^RETIRED_SSE_AVX_FLOPS$"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "amd_zen3 (descriptions): AMD Zen 3 core counters");
    let masks: Vec<&str> = lines[2..].iter().map_while(|line| line.strip_prefix("    :")).collect();
    assert!(masks.iter().any(|mask| mask.starts_with("DIV_FLOPS  ")), "{masks:?}");
    let result = ask_on("zen3", &["list", "--json", "-r", "^RETIRED_SSE_AVX_FLOPS$"]).json();
    assert_eq!(result["events"][0]["masks"].as_array().unwrap().len(), masks.len());
}

/// Check that nothing found is status 1 with what may have been meant, and wrong options are 125.
#[test]
fn nothing_found() {
    let said = ask(["list", "--try", "none", "cylces"]);
    assert_eq!((said.out.as_str(), said.status), ("", 1));
    let expected = "pfmon: no event matches 'cylces'\ndid you mean 'cycles'?\n";
    assert!(said.err.ends_with(expected), "{}", said.err);
    let result = ask(["list", "--json", "--try", "none", "no such", "event"]);
    assert_eq!((result.json()["events"].clone(), result.status), (json!([]), 1));
    assert!(result.err.ends_with("no event matches 'no such' and 'event'\n"), "{}", result.err);
    let said = ask(["list", "--of", "amd_zen33", "no such"]);
    assert!(
        said.err.ends_with("no event of 'amd_zen33' matches 'no such'\ndid you mean 'amd_zen3'?\n"),
        "{}",
        said.err
    );
    let said = ask(["list", "-r", "("]);
    assert!(said.err.starts_with("pfmon: '(' is no regular expression: "), "{}", said.err);
    assert_eq!(said.status, 125);
    let said = ask(["list", "--source", "nowhere"]);
    let expected = "expected one of descriptions, sysfs, generic, tracefs, libpfm4, vendor";
    assert!(said.err.contains(expected) && said.status == 125, "{}", said.err);
    for option in ["--sysfs", "--tracefs", "--proc", "--event-files", "--pmu"] {
        let said = ask(["list", option, "/no/such/file"]);
        assert!(said.err.contains("/no/such/file: No such file"), "{option}: {}", said.err);
        assert_eq!((said.out.as_str(), said.status), ("", 125), "{option}");
    }
}

/// Check that names with control characters don't reach a terminal, on either output.
#[test]
fn control_characters_are_not_passed_on() {
    let directory = Directory::new("list-control");
    let events = directory.path("bus/event_source/devices/odd/events");
    std::fs::create_dir_all(&events).unwrap();
    std::fs::write(directory.path("bus/event_source/devices/odd/type"), "77\n").unwrap();
    std::fs::write(format!("{events}/a\u{1b}[2Jb"), "config=1\n").unwrap();
    let said = ask(["list", "--sysfs", &directory.path(""), "a\u{1b}"]);
    assert_eq!(
        said.out.lines().nth(1),
        Some("  odd/a\u{fffd}[2Jb/  -      config=1"),
        "{}",
        said.out
    );
    let said = ask(["list", "--sysfs", &directory.path(""), "\u{1b}x"]);
    assert_eq!(said.err.lines().last(), Some("pfmon: no event matches '\u{fffd}x'"));
}

/// Check that events of other machines are there if they are asked for, and not tried.
#[test]
fn events_of_all_machines() {
    let pattern = "^RETIRED_SSE_AVX_FLOPS$";
    let result = ask(["list", "--json", "--all", "--source", "descriptions", "-r", pattern]).json();
    let zen: Vec<&Value> =
        result["events"].as_array().unwrap().iter().filter(|it| it["elsewhere"] == true).collect();
    // Of a Zen, one of them is its own.
    assert_eq!(result["events"].as_array().unwrap().len(), 3, "{result}");
    assert!(zen.len() >= 2, "{result}");
    assert!(zen.iter().all(|it| it["opens"].is_null() && it["tried"] == false), "{result}");
    check_schema("list", &result);
}

/// Check that a description of the user's own is listed, and what the schema refuses.
#[test]
fn results_fit() {
    let result = ask(["list", "--json", "--pmu", EXAMPLE, "--of", "example"]).json();
    assert_eq!(result["events"][1]["name"], "example::EX_SMALL");
    assert_eq!(result["events"][1]["errata"], "None that is known");
    assert_eq!(result["events"][0]["also"], json!(["EX_PAGES"]));
    check_schema("list", &result);
    check_schema("list", &ask_on("alder_lake", &["list", "--json"]).json());
    for (pointer, value) in [
        ("/events/0/name", Value::Null),
        ("/events/0/opens", json!("perhaps")),
        ("/events/0/source", json!("elsewhere")),
        ("/events/0/masks", json!([1])),
    ] {
        check_spoilt("list", &result, pointer, value);
    }
    let refused = ask(["list", "--json", "--of", "software", "-r", "^dummy$"]).json();
    assert_eq!(refused["events"][0]["opens"], "no");
    check_spoilt("list", &refused, "/events/0/reason", Value::Null);
}

/// Check that a reader that goes away is no error, for each command.
#[test]
fn a_closed_pipe_is_no_error() {
    for args in ["list --try none", "explain page-faults:u", "fit task-clock", "pmu", "list --json"]
    {
        let script = format!("{{ {} {args}; echo $? >&2; }} | :", env!("CARGO_BIN_EXE_pfmon"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("XDG_CONFIG_HOME", "/nonexistent");
        let (text, status) = Running::spawn(command).end();
        // 1 where this user may not open the event.
        assert!(matches!(text.lines().last(), Some("0" | "1")) && status == 0, "{args}: {text}");
    }
}

/// Check events of vendors' files and of a tree of tracepoints: that they are listed, and what is wrong with a file.
#[test]
fn events_of_given_files() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../perfmon-events/tests/fixtures");
    let intel = format!("{fixtures}/vendor/intel");
    let args = ["list", "--source", "vendor", "--event-files", &intel, "retired", "instructions"];
    let said = ask_on("alder_lake", &args);
    let expected = "\
cpu_atom (vendor)
  INST_RETIRED.ANY  -      Instructions that retired.

cpu_core (vendor)
  INST_RETIRED.ANY  -      Instructions that retired.

2 events; these are another machine's files: nothing was tried
";
    assert_eq!((said.out.as_str(), said.status), (expected, 0), "{}", said.err);
    let tracefs = format!("{fixtures}/tracefs");
    let said =
        ask(["list", "--source", "tracefs", "--tracefs", &tracefs, "-r", "^s.*_(switch|write)$"]);
    let expected = "\
sched (tracefs)
  sched:sched_switch  -

syscalls (tracefs)
  syscalls:sys_enter_write  -

2 events; these are another machine's files: nothing was tried
";
    assert_eq!((said.out.as_str(), said.status), (expected, 0), "{}", said.err);
    let directory = Directory::new("event-files");
    let file = directory.path("events.json");
    std::fs::write(
        &file,
        r#"[{"EventName": "GOOD", "EventCode": "1"}, {"EventName": "BAD", "EventCode": "x"}]"#,
    )
    .unwrap();
    let said = ask_on("zen3", &["explain", "--json", "--event-files", &file, "GOOD"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let said = ask_on("zen3", &["list", "--event-files", &file, "--source", "vendor"]);
    assert!(said.out.starts_with("cpu (vendor)\n  GOOD  -\n"), "{}", said.out);
    assert!(
        said.err.contains("events.json: entry 2 'BAD': EventCode is 'x', not a number"),
        "{}",
        said.err
    );
}
