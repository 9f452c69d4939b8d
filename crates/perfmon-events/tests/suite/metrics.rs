use std::fs;
use std::path::{Path, PathBuf};

use perfmon_core::{Count, Estimate, Reason, Refusal};
use perfmon_events::metrics::{self, Group, Metric, MetricValue, Operand};
use proptest::prelude::*;

use crate::names;

const HEAD: &str = "format = 1\nname = \"test\"\nabout = \"A test\"\n";

/// A group with one metric over `a`, `b` and `c`, of which `a` and `b` run together.
fn with_formula(formula: &str) -> String {
    format!(
        "{HEAD}together = [[\"a\", \"b\"]]\n[events]\nc = \"cycles\"\na = \"instructions\"\n\
         b = \"branches\"\n[[metric]]\nname = \"M\"\nunit = \"1\"\nformula = '''{formula}'''\n"
    )
}

fn metric(formula: &str) -> Metric {
    let group = Group::from_toml(&with_formula(formula), "test.toml");
    group.unwrap_or_else(|error| panic!("{formula}: {error}")).metrics.remove(0)
}

/// `a` is 7, `b` is 2, `c` is 0, and 4 seconds passed.
fn exact(variable: &str) -> Operand {
    match variable {
        "a" => Operand::Exact(7.0),
        "b" => Operand::Exact(2.0),
        "c" => Operand::Exact(0.0),
        "wall_s" => Operand::Exact(4.0),
        _ => Operand::Missing("not known".to_owned()),
    }
}

/// As [`exact`], with `name` estimated.
fn estimated(name: &'static str) -> impl Fn(&str) -> Operand {
    move |variable| match exact(variable) {
        Operand::Exact(value) if variable == name => Operand::Estimated(value),
        operand => operand,
    }
}

fn value(formula: &str) -> MetricValue {
    metric(formula).evaluate(&exact, false)
}

fn undefined(why: &str) -> MetricValue {
    MetricValue::Undefined(why.to_owned())
}

fn toml_error(text: &str) -> String {
    Group::from_toml(text, "test.toml").expect_err("an error").to_string()
}

fn likwid(text: &str) -> Group {
    Group::from_likwid(text, "groups/TEST.txt").unwrap_or_else(|error| panic!("{error}"))
}

fn likwid_error(text: &str) -> String {
    Group::from_likwid(text, "groups/TEST.txt").expect_err("an error").to_string()
}

fn named<'a>(group: &'a Group, name: &str) -> &'a Metric {
    group.metrics.iter().find(|metric| metric.name == name).expect(name)
}

/// Check that formulas have the values that arithmetic gives them.
#[test]
fn known_answers() {
    for (formula, expected) in [
        ("a", 7.0),
        (" a+b ", 9.0),
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2 * 3 + 4 * 5", 26.0),
        ("8 - 4 - 2", 2.0),
        ("8 - (4 - 2)", 6.0),
        ("8 / 4 / 2", 1.0),
        ("8 / 4 * 2", 4.0),
        ("8 - 4 / 2 + 1", 7.0),
        ("-a", -7.0),
        ("--a", 7.0),
        ("-a * -b", 14.0),
        ("2 - -3", 5.0),
        ("-(a - b) / 5", -1.0),
        ("min(a, b)", 2.0),
        ("max(a, b)", 7.0),
        ("max(a + 1, min(b, 3) * 10) - 1", 19.0),
        ("1e3", 1000.0),
        ("1.5E+2", 150.0),
        ("1.E-06", 1e-6),
        (".5", 0.5),
        ("100 * b / a / wall_s", 200.0 / 7.0 / 4.0),
        ("1\n+\n1", 2.0),
    ] {
        assert_eq!(value(formula), MetricValue::Exact(expected), "{formula}");
    }
}

/// Check that what has no value says which part is to blame.
#[test]
fn undefined_values() {
    for (formula, why) in [
        ("a / c", "'c' is 0"),
        ("c / c", "'c' is 0"),
        ("a / (b - 2) * 3", "'(b - 2)' is 0"),
        ("a / -c", "'-c' is 0"),
        ("1e308 * 10", "the result at '10' is too large for a number"),
        ("1e308 + 1e308 - 1e308", "the result at '1e308' is too large for a number"),
    ] {
        assert_eq!(value(formula), undefined(why), "{formula}");
    }
    let not_finite = |_: &str| Operand::Exact(f64::NAN);
    let expected = undefined("'a' is no finite number");
    assert_eq!(metric("a").evaluate(&not_finite, false), expected);
    assert_eq!(value("c / a"), MetricValue::Exact(0.0));
}

