use perfmon_events::{Names, default_events};

/// Check that the default events are read without a file, and are none that would be blind.
#[test]
fn all_are_true() {
    let names = Names::with_roots("/nonexistent", "/nonexistent");
    for kernel_allowed in [true, false] {
        for core_pmu in [true, false] {
            let list = default_events(kernel_allowed, core_pmu);
            assert_eq!(list.len(), if core_pmu { 8 } else { 4 });
            for event in names.parse(&list.join(",")).unwrap() {
                let encoding = event.encoding.unwrap();
                let may_open = kernel_allowed || encoding.privilege.exclude_kernel;
                assert!(may_open, "{} needs the kernel", event.text);
            }
        }
    }
}

/// Check the lists themselves.
#[test]
fn lists() {
    let software = ["task-clock", "context-switches", "cpu-migrations", "page-faults"];
    assert_eq!(default_events(true, false), software);
    let user = ["task-clock", "page-faults:u", "minor-faults:u", "major-faults:u"];
    assert_eq!(default_events(false, false), user);
    let user_hardware = ["cycles:u", "instructions:u", "branches:u", "branch-misses:u"];
    assert_eq!(default_events(false, true)[4..], user_hardware);
}
