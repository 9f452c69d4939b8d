use serde_json::{Value, json};

use crate::helper::{EXAMPLE, ask, ask_on, can_count, check_schema, check_spoilt, skipped};
use crate::ordinary_user::{Ordinary, paranoid};

/// Check all that is said of an event of this machine.
#[test]
fn an_event_of_this_machine() {
    if !can_count("an_event_of_this_machine", "page-faults") {
        return;
    }
    let said = ask(["explain", "page-faults"]);
    let expected = "\
page-faults
  asked         descriptions  yes  software (built in)
  counts        Page faults
  fields        id 0x2
  PMU           software
  unit          events
  kernel gets   type 1 (software)
                config 0x2
                read_format 0xb
                disabled 1
                size 136, all else 0
  tried         on a thread: yes
  opens         yes
";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected, "", 0));
}

/// Check modifiers, a group's among them, in what the kernel gets.
#[test]
fn modifiers_reach_the_kernel() {
    if !can_count("modifiers_reach_the_kernel", "{page-faults:u,minor-faults:u}") {
        return;
    }
    let result = ask(["explain", "--json", "{page-faults,minor-faults:D}:u,task-clock"]);
    // Only the first of a group may be pinned.
    assert_eq!(result.status, 1);
    let result = ask(["explain", "--json", "{page-faults,minor-faults}:uD,task-clock"]);
    assert_eq!(result.status, 0, "{}", result.out);
    let result = result.json();
    let events = &result["strings"][0]["events"];
    let row = |place: usize| {
        let attr = &events[place]["attr"];
        let names = ["pinned", "exclude_user", "exclude_kernel", "exclude_hv", "exclude_idle"];
        (events[place]["event"].as_str().unwrap(), names.map(|name| attr[name].as_bool().unwrap()))
    };
    assert_eq!(row(0), ("page-faults:uD", [true, false, true, true, false]));
    assert_eq!(row(1), ("minor-faults:u", [false, false, true, true, false]));
    // The clocks ignore it, and are so open to everybody.
    assert_eq!(row(2), ("task-clock", [false, false, true, true, false]));
    assert_eq!((&events[0]["group"], &events[2]["group"]), (&json!(0), &Value::Null));
    assert_eq!((&events[1]["item"], &events[2]["unit"]), (&json!(1), &json!("ns")));
    let tries: Vec<_> = events[1]["tries"].as_array().unwrap().iter().collect();
    assert_eq!(
        (tries[0]["what"].as_str(), &tries[0]["opens"]),
        (Some("on a thread"), &json!(true))
    );
    assert_eq!(
        (tries[1]["what"].as_str(), &tries[1]["opens"]),
        (Some("in its group"), &json!(true))
    );
    check_schema("explain", &result);
}

/// Check an event of another machine's description: masks, fields, registers.
#[test]
fn registers_of_another_machine() {
    let said = ask_on("zen3", &["explain", "REQUESTS_TO_L2_GROUP1:RD_BLK_X:u"]);
    let expected = "\
REQUESTS_TO_L2_GROUP1:RD_BLK_X:u
  asked         descriptions  yes  amd_zen3 1.0 (built in)
  counts        Requests to the L2 cache, the usual kinds
  unit masks    RD_BLK_X: data stores
  fields        event 0x60, umask 0x40
  registers     PERF_CTL0 = 0x514060 counts in PERF_CTR0
                PERF_CTL1 = 0x514060 counts in PERF_CTR1
                PERF_CTL2 = 0x514060 counts in PERF_CTR2
                PERF_CTL3 = 0x514060 counts in PERF_CTR3
                PERF_CTL4 = 0x514060 counts in PERF_CTR4
                PERF_CTL5 = 0x514060 counts in PERF_CTR5
  PMU           cpu
  unit          events
  kernel gets   type 4 (cpu)
                config 0x4060
                read_format 0xb
                exclude_kernel 1
                exclude_hv 1
                disabled 1
                size 136, all else 0
  opens         these are another machine's files: nothing was tried
";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected, "", 0));
}