/// Check that errors in formulas say where they are and what is expected there.
#[test]
fn formula_errors() {
    const OPERAND: &str = "expected a number, a variable or '('";
    const OPERATOR: &str = "expected an operator or the end of the formula";
    for (formula, expected) in [
        ("a / * b", format!("{OPERAND}, found '*' at column 5")),
        ("a /", format!("{OPERAND}, found nothing at column 4")),
        ("a b", format!("{OPERATOR}, found 'b' at column 3")),
        ("2a", format!("{OPERATOR}, found 'a' at column 2")),
        ("1.2.3", format!("{OPERATOR}, found '.3' at column 4")),
        ("a)", format!("{OPERATOR}, found ')' at column 2")),
        ("é", format!("{OPERAND}, found 'é' at column 1")),
        ("(a", "expected an operator or ')', found nothing at column 3".into()),
        ("min(a)", "expected an operator or ',', found ')' at column 6".into()),
        ("min(a, b, c)", "expected an operator or ')', found ',' at column 9".into()),
        ("min + 1", "expected '(' behind 'min', found '+' at column 5".into()),
        ("1e999", "expected a number below 1.8e308, found '1e999' at column 1".into()),
        (
            "1 + aa",
            "expected a variable of [events] or a built-in one, found 'aa' at column 5\n\
             did you mean 'a'?"
                .into(),
        ),
    ] {
        let expected = format!("test.toml:12: metric 'M': formula: {expected}");
        assert_eq!(toml_error(&with_formula(formula)), expected, "{formula}");
    }
}

/// Check both sides of the limits: 64 parts inside each other, 4096 bytes, 256 KiB.
#[test]
fn limits() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(value(&nested(63)), MetricValue::Exact(7.0));
    let error = toml_error(&with_formula(&nested(64)));
    assert!(
        error.ends_with("at most 64 parts inside each other, found 'a' at column 65"),
        "{error}"
    );
    let error = toml_error(&with_formula(&"-".repeat(4000)));
    assert!(error.contains("at most 64 parts"), "{error}");

    let sum = |bytes: usize| format!("1{}", "+1".repeat((bytes - 1) / 2));
    assert_eq!(value(&sum(4095)), MetricValue::Exact(2048.0));
    let error = toml_error(&with_formula(&sum(4097)));
    assert!(
        error.ends_with("expected at most 4096 bytes, found '4097 bytes' at column 1"),
        "{error}"
    );

    let padded = |bytes: usize| {
        let text = with_formula("a");
        format!("{text}{}", "#".repeat(bytes - text.len()))
    };
    assert!(Group::from_toml(&padded(256 * 1024), "test.toml").is_ok());
    let error = toml_error(&padded(256 * 1024 + 1));
    assert_eq!(error, "test.toml: expected at most 262144 bytes");
}

/// Check that deep nesting in the file itself is an error, and overflows no stack.
#[test]
fn deep_files() {
    for piece in ["[", "{a=", "a."] {
        let error = toml_error(&format!("format = {}", piece.repeat(60_000)));
        assert!(error.starts_with("test.toml:1: "), "{error}");
    }
    let error = toml_error(&format!("{} = 1", "a.".repeat(60_000) + "a"));
    assert!(error.starts_with("test.toml:1: "), "{error}");
}

/// Check that the example of the documentation is what the documentation says.
#[test]
fn documented_example() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let docs = fs::read_to_string(docs).unwrap();
    let (_, behind) = docs.split_once("```toml\n").unwrap();
    let (example, _) = behind.split_once("```").unwrap();
    let group = Group::from_toml(example, "example.toml").unwrap();
    assert!(docs.contains(&format!("counts `{}`", group.event_list())));
    for group in Group::builtins() {
        assert!(docs.contains(&format!("`{}`", group.name)), "{}", group.name);
    }
    let damaged = example.replace("instructions / cycles", "instructions / * cycles");
    let error = Group::from_toml(&damaged, "ipc.toml").unwrap_err().to_string();
    assert!(docs.contains(&error), "{error}");
}

