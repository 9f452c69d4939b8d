// guest rows: arm64-64bit, arm64-no-pmu, x86_64-6.1
use serde_json::{Value, json};

use crate::helper::{ask, ask_on, can_count, check_schema, check_spoilt, skipped};
use crate::ordinary_user::{Ordinary, paranoid};

/// Check that the kernel's own events fit together, with the list that can be typed.
#[test]
fn software_events_fit() {
    if !can_count("software_events_fit", "page-faults:u") {
        return;
    }
    let said = ask(["fit", "page-faults:u,{minor-faults,major-faults}:u", "-e", "task-clock"]);
    let expected =
        "4 events fit into one group:\n{page-faults:u,minor-faults:u,major-faults:u,task-clock}\n";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected, "", 0));
    let again = ask(["fit", "--json", said.out.lines().nth(1).unwrap()]);
    assert_eq!(again.status, 0);
    let result = again.json();
    assert_eq!((&result["fits"], &result["is_smallest"]), (&json!(true), &json!(true)));
    assert_eq!(result["groups"].as_array().unwrap().len(), 1);
    check_schema("fit", &result);
}

/// Check that an event that is to have a whole group is not put into another's.
#[test]
fn pinned_events_are_groups_of_their_own() {
    if !can_count("pinned_events_are_groups_of_their_own", "page-faults:u") {
        return;
    }
    let said = ask(["fit", "page-faults:u,{minor-faults:u,task-clock}:D,major-faults:u"]);
    let expected = "4 events do not fit into one group; the smallest split has 2 groups:\n\
                    {page-faults:u,major-faults:u},{minor-faults:uD,task-clock}\n";
    assert_eq!((said.out.as_str(), said.status), (expected, 1));
    let expected = "pfmon: note: events with 'D' or 'e' are in groups of their own: the letter is for the whole group\n";
    assert_eq!(said.err, expected);
}

/// Check that events that do not open alone are named with the reason and left out.
#[test]
fn what_does_not_open_is_left_out() {
    if !can_count("what_does_not_open_is_left_out", "page-faults:u") {
        return;
    }
    let said = ask(["fit", "page-faults:u,context-switches:u,task-clock"]);
    let expected = "2 of 3 events fit into one group:\n{page-faults:u,task-clock}\nleft out:\n  context-switches:u  \
                    this event happens in the kernel: without 'k' it always reads 0; ";
    assert!(said.out.starts_with(expected), "{}", said.out);
    assert_eq!(said.status, 1);
    let result = ask(["fit", "--json", "page-faults:u,context-switches:u,task-clock"]).json();
    let events = result["events"].as_array().unwrap();
    let groups: Vec<&Value> = events.iter().map(|event| &event["group"]).collect();
    assert_eq!(groups, [&json!(0), &Value::Null, &json!(0)]);
    check_schema("fit", &result);
    check_spoilt("fit", &result, "/events/1/refusal", Value::Null);
    check_spoilt("fit", &result, "/groups/0", json!([]));
}

/// Check that hardware events of a machine without a PMU are both named.
#[test]
fn hardware_events_need_a_pmu() {
    if perfmon::has_core_pmu() {
        return skipped("fit: hardware_events_need_a_pmu", "this machine has a core PMU");
    }
    let said = ask(["fit", "cycles:u,instructions:u"]);
    let expected = "\
none of 2 events can be counted like this
left out:
  cycles:u        this machine has no PMU that counts it (ENOENT from perf_event_open); in a virtual machine, ask for \
a virtual PMU; software events and tracepoints work without
  instructions:u  this machine has no PMU that counts it (ENOENT from perf_event_open); in a virtual machine, ask for \
a virtual PMU; software events and tracepoints work without
";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected, "", 1));
    let result = ask(["fit", "--json", "cycles:u"]).json();
    assert_eq!(
        (&result["fits"], &result["groups"], &result["split"]),
        (&json!(false), &json!([]), &json!(""))
    );
    check_schema("fit", &result);
}