/// Check that a name which means several core types is shown once for each, with the type in its config.
#[test]
fn core_types_are_shown() {
    let said = ask_on("alder_lake", &["explain", "cycles"]);
    let expected = "\
cpu_atom/cycles/
  typed         cycles
  asked         descriptions  no   'cycles' is a generic event, and no description may name one
                generic       yes  perf_event_attr type 0, config 0x0
  PMU           cpu_atom, CPUs 8-15
  unit          events
  kernel gets   type 0 (hardware)
                config 0xa00000000 (on cpu_atom)
                read_format 0xb
                disabled 1
                size 136, all else 0
  opens         these are another machine's files: nothing was tried

cpu_core/cycles/
  typed         cycles
  PMU           cpu_core, CPUs 0-7
  unit          events
  kernel gets   type 0 (hardware)
                config 0x400000000 (on cpu_core)
                read_format 0xb
                disabled 1
                size 136, all else 0
  opens         these are another machine's files: nothing was tried
";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected, "", 0));
    let result = ask_on("alder_lake", &["explain", "--json", "uncore_imc/data_reads/"]).json();
    let events = result["strings"][0]["events"].as_array().unwrap();
    let rows: Vec<_> =
        events.iter().map(|it| (it["event"].as_str(), &it["attr"]["type"])).collect();
    let expected = [
        (Some("uncore_imc_0/data_reads/"), &json!(20)),
        (Some("uncore_imc_1/data_reads/"), &json!(21)),
        (Some("uncore_imc_10/data_reads/"), &json!(30)),
    ];
    assert_eq!(rows, expected);
    assert_eq!((&events[0]["unit"], &events[0]["scale"]), (&json!("MiB"), &json!(6.103515625e-5)));
    assert_eq!(events[0]["cpus"], json!([0]));
    check_schema("explain", &result);
}

/// Check that an event of another machine's description is refused, and an event that always reads 0.
#[test]
fn refusals_are_shown() {
    let said = ask_on("zen3", &["explain", "amd_zen4::RETIRED_INSTRUCTIONS"]);
    assert_eq!(said.status, 1);
    let expected = "  refused       'amd_zen4' describes another machine: AMD Zen 4 core counters; this machine's CPU is \
                    AuthenticAMD family 0x19 model 0x1 stepping 1\n  opens         no: it is refused\n";
    assert!(said.out.ends_with(expected), "{}", said.out);
    let said = ask(["explain", "--json", "context-switches:u"]);
    assert_eq!(said.status, 1);
    let result = said.json();
    let event = &result["strings"][0]["events"][0];
    let why = "this event happens in the kernel: without 'k' it always reads 0";
    assert_eq!((&event["refusal"]["why"], &event["refusal"]["errno"]), (&json!(why), &Value::Null));
    assert_eq!((&event["attr"], &event["opens"]), (&Value::Null, &Value::Null));
    check_schema("explain", &result);
}

/// Check that the kernel's answer is shown with its errno.
#[test]
fn errnos_are_shown() {
    if perfmon::has_core_pmu() {
        return skipped("errnos_are_shown", "this machine has a core PMU");
    }
    let said = ask(["explain", "--json", "cycles:u", "{task-clock,instructions:u}"]);
    assert_eq!(said.status, 1);
    let result = said.json();
    let refusal = &result["strings"][0]["events"][0]["tries"][0]["refusal"];
    assert_eq!((&refusal["errno"], &refusal["errno_name"]), (&json!(2), &json!("ENOENT")));
    assert_eq!(refusal["why"], "this machine has no PMU that counts it");
    let member = &result["strings"][1]["events"][0];
    assert_eq!(
        (&member["opens"], &member["tries"][1]["what"]),
        (&json!("no"), &json!("in its group"))
    );
    let why = "another event of the group does not open, and a group is all or nothing";
    assert_eq!(member["tries"][1]["refusal"]["why"], why);
    check_schema("explain", &result);
}

