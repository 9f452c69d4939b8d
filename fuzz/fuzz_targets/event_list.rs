//! Event lists, on four machines: the length chooses one.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use perfmon_events::Names;
use perfmon_fuzz::{check_list, fixtures, machine};

static MACHINES: LazyLock<Vec<Names>> = LazyLock::new(|| {
    let mut machines: Vec<Names> =
        ["zen3", "alder_lake", "big_little"].into_iter().map(machine).collect();
    machines.push(Names::with_roots(fixtures().join("sysfs"), fixtures().join("tracefs")));
    machines
});

fuzz_target!(|list: &str| {
    // What a probe is of may be any file of this machine.
    if list.contains("probe:") {
        return;
    }
    check_list(&MACHINES[list.len() % MACHINES.len()], list);
});
