use std::process::{Command, Stdio};

use crate::helper::{Directory, WRITES, can_count, json, run, skipped, stat, workload};

const COLUMNS: &str = "event,scope,comm,state,value,unit,enabled_ns,running_ns,coverage,stderr,interval95_low,\
                       interval95_high,reason,mean,stddev,min,max,scale";

/// Check that results go to the file named, and nothing to standard error.
#[test]
fn results_go_to_a_file() {
    let directory = Directory::new("file");
    let file = directory.path("result");
    let (text, status) = run(stat(["--json", "-o", &file, "-e", "page-faults:u", "true"]));
    assert_eq!((text.as_str(), status), ("", 0));
    let result: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(result["schema"], "pfmon.stat/1");
    let (text, status) = run(stat(["-o", "/no/such/directory/file", "true"]));
    assert!(text.starts_with("pfmon: can't write results to /no/such/directory/file: "), "{text}");
    assert_eq!(status, 125);
}

/// Check that results go to the descriptor named, and that one that is not open is refused.
#[test]
fn results_go_to_a_descriptor() {
    let directory = Directory::new("descriptor");
    let file = directory.path("result");
    let script = format!("exec \"$0\" stat --json --fd 7 -e page-faults:u true 7> {file}");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_pfmon")]).stderr(Stdio::piped());
    assert_eq!(run(command), (String::new(), 0));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("{\"schema\":\"pfmon.stat/1\""));
    let (text, status) = run(stat(["--fd", "77", "true"]));
    assert!(text.starts_with("pfmon: can't write results to descriptor 77: "), "{text}");
    assert_eq!(status, 125);
}

/// Check that a full disk is an error that says so.
#[test]
fn a_full_disk_is_an_error() {
    let (text, status) = run(stat(["-o", "/dev/full", "--csv", "-e", "page-faults:u", "true"]));
    // What was measured is not lost.
    assert!(
        text.lines().nth(1).is_some_and(|line| line.starts_with("page-faults:u,,,exact,")),
        "{text}"
    );
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("pfmon: can't write results to /dev/full: No space left"), "{text}");
    assert_eq!(status, 125);
}

/// Check that a reader that has gone is no error.
#[test]
fn a_closed_pipe_is_no_error() {
    for format in ["--json", "--csv", "--strict"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = stat([format, "-e", "page-faults:u", workload(), "exit", "3"]);
        assert_eq!(command.stderr(writer).status().unwrap().code(), Some(3), "{format}");
    }
}

/// Check the columns of CSV, and that each line has as many fields.
#[test]
fn csv_has_columns() {
    if !can_count("csv_has_columns", "page-faults:u") {
        return;
    }
    let (text, status) =
        run(stat(["--csv", "-e", "page-faults:u,task-clock", workload(), "exit", "0"]));
    assert_eq!(status, 0);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(text.lines().next(), Some(COLUMNS));
    let fields = COLUMNS.split(',').count();
    assert!(lines.iter().all(|line| line.len() == fields), "{text}");
    let events: Vec<_> = lines.iter().skip(1).map(|line| (line[0], line[3], line[5])).collect();
    let expected = [
        ("page-faults:u", "exact", "events"),
        ("task-clock", "exact", "ns"),
        ("wall", "exact", "ns"),
        ("user", "exact", "ns"),
        ("system", "exact", "ns"),
    ];
    assert_eq!(events, expected);
    assert!(lines[1][4].parse::<u64>().is_ok_and(|faults| faults > 0), "{text}");
    assert_eq!(lines[1][8], "1");
}

/// Check that a count that is missing has an empty value and a quoted reason in CSV.
#[test]
fn csv_shows_no_count_as_none() {
    let (text, _) = run(stat(["--csv", "-e", "context-switches:u", "true"]));
    let line = text.lines().nth(1).unwrap();
    assert!(
        line.starts_with("context-switches:u,,,unsupported,,events,0,0,0,,,,\"this event happens"),
        "{line}"
    );
}

/// Check that CSV with intervals begins with the time, which totals leave empty.
#[test]
fn csv_of_intervals_begins_with_the_time() {
    let (text, _) = run(stat(["--csv", "-I", "30", "-e", "page-faults:u", "sleep", "0.2"]));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(format!("time_ns,{COLUMNS}").as_str()));
    let times: Vec<Option<u64>> =
        lines.map(|line| line.split(',').next().unwrap().parse().ok()).collect();
    let (totals, intervals): (Vec<_>, Vec<_>) = times.into_iter().partition(Option::is_none);
    assert_eq!(totals.len(), 4);
    assert!(!intervals.is_empty() && intervals.is_sorted(), "{text}");
}

/// Check that the table has no colour unless it goes to a terminal.
#[test]
fn colour_is_for_terminals() {
    const ESCAPE: char = '\u{1b}';
    const ARGS: [&str; 3] = ["-e", "context-switches:u", "true"];
    let (text, _) = run(stat(ARGS));
    assert!(text.contains("unsupported  context-switches:u") && !text.contains(ESCAPE), "{text}");
    // A terminal, made by script(1).
    let terminal = |variable: &str, value: &str| {
        let command = format!("{} stat {}", env!("CARGO_BIN_EXE_pfmon"), ARGS.join(" "));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
        script.env(variable, value).stdin(Stdio::null());
        script.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    match terminal("TERM", "xterm") {
        Ok(text) if text.contains("context-switches:u") => {
            assert!(text.contains("\u{1b}[31m"), "{text:?}");
            assert!(!terminal("NO_COLOR", "1").unwrap().contains(ESCAPE));
            assert!(!terminal("TERM", "dumb").unwrap().contains(ESCAPE));
        }
        other => skipped("colour_is_for_terminals", format!("script(1) gave {other:?}")),
    }
}

/// Check that the output is the same in every locale.
#[test]
fn locales_change_nothing() {
    if !can_count("locales_change_nothing", WRITES) {
        return;
    }
    let table = |locale: &str| {
        let mut command = stat(["-e", WRITES, workload(), "writes", "12345"]);
        command.env("LC_ALL", locale).env("LANG", locale);
        let (text, _) = run(command);
        text.lines().filter(|line| !line.starts_with(" wall")).collect::<Vec<_>>().join("\n")
    };
    let plain = table("C");
    assert!(plain.contains("             12,345  syscalls:sys_enter_write"), "{plain}");
    for locale in ["de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "C.UTF-8", "no such locale"] {
        assert_eq!(table(locale), plain, "{locale}");
    }
}

/// Check that the command's own output and input are left alone.
#[test]
fn the_commands_streams_are_its_own() {
    let mut command = stat([
        "--json",
        "-o",
        "/dev/null",
        "-e",
        "page-faults:u",
        "sh",
        "-c",
        "echo out; echo err >&2",
    ]);
    let output = command.stdout(Stdio::piped()).output().unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"out\n"[..], &b"err\n"[..])
    );
    let result = json(&["-e", "page-faults:u", "sh", "-c", "! read line"]);
    assert_eq!(result["exit_status"], 0);
}