/// Check that events of different PMUs are never in one group, those of a group in braces stay together, and that
/// nothing is claimed of what was not tried.
#[test]
fn pmus_of_another_machine_are_told_apart() {
    let list = "{cycles,instructions},page-faults,uncore_imc_0/data_reads/";
    let said = ask_on("alder_lake", &["fit", list]);
    let expected = "6 events do not fit into one group, being of several PMUs; at least 3 groups are needed:\n\
                    {cpu_atom/cycles/,cpu_atom/instructions/,page-faults},{cpu_core/cycles/,cpu_core/instructions/},\
                    {uncore_imc_0/data_reads/}\n";
    assert_eq!((said.out.as_str(), said.status), (expected, 1));
    assert_eq!(said.err, "pfmon: note: these are another machine's files: nothing was tried\n");
    let result = ask_on("big_little", &["fit", "--json", "r11"]).json();
    let groups = json!([["armv8_cortex_a55/config=0x11/"], ["armv8_cortex_a76/config=0x11/"]]);
    assert_eq!((&result["groups"], &result["fits"]), (&groups, &json!(false)));
    check_schema("fit", &result);
    let said = ask_on("zen3", &["fit", "cycles,page-faults"]);
    let expected =
        "2 events may fit into one group; only trying could tell:\n{cycles,page-faults}\n";
    assert_eq!((said.out.as_str(), said.status), (expected, 1));
    let result = ask_on("zen3", &["fit", "--json", "cycles,page-faults"]).json();
    assert_eq!((&result["fits"], &result["is_smallest"]), (&Value::Null, &Value::Null));
    check_schema("fit", &result);
}

/// Check that an ordinary user is told what needs privilege.
#[test]
fn an_ordinary_user_is_told_what_is_left_out() {
    let name = "an_ordinary_user_is_told_what_is_left_out";
    let Some(user) = Ordinary::new(name) else { return };
    if paranoid() < 2 {
        return skipped(name, "this machine lets ordinary users count in the kernel");
    }
    let said = user.ask(&["fit", "page-faults,minor-faults:u,task-clock"]);
    let expected = "2 of 3 events fit into one group:\n{minor-faults:u,task-clock}\nleft out:\n  page-faults  counting \
                    in the kernel needs privilege (EACCES from perf_event_open); append :u ";
    assert!(said.out.starts_with(expected), "{}", said.out);
    assert_eq!(said.status, 1);
}

/// Check that what can't be read is pointed at.
#[test]
fn unreadable_lists_are_pointed_at() {
    let said = ask(["fit", "task-clock", "cylces"]);
    let expected = "pfmon: expected an event, found 'cylces'\n  task-clock,cylces\n             ^\ndid you mean 'cycles'?\n";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), ("", expected, 125));
    assert_eq!(ask(["fit"]).status, 125);
}

/// Check that a group in braces that the PMU can't hold is left out, and not called fitting because it is one.
#[test]
fn groups_that_do_not_fit_are_left_out() {
    let said = ask_on("alder_lake", &["fit", "{cpu_core/cycles/,cpu_atom/cycles/},page-faults"]);
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    let why = "its group is of several PMUs; leave the braces out to have it split";
    assert_eq!(said.out.matches(why).count(), 2, "{}", said.out);
    assert!(said.out.contains("\n{page-faults}\n"), "{}", said.out);
    if !can_count("groups_that_do_not_fit_are_left_out", "instructions:u") {
        return;
    }
    // No PMU has so many counters.
    let list = format!("{{{}}}", ["instructions:u"; 64].join(","));
    let said = ask(["fit", "--json", &list]);
    let result = said.json();
    assert_eq!((said.status, &result["fits"]), (1, &false.into()), "{result}");
    assert_eq!(result["groups"].as_array().unwrap().len(), 0, "{result}");
    let why = result["events"][0]["refusal"]["why"].as_str().unwrap();
    assert_eq!(why, "its group never gets onto the PMU as a whole");
}