/// Check that a metric is refused as soon as one of its events is estimated and another one did not
/// run together with it, unless that is asked for.
#[test]
fn refused_across_groups() {
    let refused = |formula: &str, name| metric(formula).evaluate(&estimated(name), false);
    let MetricValue::Refused(refusal) = refused("a / (c + 1)", "a") else { panic!() };
    assert_eq!(
        refusal.to_string(),
        "'a' and 'c' did not run together: 'a' shared the PMU, and its count is estimated from \
         another part of the time; count them in one group, or ask for it with --across-groups"
    );
    assert!(matches!(refused("a / (c + 1)", "c"), MetricValue::Refused(_)));
    assert!(matches!(refused("a + b + c", "b"), MetricValue::Refused(_)));
    let asked_for = metric("a / (c + 1)").evaluate(&estimated("a"), true);
    assert_eq!(asked_for, MetricValue::Estimated(7.0));
}

/// Check that events of one group, and an event with numbers that are no events, are estimated; that
/// exact counts need no group; and that an estimate that the formula does not hold changes nothing.
#[test]
fn not_refused() {
    for (formula, name, expected) in [
        ("a / b", "a", MetricValue::Estimated(3.5)),
        ("a / b", "b", MetricValue::Estimated(3.5)),
        ("c / wall_s", "c", MetricValue::Estimated(0.0)),
        ("c + c", "c", MetricValue::Estimated(0.0)),
        ("a + c", "b", MetricValue::Exact(7.0)),
        ("a + b + c", "", MetricValue::Exact(9.0)),
    ] {
        let value = metric(formula).evaluate(&estimated(name), false);
        assert_eq!(value, expected, "{formula} {name}");
    }
}

/// Check that a missing operand is named with its reason, before anything else is looked at.
#[test]
fn missing_operands() {
    let missing = MetricValue::Missing("'cpus': not known".to_owned());
    assert_eq!(value("a / c + cpus"), missing);
    assert_eq!(metric("c + a / cpus").evaluate(&estimated("a"), false), missing);
    assert_eq!(missing.value(), None);
}

/// Check that counts keep their state and their reason as operands.
#[test]
fn operands_of_counts() {
    let reason = Reason::NeverStarted;
    let estimate = Estimate {
        value: 3,
        counted: 2,
        method: perfmon_core::Method::Time,
        residences: None,
        stderr: None,
        interval95: None,
        reason: Reason::SharedPmu,
    };
    for (count, operand) in [
        (Count::Exact(5), Operand::Exact(5.0)),
        (Count::Estimated(estimate), Operand::Estimated(3.0)),
        (Count::NotCounted(reason), Operand::Missing("counting never started".to_owned())),
        (
            Count::Unsupported(Reason::Refused(Refusal::new("no PMU"))),
            Operand::Missing("no PMU".to_owned()),
        ),
    ] {
        assert_eq!(Operand::from(&count), operand);
    }
}

/// Check that the event list is in the order of the file, with groups where their first event stands,
/// and that indices are those of the list once it is read.
#[test]
fn event_list() {
    let text = format!(
        "{HEAD}together = [[\"e\", \"b\"], [\"d\"]]\n[events]\nz = \"task-clock\"\nb = \"r1a8:u\"\n\
         a = \"cpu/event=1,umask=2/k\"\nd = \"cycles\"\ne = \"mem:0x1000/8:w\"\n\
         [[metric]]\nname = \"M\"\nunit = \"1\"\nformula = \"a\"\n"
    );
    let group = Group::from_toml(&text, "test.toml").unwrap();
    let list = group.event_list();
    assert_eq!(list, "task-clock,{r1a8:u,mem:0x1000/8:w},cpu/event=1,umask=2/k,{cycles}");
    let events = names().parse(&list).unwrap();
    for (variable, text) in [
        ("z", "task-clock"),
        ("b", "r1a8:u"),
        ("e", "mem:0x1000/8:w"),
        ("a", "cpu/event=1,umask=2/k"),
        ("d", "cycles"),
    ] {
        assert_eq!(events[group.index(variable).unwrap()].text, text, "{variable}");
    }
    assert_eq!(group.index("wall_s"), None);
}

