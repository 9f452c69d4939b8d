// guest rows: arm64-6.12, arm64-2cpus, x86_64-newest
use std::path::PathBuf;

use crate::helper::{Directory, WRITES, can_count, json, only, rows, run, skipped, stat, workload};

/// Check that what runs on a CPU is counted there and nowhere else, row by row and as a whole.
#[test]
fn programs_are_counted_on_their_cpu() {
    const NAME: &str = "programs_are_counted_on_their_cpu";
    // Starts of a program that nobody else runs: whole CPUs see all that others do.
    let directory = Directory::new(NAME);
    let copy = directory.copy(workload());
    let event = format!("uprobe:{copy}:main");
    let cpus = perfmon::cpus::online().unwrap();
    let [first, second, ..] = cpus[..] else { return skipped(NAME, "there is only one CPU") };
    if !can_count(NAME, &event) {
        return;
    }
    let on = |cpu: u32| format!("{} pin {cpu} {copy} exit 0", workload());
    let script = [on(first), on(second), on(second)].join(" && ");
    let count = |scope: &[&str]| json(&[&["-e", &event], scope, &["sh", "-c", &script]].concat());
    let result = count(&["-a", "-A"]);
    let found: Vec<_> =
        rows(&result).into_iter().map(|(_, scope, _, value)| (scope, value)).collect();
    let names: Vec<String> = cpus.iter().map(|cpu| format!("cpu:{cpu}")).collect();
    let values = [1, 2].into_iter().chain(std::iter::repeat(0));
    let expected: Vec<_> =
        names.iter().zip(values).map(|(name, value)| (Some(name.as_str()), Some(value))).collect();
    assert_eq!(found, expected);
    assert_eq!(only(&count(&["-a"])), 3);
    assert_eq!(only(&count(&["-C", &first.to_string()])), 1);
    assert_eq!(only(&count(&["-C", &second.to_string()])), 2);
}

/// Check that a CPU that is not online is refused by number, and a bad list by its item.
#[test]
fn offline_cpus_are_refused() {
    let (text, status) = run(stat(["-C", "0,60000", "true"]));
    assert_eq!(status, 125);
    assert!(text.contains("CPU 60000 is not online; choose among "), "{text}");
    let (text, status) = run(stat(["-C", "3-1", "true"]));
    let expected = "pfmon: '3-1' is no CPU or range of CPUs; write a list such as 0-3,8\n";
    assert_eq!((text.as_str(), status), (expected, 125));
}

/// Check that events that take turns on a PMU are shown as estimates with their coverage.
///
/// Without a core PMU, the only counters that may be over-committed are those for energy, with events
/// that each want them alone.
#[test]
fn events_that_share_a_pmu_are_estimates() {
    const NAME: &str = "events_that_share_a_pmu_are_estimates";
    let energy = std::fs::read_dir("/sys/bus/event_source/devices/power/events");
    let names =
        energy.into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let Some(name) = names.into_iter().find(|name| !name.contains('.')) else {
        return skipped(NAME, "there are no energy counters");
    };
    let mask = std::fs::read_to_string("/sys/bus/event_source/devices/power/cpumask").unwrap();
    let cpu = mask.trim().split([',', '-']).next().unwrap();
    let list = vec![format!("power/{name}/e"); 3].join(",");
    let mut command = stat(["--json", "-C", cpu, "-e", &list, "sleep", "0.5"]);
    command.env("LC_ALL", "C");
    let (text, _) = run(command);
    let Ok(result) = serde_json::from_str::<serde_json::Value>(&text) else {
        return skipped(NAME, text.trim());
    };
    for row in result["events"].as_array().unwrap() {
        if row["state"] == "unsupported" {
            return skipped(NAME, &row["reason"]);
        }
        assert_eq!(row["state"], "estimated", "{row}");
        let share = row["running_ns"].as_f64().unwrap() / row["enabled_ns"].as_f64().unwrap();
        let coverage = row["coverage"].as_f64().unwrap();
        assert!((coverage - share).abs() < 1e-9 && (0.1..0.7).contains(&coverage), "{row}");
        let reason = "shared the PMU: ran for part of the time, value scaled by time";
        assert_eq!(row["reason"], reason);
    }
}

/// A cgroup, removed when dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Result<Self, String> {
        let root = perfmon::cgroup::directory("/").map_err(|refusal| refusal.to_string())?;
        let path = root.join(format!("pfmon-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| error.to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Check that what runs in a cgroup is counted, and nothing beside it; each cgroup has its row.
#[test]
fn cgroups_are_counted() {
    const NAME: &str = "cgroups_are_counted";
    if !can_count(NAME, WRITES) {
        return;
    }
    let groups = match ["a", "b"].map(Cgroup::new) {
        [Ok(a), Ok(b)] => [a, b],
        [Err(why), _] | [_, Err(why)] => return skipped(NAME, why),
    };
    let [a, b] = [&groups[0], &groups[1]].map(|group| group.0.to_str().unwrap());
    let within = |path: &str, count: u32| {
        format!("sh -c 'echo $$ > {path}/cgroup.procs; exec {} writes {count}'", workload())
    };
    let beside = format!("{} writes 7", workload());
    let script = [within(a, 1000), within(b, 200), beside].join(" && ");
    let result = json(&["-e", WRITES, "--cgroup", a, "--cgroup", b, "sh", "-c", &script]);
    let scopes = [format!("cgroup:{a}"), format!("cgroup:{b}")];
    let expected = [
        (WRITES, Some(scopes[0].as_str()), "exact", Some(1000)),
        (WRITES, Some(scopes[1].as_str()), "exact", Some(200)),
    ];
    assert_eq!(rows(&result), expected);
    let (text, status) = run(stat(["--cgroup", "no/such/group", "true"]));
    assert_eq!(status, 125);
    assert!(text.starts_with("pfmon: there is no cgroup "), "{text}");
}
