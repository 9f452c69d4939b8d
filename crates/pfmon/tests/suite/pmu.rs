use serde_json::{Value, json};

use crate::helper::{
    Directory, EXAMPLE, ask, ask_on, can_count, check_schema, check_spoilt, rows, run, stat,
};

/// Check the table of the kernel's PMUs with what describes them, and which descriptions are of the machine.
#[test]
fn pmus_and_descriptions_are_listed() {
    let said = ask_on("alder_lake", &["pmu"]);
    let (descriptions, pmus) = said.out.split_once("\nthe kernel's PMUs\n").unwrap();
    let expected = "  NAME           TYPE  CPUS  DESCRIBED BY
  cpu_atom       10    8-15  intel_adl_e
  cpu_core       4     0-7   intel_adl_p, x86_arch
  uncore_imc_0   20    0     -
  uncore_imc_1   21    0     -
  uncore_imc_10  30    0     -
";
    assert_eq!((pmus, said.err.as_str(), said.status), (expected, "", 0));
    assert!(
        descriptions
            .starts_with("CPU: GenuineIntel family 0x6 model 0x97 stepping 2\n\ndescriptions\n")
    );
    let here = |name: &str| {
        let line = descriptions.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(
        ["intel_adl_e", "intel_adl_p", "amd_zen3", "software", "perfmon2_intel_arch"].map(here),
        ["yes", "yes", "no", "yes", "no"]
    );
    let result = ask_on("big_little", &["pmu", "--json"]).json();
    let a76 = &result["kernel_pmus"][1];
    assert_eq!(
        (&a76["name"], &a76["type"], &a76["cpus"]),
        (&json!("armv8_cortex_a76"), &json!(8), &json!("4-5"))
    );
    assert_eq!(a76["descriptions"], json!(["arm_cortex_a76", "arm_pmuv3"]));
    assert_eq!(result["details"], Value::Null);
    check_schema("pmu", &result);
    let result = ask(["pmu", "--json"]).json();
    assert_eq!(result["here"], true);
    check_schema("pmu", &result);
}

/// Check all that is shown of a description, asked for by its other name.
#[test]
fn a_description_is_shown() {
    let said = ask_on("zen3", &["pmu", "EXAMPLE_old", "--pmu", EXAMPLE]);
    let expected = format!(
        "\
example 1.2: Example counters
  also          example_old
  file          {EXAMPLE}
  sources       Example, Manual of Counters, section 1
  machines      all
  here          yes
  perf events   of type 1
  events        2: pfmon list --of example

layout select, in which events are written
  FIELD      BITS       PERF EVENT
  enable     22         enable
  event      0-7,32-35  config:0-7,32-35
  threshold  -          config1:0-3
  user       16         user

control registers (PMC)
  PMC  NAME   ADDRESS  DEFAULT   RESERVED  LAYOUT  FLAGS
  0    CTL0   0xc0     0x100000  0x280000  select
  1    CTL1   0xc1     0x100000  0x280000  select
  7    OTHER  -        0x0       0x0       -       thread-only, not in perf events: only an example

data registers (PMD)
  PMD  NAME   ADDRESS  WIDTH  PMCS  SHIFT  FIXED      FLAGS
  0    CTR0   0xd0     48     0     0      -
  1    CTR1   0xd1     48     1     0      -
  8    FIXED  -        32     1     0      EX_FAULTS  read-only, system-only

modifiers of events
  MODIFIER  FIELD      ABOUT
  t         threshold  counts from so many on

events that only some counters count
  EVENT     PMDS
  EX_SMALL  1

errata
  EVENT     ERRATA
  EX_SMALL  None that is known

sources of single events
  EVENT     SOURCE
  EX_SMALL  Example, section 2
"
    );
    assert_eq!((said.out.as_str(), said.err.as_str(), said.status), (expected.as_str(), "", 0));
}

/// Check a description that is built in, on its machine, as JSON, and what the schema refuses.
#[test]
fn results_fit() {
    let result = ask_on("zen3", &["pmu", "amd64_fam19h_zen3", "--json"]).json();
    let row = &result["descriptions"][0];
    assert_eq!(
        (&row["name"], &row["active"], &row["devices"]),
        (&json!("amd_zen3"), &json!(true), &json!(["cpu"]))
    );
    assert_eq!(
        (&row["pmcs"], &row["pmds"], &row["file"]),
        (&json!(6), &json!(6), &json!("pmu/amd_zen3.toml"))
    );
    let details = &result["details"];
    let expected = json!({
        "index": 5, "name": "PERF_CTL5", "address": 0xc001_020a_u32, "default": 0x10_0000,
        "reserved": 0xffff_fcf0_0028_0000_u64, "layout": "select", "thread_only": false,
        "system_only": false, "unsupported": null
    });
    assert_eq!(details["pmcs"][5], expected);
    assert_eq!(
        (&details["pmds"][5]["width"], &details["pmds"][5]["pmcs"]),
        (&json!(48), &json!([5]))
    );
    assert_eq!(details["machines"][0]["models"], json!([[0, 15], [32, 95]]));
    check_schema("pmu", &result);
    check_schema("pmu", &ask(["pmu", "perfmon2_nehalem", "--json"]).json());
    for (pointer, value) in [
        ("/descriptions/0/version", json!(1)),
        ("/kernel_pmus/0/type", json!("4")),
        ("/details/pmds/0/width", json!(65)),
        ("/details/machines/0/models/0", json!([1])),
        ("/details/layouts/0/fields/0/perf", Value::Null),
    ] {
        check_spoilt("pmu", &result, pointer, value);
    }
}

/// Check that an unknown name is an error with what may have been meant.
#[test]
fn unknown_names_are_errors() {
    for (name, expected) in [
        ("amd_zen33", "pfmon: there is no PMU description 'amd_zen33'\ndid you mean 'amd_zen3'?\n"),
        (
            "\u{1b}quite_another",
            "pfmon: there is no PMU description '\u{fffd}quite_another'; pfmon pmu shows all\n",
        ),
        (
            "cpu",
            "pfmon: there is no PMU description 'cpu'; the kernel's PMU of this name is described by amd_zen3, \
             perfmon2_amd64\n",
        ),
    ] {
        let said = ask_on("zen3", &["pmu", name]);
        assert_eq!(
            (said.out.as_str(), said.err.as_str(), said.status),
            ("", expected, 125),
            "{name}"
        );
    }
}

/// Check that a wrong description is refused with its line and field, and one that conflicts with both files.
#[test]
fn wrong_descriptions_are_refused() {
    let directory = Directory::new("pmu-wrong");
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    let file = directory.path("wrong.toml");
    std::fs::write(
        &file,
        text.replace("EX_SMALL = { set = { event = 5 }", "EX_SMALL = { set = { evnt = 5 }"),
    )
    .unwrap();
    let line = text.lines().position(|line| line.starts_with("EX_SMALL")).unwrap() + 1;
    let expected = format!(
        "pfmon: {file}:{line}: event.EX_SMALL.set.evnt: layout 'select' has no field 'evnt' in a config word\n"
    );
    for args in [&["pmu"][..], &["list"], &["explain", "task-clock"], &["fit", "task-clock"]] {
        let said = ask([args, &["--pmu", &file]].concat());
        assert_eq!(
            (said.out.as_str(), said.err.as_str(), said.status),
            ("", expected.as_str(), 125)
        );
    }
    let other = directory.path("other.toml");
    std::fs::write(&other, text.replace("event = 5", "event = 6")).unwrap();
    let said = ask(["pmu", "--pmu", EXAMPLE, "--pmu", &other]);
    let expected = format!(
        "pfmon: {other}: name: {EXAMPLE} is also 'example' version 1.2, with other content; raise the version of \
         the one that is to count\n"
    );
    assert_eq!((said.err.as_str(), said.status), (expected.as_str(), 125));
    // The same twice is no conflict.
    assert_eq!(ask(["pmu", "example", "--pmu", EXAMPLE, "--pmu", EXAMPLE]).status, 0);
}

/// Check that wrong files of the user's directories are told, and spoil nothing.
#[test]
fn wrong_files_of_directories_are_notes() {
    let directory = Directory::new("pmu-directory");
    std::fs::create_dir_all(directory.path("perfmon/pmu")).unwrap();
    let file = directory.path("perfmon/pmu/bad.toml");
    std::fs::write(&file, "format = 1\nname = 7\n").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pfmon"));
    command.args(["pmu", "software", "--json"]).env("XDG_CONFIG_HOME", directory.path(""));
    let said = crate::helper::Said::by(&mut command);
    assert!(said.err.starts_with(&format!("pfmon: note: {file}:2: name: ")), "{}", said.err);
    assert_eq!(said.status, 0);
    assert!(said.json()["notes"][0].as_str().unwrap().starts_with(&format!("{file}:2: ")));
}

/// Check that events of a description of the user's own are counted.
#[test]
fn stat_takes_descriptions() {
    if !can_count("stat_takes_descriptions", "page-faults:u") {
        return;
    }
    let args = ["--json", "--pmu", EXAMPLE, "-e", "EX_FAULTS:u,page-faults:u,example::EX_SMALL:u"];
    let (text, status) = run(stat(args.iter().chain(&["true"])));
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 0, "{text}");
    let rows = rows(&result);
    assert_eq!((rows[0].2, rows[0].3), ("exact", rows[1].3), "{text}");
    assert!(matches!(rows[2], ("example::EX_SMALL:u", None, "exact", Some(1..))), "{text}");
    let (text, status) = run(stat(["--pmu", "/no/such.toml", "true"]));
    assert!(text.starts_with("pfmon: /no/such.toml: No such file") && status == 125, "{text}");
    let (text, status) = run(stat(["--event-files", "/no/such", "true"]));
    assert!(
        text.starts_with("pfmon: can't read /no/such: No such file") && status == 125,
        "{text}"
    );
}