/// Check that what the format does not allow is refused with its line and field.
#[test]
fn file_errors() {
    let good = with_formula("a");
    for (from, to, expected) in [
        ("format = 1", "format = 2", "1: format: expected 1: a newer format needs a newer perfmon"),
        ("format = 1\n", "", "1: format: it is missing"),
        (
            "= \"test\"",
            "= \"../test\"",
            "2: name: expected a name of at most 64 letters, digits, '_', '-' and '.'",
        ),
        ("= \"test\"", "= 7", "2: name: expected text in quotes"),
        ("A test", "A \\u001b[31m", "3: about: expected one line without control characters"),
        ("about", "abuot", "3: abuot: there is no such key\ndid you mean 'about'?"),
        ("[[\"a\"", "[[\"aa\"", "4: together: 'aa' is no variable of [events]\ndid you mean 'a'?"),
        ("\"a\", \"b\"", "\"a\", \"a\"", "4: together: 'a' is listed twice"),
        ("[[\"a\", \"b\"]]", "[\"a\"]", "4: together: expected a list of texts in quotes"),
        ("[[\"a\", \"b\"]]", "1", "4: together: expected lists of variables: [[\"a\", \"b\"]]"),
        (
            "\nc =",
            "\nC =",
            "6: events.C: expected a variable that starts with a letter or '_', of a-z, 0-9 and '_'",
        ),
        (
            "\nc =",
            "\n9 =",
            "6: events.9: expected a variable that starts with a letter or '_', of a-z, 0-9 and '_'",
        ),
        (
            "\nc =",
            "\ncpus =",
            "6: events.cpus: 'cpus' is a built-in variable: call the event something else",
        ),
        ("\nc =", "\nmin =", "6: events.min: 'min' is a function: call the event something else"),
        ("\"cycles\"", "\"cycles,faults\"", "6: events.c: expected one event, found a list"),
        ("\"cycles\"", "\"cpu/a=1,b=2/,faults\"", "6: events.c: expected one event, found a list"),
        ("\"cycles\"", "\"faults,cpu/a=1/\"", "6: events.c: expected one event, found a list"),
        ("\"cycles\"", "\"mem:1/4,faults/4\"", "6: events.c: expected one event, found a list"),
        (
            "\"cycles\"",
            "\"{cycles}\"",
            "6: events.c: expected one event: what runs together is listed in 'together'",
        ),
        ("\"cycles\"", "\"cpu/cycles\"", "6: events.c: expected the closing '/' of a PMU's terms"),
        (
            "\"cycles\"",
            "\"cpu/name='a/\"",
            "6: events.c: expected the closing '/' of a PMU's terms",
        ),
        (
            "\"cycles\"",
            "\"cpu/name='a/',b/,faults\"",
            "6: events.c: expected one event, found a list",
        ),
        ("\"cycles\"", "\" \"", "6: events.c: expected text in quotes"),
        ("[[metric]]", "[metric]", "9: metric: expected 1 to 512 [[metric]]"),
        ("name = \"M\"\n", "", "9: metric: name: it is missing"),
        ("unit = \"1\"\n", "", "9: metric 'M': unit: it is missing"),
        ("unit", "units", "11: metric 'M': units: there is no such key\ndid you mean 'unit'?"),
        ("'''a'''", "1", "12: metric 'M': formula: expected a formula in quotes"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let expected = format!("test.toml:{expected}");
        assert_eq!(toml_error(&text), expected, "{from} → {to}");
    }
}

/// Check that commas between quotes are the event's own, and that names and files are whole.
#[test]
fn whole_files() {
    let good = with_formula("a");
    assert!(Group::from_toml(&good.replace("cycles", "cpu/name='a/,',b/u"), "test.toml").is_ok());
    let twice = format!("{good}[[metric]]\nname = \"M\"\nunit = \"1\"\nformula = \"a\"\n");
    assert_eq!(toml_error(&twice), "test.toml:14: metric 'M': name: there are two of this name");
    let error = toml_error("format = 1\nname = ");
    assert!(error.starts_with("test.toml:2: "), "{error}");
}

const LIKWID: &str = "\
SHORT  Execution of operations

# A comment
EVENTSET
FIXC0 INSTR_RETIRED_ANY
FIXC1\tCPU_CLK_UNHALTED_CORE
PMC0  UOPS_EXECUTED_STALL_CYCLES
PMC3:EDGEDETECT:THRESHOLD=0x1F  UOPS_EXECUTED_STALL_CYCLES
PMC1  UOPS_EXECUTED:INVERT:KERNEL
PMC2:ANYTHREAD  CPU_CLK_UNHALTED_TOTAL
MBOX0C0 CAS_COUNT_RD
MBOX1C0 CAS_COUNT_RD
MBOX0C1 CAS_COUNT_WR
PWR0 PWR_PKG_ENERGY

METRICS
Runtime (RDTSC) [s] time
Runtime unhalted [s] FIXC1*inverseClock
Clock [MHz]  1.E-06*(FIXC1/FIXC0)/inverseClock
CPI  FIXC1/FIXC0
Avg stall duration [cycles] PMC0/PMC3:EDGEDETECT:THRESHOLD=0x1F
Memory bandwidth [MBytes/s] 1.0E-06*(MBOX0C0+MBOX1C0+MBOX0C1)*64.0/time
Power [W] PWR0/time
Threads [%] 100*PMC2:ANYTHREAD/FIXC1
Misspelt PMC4
Strange PMC0^2
Domains num_numadomains

LONG
Formulas:
CPI = CPU_CLK_UNHALTED_CORE/INSTR_RETIRED_ANY
-
How operations are executed.
";

/// Check what becomes of a group file of LIKWID's syntax: text, events, what can run together.
#[test]
fn likwid_group() {
    let group = likwid(LIKWID);
    assert_eq!((group.name.as_str(), group.about.as_str()), ("TEST", "Execution of operations"));
    assert!(group.description.starts_with("Formulas:\nCPI = "));
    assert!(group.description.ends_with("-\nHow operations are executed."));
    assert_eq!(
        group.event_list(),
        "{INSTR_RETIRED_ANY,CPU_CLK_UNHALTED_CORE,UOPS_EXECUTED_STALL_CYCLES,\
         UOPS_EXECUTED_STALL_CYCLES:e:c=31,UOPS_EXECUTED:i},{CAS_COUNT_RD,CAS_COUNT_WR},CAS_COUNT_RD"
    );
    assert_eq!(group.index("PMC3:EDGEDETECT:THRESHOLD=0x1F"), Some(3));
    assert_eq!(group.index("MBOX1C0"), Some(7));
    assert_eq!(group.index("PWR0"), None);
    let names: Vec<(&str, &str)> =
        group.metrics.iter().map(|it| (it.name.as_str(), it.unit.as_str())).collect();
    let expected =
        [("Runtime (RDTSC)", "s"), ("Runtime unhalted", "s"), ("Clock", "MHz"), ("CPI", "")];
    assert_eq!(names[..4], expected);
    assert_eq!(names.len(), 11);
}

/// Check that LIKWID's formulas are evaluated over its counters, and that those which need what is not
/// offered are refused by name.
#[test]
fn likwid_metrics() {
    let group = likwid(LIKWID);
    let count = |variable: &str| match variable {
        "wall_s" => Operand::Exact(2.0),
        "FIXC0" | "MBOX0C0" => Operand::Exact(5e6),
        "PMC3:EDGEDETECT:THRESHOLD=0x1F" => Operand::Exact(2e6),
        _ => Operand::Exact(1e7),
    };
    for (name, expected) in [
        ("Runtime (RDTSC)", 2.0),
        ("CPI", 2.0),
        ("Avg stall duration", 5.0),
        ("Memory bandwidth", 800.0),
    ] {
        let value = named(&group, name).evaluate(&count, false);
        assert_eq!(value, MetricValue::Exact(expected), "{name}");
    }
    const CLOCK: &str = "'inverseClock', the time of one cycle of the time-stamp counter, is not \
                         offered; the clock rate is in the metrics 'clock'";
    for (name, expected) in [
        ("Runtime unhalted", CLOCK),
        ("Clock", CLOCK),
        ("Power", "'PWR0' is not offered: LIKWID converts its count to another unit"),
        ("Threads", "the option 'ANYTHREAD' of 'PMC2:ANYTHREAD' is not offered"),
        (
            "Misspelt",
            "'PMC4' is not offered, and no counter of EVENTSET; did you mean 'PMC0' or 'PMC1'?",
        ),
        (
            "Strange",
            "formula: expected an operator or the end of the formula, found '^' at column 5",
        ),
        ("Domains", "'num_numadomains' is not offered, and no counter of EVENTSET"),
    ] {
        let MetricValue::Refused(refusal) = named(&group, name).evaluate(&count, true) else {
            panic!("{name}")
        };
        assert_eq!(refusal.to_string(), expected, "{name}");
    }
    let estimated = |_: &str| Operand::Estimated(1.0);
    let cpi = named(&group, "CPI").evaluate(&estimated, false);
    assert_eq!(cpi, MetricValue::Estimated(1.0));
    let bandwidth = named(&group, "Memory bandwidth").evaluate(&estimated, false);
    assert!(matches!(bandwidth, MetricValue::Refused(_)));
}

/// Check that text that is no group file of LIKWID's is refused with its line.
#[test]
fn likwid_errors() {
    let good = "SHORT A\nEVENTSET\nPMC0 EVENT\nMETRICS\nA PMC0\n";
    assert_eq!(likwid(good).event_list(), "EVENT");
    for (from, to, expected) in [
        ("SHORT A", "A", ":1: expected SHORT, EVENTSET, METRICS or LONG"),
        ("SHORT A\n", "", ": SHORT: it is missing"),
        ("PMC0 EVENT\n", "", ": EVENTSET: it is missing"),
        ("A PMC0\n", "", ": METRICS: it is missing"),
        ("PMC0 EVENT", "PMC0", ":3: EVENTSET: expected 'COUNTER EVENT'"),
        ("PMC0 EVENT", "PMC0 EVENT,X", ":3: EVENTSET: expected 'COUNTER EVENT'"),
        ("PMC0 EVENT", "pmc0 EVENT", ":3: EVENTSET: expected 'COUNTER EVENT'"),
        ("PMC0 EVENT", "PMC0 A\nPMC0 B", ":4: EVENTSET: 'PMC0' is listed twice"),
        (
            "PMC0 EVENT",
            "PMC0:THRESHOLD=x EVENT",
            ":3: EVENTSET: none of the events is offered: the option 'THRESHOLD=x' of \
             'PMC0:THRESHOLD=x' is not offered",
        ),
        ("A PMC0", "PMC0", ":5: METRICS: expected 'NAME [UNIT] FORMULA'"),
        ("A PMC0", "A PMC0\nLUA\nx", ":6: LUA: metrics in Lua are not offered"),
        ("SHORT A", "SHORT \u{1b}[31m", ":1: expected no control characters"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        assert_eq!(likwid_error(&text), format!("groups/TEST.txt{expected}"), "{from} → {to}");
    }
}

/// Check that all built-in groups are read, that their files are all there is, that their events are
/// events, that those that run together are needed together, and that prose comes with them.
#[test]
fn builtins() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../metrics");
    let mut files: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let groups = Group::builtins();
    let expected: Vec<String> = groups.iter().map(|group| format!("{}.toml", group.name)).collect();
    assert_eq!(files, expected);
    for group in &groups {
        let name = &group.name;
        assert!(!group.description.is_empty(), "{name}");
        let events = names().parse(&group.event_list()).unwrap();
        assert_eq!(events.len(), group.events.len(), "{name}");
        for (event, known) in events.iter().zip(&group.events) {
            assert_eq!(event.text, known.event, "{name}");
            assert!(event.encoding.is_ok(), "{name}: {}", event.text);
        }
        for metric in &group.metrics {
            assert!(!metric.about.is_empty(), "{name}: {}", metric.name);
            let one = metric.evaluate(&|_| Operand::Exact(1.0), false);
            assert!(matches!(one, MetricValue::Exact(_)), "{name}: {}", metric.name);
        }
        // Software events are always exact; metrics of others must survive a shared PMU.
        if !["cpu", "faults", "switches"].contains(&name.as_str()) {
            for metric in &group.metrics {
                let value = metric.evaluate(&|_| Operand::Estimated(1.0), false);
                assert!(matches!(value, MetricValue::Estimated(_)), "{name}: {}", metric.name);
            }
        }
    }
}

/// Check some numbers of the built-in groups that a wrong power of ten would spoil.
#[test]
fn builtin_numbers() {
    for (group, metric, operands, expected) in [
        ("cpu", "CPUs used", &[("user_s", 2.5), ("system_s", 0.5), ("wall_s", 2.0)][..], 1.5),
        (
            "cpu",
            "CPU utilisation",
            &[("user_s", 1.0), ("system_s", 2.0), ("wall_s", 2.0), ("cpus", 3.0)],
            50.0,
        ),
        ("faults", "Faults per CPU second", &[("faults", 10.0), ("task_clock", 5e8)], 20.0),
        ("faults", "Share of major faults", &[("faults", 10.0), ("major_faults", 1.0)], 10.0),
        (
            "switches",
            "Time on CPU between switches",
            &[("context_switches", 4.0), ("task_clock", 2e6)],
            0.5,
        ),
        ("clock", "Clock", &[("cycles", 7e9), ("task_clock", 2e9)], 3.5),
        ("ipc", "Instruction rate", &[("instructions", 7e9), ("wall_s", 2.0)], 3.5),
        (
            "branches",
            "Branch misses per 1000 instructions",
            &[("branch_misses", 3.0), ("instructions", 1e3)],
            3.0,
        ),
    ] {
        let group = Group::builtin(group).unwrap();
        let operand = |variable: &str| {
            let known = operands.iter().find(|(name, _)| *name == variable);
            known.map_or(Operand::Missing(String::new()), |(_, value)| Operand::Exact(*value))
        };
        let value = named(&group, metric).evaluate(&operand, false);
        assert_eq!(value, MetricValue::Exact(expected), "{metric}");
    }
}

/// A directory that is deleted when it goes.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("perfmon-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(file);
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Check that the first directory with a file wins over later ones and over what is built in, and that
/// an unknown name proposes near ones.
#[test]
fn find_by_name() {
    let (user, system) = (Directory::new("metrics-user"), Directory::new("metrics-system"));
    let text = |name: &str, about: &str| {
        with_formula("a").replace("\"test\"", &format!("{name:?}")).replace("A test", about)
    };
    user.write("ipc.toml", text("ipc", "of the user"));
    system.write("ipc.toml", text("ipc", "of the system"));
    system.write("other.toml", text("other", "of the system"));
    system.write("MEM.txt", LIKWID);
    system.write("liar.toml", text("truth", ""));
    system.write("broken.toml", "format = 1");
    system.write("notes.md", "");
    let missing = PathBuf::from("/no/such/directory");
    let directories = [missing, user.0.clone(), system.0.clone()];
    let about = |name: &str| metrics::find(name, &directories).map(|group| group.about);

    assert_eq!(about("ipc").unwrap(), "of the user");
    assert_eq!(about("other").unwrap(), "of the system");
    assert_eq!(about("MEM").unwrap(), "Execution of operations");
    assert_eq!(about("cpu").unwrap(), Group::builtin("cpu").unwrap().about);
    let error = |name: &str| about(name).unwrap_err().to_string();
    assert_eq!(error("othre"), "there are no metrics called 'othre'\ndid you mean 'other'?");
    assert_eq!(error("something"), "there are no metrics called 'something'");
    assert!(error("../ipc").starts_with("expected a name of"), "{}", error("../ipc"));
    let liar = system.0.join("liar.toml");
    system.write("liar.toml", text("truth", "a"));
    let expected =
        format!("{}: name: expected 'liar', as the file is called, found 'truth'", liar.display());
    assert_eq!(error("liar"), expected);
    assert!(error("broken").ends_with("broken.toml:1: name: it is missing"), "{}", error("broken"));

    let all = metrics::names(&directories);
    assert_eq!(all.iter().filter(|name| *name == "ipc").count(), 1);
    for name in ["MEM", "broken", "cpu", "ipc", "liar", "other", "tlb"] {
        assert!(all.iter().any(|known| known == name), "{name}");
    }
    assert_eq!(all.len(), 11 + 4);
}

/// Check that a file is read by its ending, and that what can't be read is an error.
#[test]
fn load_by_path() {
    let directory = Directory::new("metrics-load");
    let error = |path: &Path| {
        let error = Group::load(path).unwrap_err().to_string();
        error.replace(directory.0.to_str().unwrap(), "DIR")
    };
    let load = |file: &str, text: &str| Group::load(&directory.write(file, text)).unwrap().name;
    assert_eq!(load("a.toml", &with_formula("a")), "test");
    assert_eq!(load("B.txt", LIKWID), "B");
    assert_eq!(error(&directory.0.join("c.toml")), "DIR/c.toml: there is no such file");
    let other = directory.write("d.json", "");
    assert_eq!(error(&other), "DIR/d.json: expected a name that ends in .toml or .txt");
    let binary = directory.write("e.toml", b"format = 1\n\xff");
    assert_eq!(error(&binary), "DIR/e.toml:2: expected text in UTF-8");
    let long = directory.write("f.toml", "é".repeat(200 * 1024));
    assert_eq!(error(&long), "DIR/f.toml: expected at most 262144 bytes");
    fs::create_dir(directory.0.join("g.toml")).unwrap();
    let shown = error(&directory.0.join("g.toml"));
    assert!(shown.starts_with("DIR/g.toml: cannot read it: "), "{shown}");
}

/// `text` with a part of it replaced.
fn mutated(text: &str, start: usize, length: usize, new: &str) -> String {
    let floor = |at: usize| text.floor_char_boundary(at.min(text.len()));
    let (start, end) = (floor(start), floor(start.saturating_add(length)));
    format!("{}{new}{}", &text[..start], &text[end..])
}

/// Pieces that get formulas and files further than noise.
fn piece() -> impl Strategy<Value = String> {
    let known = [
        "a",
        "b",
        "c",
        "wall_s",
        "min(",
        "max(",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        " ",
        "1",
        "2.5",
        "1e9",
        "1e308",
        ".",
        "e",
        "0",
        "\"",
        "'''",
        "\n",
        "=",
        "[",
        "]",
        "[[metric]]",
        "{",
        "}",
        "#",
        "\\u0000",
        "é",
        "\u{1b}",
        "SHORT ",
        "EVENTSET",
        "METRICS",
        "LONG",
        "PMC0:",
        "time",
    ];
    prop_oneof![prop::sample::select(known.map(str::to_owned).to_vec()), any::<String>()]
}

proptest! {
    /// Check that no text panics as a file of either format, and that errors are told.
    #[test]
    fn noise(text in any::<String>()) {
        for read in [Group::from_toml, Group::from_likwid] {
            if let Err(error) = read(&text, "noise.txt") {
                prop_assert!(error.to_string().starts_with("noise.txt"));
            }
        }
    }

    /// Check the same for damaged files, and that what is read can be listed and evaluated.
    #[test]
    fn mutations(
        is_likwid in any::<bool>(),
        edits in prop::collection::vec((0..1200_usize, 0..20_usize, piece()), 1..4),
        operand in prop::sample::select(vec![0.0, 1.0, -1e308, f64::MAX, f64::INFINITY, f64::NAN]),
    ) {
        let (mut text, read): (_, fn(&str, &str) -> _) = match is_likwid {
            true => (LIKWID.to_owned(), Group::from_likwid),
            false => (with_formula("a / (b - 1) + min(c, 2)"), Group::from_toml),
        };
        for (start, length, new) in edits {
            text = mutated(&text, start, length, &new);
        }
        if let Ok(group) = read(&text, "test.txt") {
            prop_assert!(!group.event_list().is_empty());
            for metric in &group.metrics {
                let value = metric.evaluate(&|_| Operand::Estimated(operand), true);
                prop_assert!(value.value().is_none_or(f64::is_finite));
            }
        }
    }

    /// Check that formulas of any pieces neither panic nor give a number that is none.
    #[test]
    fn formulas(pieces in prop::collection::vec(piece(), 0..30)) {
        let formula = pieces.concat().replace('\'', "");
        if let Ok(group) = Group::from_toml(&with_formula(&formula), "test.toml") {
            let value = group.metrics[0].evaluate(&exact, false);
            prop_assert!(value.value().is_none_or(f64::is_finite));
        }
    }

    /// Check that sums and products are those of Rust, whatever the numbers.
    #[test]
    fn arithmetic(a in -1e9..1e9_f64, b in -1e9..1e9_f64, c in -1e9..1e9_f64) {
        let operand = |variable: &str| match variable {
            "a" => Operand::Exact(a),
            "b" => Operand::Exact(b),
            _ => Operand::Exact(c),
        };
        let value = |formula: &str| metric(formula).evaluate(&operand, false);
        prop_assert_eq!(value("a + b * c - a / 3"), MetricValue::Exact(a + b * c - a / 3.0));
        prop_assert_eq!(value("(a - b - c) * -a"), MetricValue::Exact((a - b - c) * -a));
        prop_assert_eq!(value("min(a, max(b, c))"), MetricValue::Exact(a.min(b.max(c))));
    }
}