/// Check that an ordinary user is shown both tries, and that one in user mode is not made where it would read 0.
#[test]
fn an_ordinary_user_is_told_what_opens() {
    let name = "an_ordinary_user_is_told_what_opens";
    let Some(user) = Ordinary::new(name) else { return };
    if paranoid() < 2 {
        return skipped(name, "this machine lets ordinary users count in the kernel");
    }
    let said = user.ask(&["explain", "page-faults"]);
    let expected = "  tried         on a thread: no: counting in the kernel needs privilege (EACCES from perf_event_open); \
                    append :u to count in user mode only, run as root or with CAP_PERFMON, or set \
                    /proc/sys/kernel/perf_event_paranoid to 1\n                on a thread, as page-faults:u: yes\n  \
                    opens         user: in user mode only, not as typed\n";
    assert!(said.out.ends_with(expected), "{}", said.out);
    assert_eq!(said.status, 1);
    let said = user.ask(&["explain", "--json", "cs"]);
    let event = &said.json()["strings"][0]["events"][0];
    assert_eq!((&event["opens"], event["tries"].as_array().unwrap().len()), (&json!("no"), 1));
    assert_eq!(user.ask(&["explain", "page-faults:u"]).status, 0);
}

/// Check that what can't be read is pointed at, with near names, and spoils nothing beside it.
#[test]
fn unreadable_strings_are_pointed_at() {
    let said = ask_on("zen3", &["explain", "cs,page-fauls", "RETIRED_INSTRUCTIONS"]);
    let expected = "\
cs,page-fauls
  asked         descriptions  yes  software (built in)
                descriptions  no   no event 'page-fauls' in amd_zen3
                sysfs         no   no event 'page-fauls' of cpu
                libpfm4       no   it knows this machine only
                vendor        no   no directory with event files
  can't be read at byte 3: expected an event, found 'page-fauls'
  near          'page-faults'

RETIRED_INSTRUCTIONS
";
    assert!(said.out.starts_with(expected), "{}", said.out);
    let expected = "pfmon: expected an event, found 'page-fauls'\n  cs,page-fauls\n     ^\ndid you mean 'page-faults'?\n";
    assert_eq!((said.err.as_str(), said.status), (expected, 125));
    let said = ask_on("zen3", &["explain", "--json", "cs,page-fauls"]);
    assert_eq!(said.status, 125);
    let result = said.json();
    let error = &result["strings"][0]["error"];
    assert_eq!((&error["position"], &error["near"]), (&json!(3), &json!(["page-faults"])));
    assert_eq!(error["expected"], "an event");
    check_schema("explain", &result);
    check_spoilt("explain", &result, "/strings/0/error", Value::Null);
}

/// Check a description of the user's own, and what the schema refuses.
#[test]
fn results_fit() {
    let result = ask(["explain", "--json", "--pmu", EXAMPLE, "EX_SMALL:t=2:u"]).json();
    let event = &result["strings"][0]["events"][0];
    let registers = json!([{"pmc": "CTL1", "value": 0x51_0005, "pmd": "CTR1"}]);
    assert_eq!((&event["registers"], &event["attr"]["config1"]), (&registers, &json!(2)));
    assert_eq!(
        event["fields"],
        json!([{"name": "event", "value": 5}, {"name": "threshold", "value": 2}])
    );
    assert_eq!(event["origin"], format!("example 1.2 ({EXAMPLE})"));
    check_schema("explain", &result);
    for (pointer, value) in [
        ("/strings/0/events", json!([])),
        ("/strings/0/events/0/attr", Value::Null),
        ("/strings/0/events/0/attr/config", json!("0x5")),
        ("/strings/0/events/0/attr/precise_ip", json!(4)),
        ("/strings/0/events/0/opens", json!("perhaps")),
        ("/strings/0/events/0/tries/0/refusal", json!({})),
    ] {
        check_spoilt("explain", &result, pointer, value);
    }
}
