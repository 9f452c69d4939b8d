use std::time::{Duration, Instant};

use serde_json::Value;

use crate::helper::{
    Directory, Running, WRITES, can_count, json, json_and_status, only, rows, run, stat, workload,
};

/// Check mean and spread over runs that differ in a known way.
#[test]
fn repeats_have_mean_and_spread() {
    if !can_count("repeats_have_mean_and_spread", WRITES) {
        return;
    }
    let directory = Directory::new("repeats");
    let file = directory.path("runs");
    std::fs::write(&file, "0\n").unwrap();
    // Run n writes n times, and once to the file.
    let script =
        format!("read n < {file}; n=$((n+1)); echo $n > {file}; exec {} writes $n", workload());
    let result = json(&["-r", "3", "-e", WRITES, "sh", "-c", &script]);
    assert_eq!(only(&result), 3);
    assert_eq!(result["runs"], 3);
    let expected = serde_json::json!({"mean": 3.0, "stddev": 1.0, "min": 2, "max": 4});
    assert_eq!(result["events"][0]["repeats"], expected);
    let single = json(&["-e", WRITES, "true"]);
    assert_eq!((&single["runs"], &single["events"][0]["repeats"]), (&Value::from(1), &Value::Null));
}

/// Check that intervals show what was counted in each, and that the total is their sum and the rest.
#[test]
fn intervals_add_up() {
    if !can_count("intervals_add_up", WRITES) {
        return;
    }
    let args = ["--json", "-I", "20", "-e", WRITES, workload(), "steps", "1000", "10"];
    let mut pfmon = Running::spawn(stat(args));
    let (mut sum, mut time) = (0, 0);
    // A thousand, and the line that says so.
    while sum < 1001 {
        let interval: Value = serde_json::from_str(&pfmon.error_line().unwrap()).unwrap();
        assert_eq!(interval["schema"], "pfmon.stat-interval/1");
        assert!(interval["time_ns"].as_u64().unwrap() > time);
        time = interval["time_ns"].as_u64().unwrap();
        sum += only(&interval);
    }
    assert_eq!(sum, 1001);
    pfmon.go();
    let (text, status) = pfmon.end();
    let (intervals, total) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let total: Value = serde_json::from_str(total).unwrap();
    assert_eq!((status, only(&total)), (0, 1011));
    let later = intervals.lines().map(|line| only(&serde_json::from_str(line).unwrap()));
    assert!(later.sum::<u64>() <= 10);
}

/// Check that nothing is counted before the delay is over.
#[test]
fn counting_starts_after_the_delay() {
    if !can_count("counting_starts_after_the_delay", WRITES) {
        return;
    }
    let options = ["--json", "-D", "1s", "-I", "20", "-e", WRITES];
    let mut command = stat(options.iter().chain(&[workload(), "steps", "1000", "10"]));
    command.stdout(std::process::Stdio::piped());
    let mut pfmon = Running::spawn(command);
    let begin = Instant::now();
    assert_eq!(pfmon.output_line().unwrap(), "ready\n");
    let in_time = begin.elapsed() < Duration::from_millis(900);
    // The first interval: it counts.
    pfmon.error_line().unwrap();
    pfmon.go();
    let (text, status) = pfmon.end();
    assert_eq!(status, 0);
    if in_time {
        let total: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(only(&total), 10);
    }
}

/// Check that a command that ends before the delay is over was not counted: no 0.
#[test]
fn a_command_shorter_than_the_delay_is_not_counted() {
    if !can_count("a_command_shorter_than_the_delay_is_not_counted", "page-faults:u") {
        return;
    }
    let result = json(&["-D", "60s", "-e", "page-faults:u", "true"]);
    assert_eq!(rows(&result), [("page-faults:u", None, "not_counted", None)]);
    assert_eq!(result["events"][0]["reason"], "counting never started");
}

/// Check that the time limit ends counting and the command.
#[test]
fn the_time_limit_ends_the_command() {
    if !can_count("the_time_limit_ends_the_command", "page-faults:u") {
        return;
    }
    let begin = Instant::now();
    let args = ["--time-limit", "200ms", "-e", "page-faults:u", "sleep", "60"];
    let (result, status) = json_and_status(&args);
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert!(result["wall_ns"].as_u64().unwrap() >= 200_000_000);
    // SIGTERM.
    assert_eq!((status, &result["exit_status"]), (143, &Value::from(143)));
    assert!(only(&result) > 0);
}

/// Check that events are taken from files, without comments, behind those of -e; and what is wrong with a file.
#[test]
fn events_come_from_files() {
    let directory = Directory::new("events");
    let file = directory.path("events");
    std::fs::write(&file, "# two lines\npage-faults:u # faults\n\n  task-clock,minor-faults:u\n")
        .unwrap();
    let result = json(&["-e", "major-faults:u", "--events-file", &file, "true"]);
    let names: Vec<_> = rows(&result).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["major-faults:u", "page-faults:u", "task-clock", "minor-faults:u"]);
    std::fs::write(&file, "# nothing\n").unwrap();
    let (text, status) = run(stat(["--events-file", &file, "true"]));
    let expected = format!("pfmon: can't read events from {file}: there is no event in it\n");
    assert_eq!((text, status), (expected, 125));
    let (text, status) = run(stat(["--events-file", "/no/such/file", "true"]));
    assert!(
        text.starts_with("pfmon: can't read events from /no/such/file: No such file"),
        "{text}"
    );
    assert_eq!(status, 125);
}

/// Check that a run that can't be made does not lose what the runs before it measured.
#[test]
fn a_failed_run_keeps_the_earlier_ones() {
    let directory = Directory::new("a_failed_run_keeps_the_earlier_ones");
    let script = directory.path("script");
    std::fs::write(&script, "#!/bin/sh\nrm \"$0\"\n").unwrap();
    let run_once = directory.path("once");
    assert!(
        std::process::Command::new("cp").args([&script, &run_once]).status().unwrap().success()
    );
    std::fs::set_permissions(&run_once, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let (text, status) = run(stat(["--csv", "-r", "3", "-e", "task-clock", &run_once]));
    assert_eq!(status, 127, "{text}");
    assert!(
        text.lines().nth(1).is_some_and(|line| line.starts_with("task-clock,,,exact,")),
        "{text}"
    );
    assert!(text.lines().last().unwrap().contains("not found"), "{text}");
}
