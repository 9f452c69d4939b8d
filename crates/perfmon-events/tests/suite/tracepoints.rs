use perfmon_events::Names;

use crate::{check, check_refused, show};

/// Check that a tracepoint's number comes from its file in tracefs.
#[test]
fn ids() {
    check("sched:sched_switch", "type 2 config 0x13a");
    check("sched:sched_switch:k", "type 2 config 0x13a -u -h");
    check("syscalls:sys_enter_write:u", "type 2 config 0x2bc -k -h");
    check("probe_program:hit:u", "type 2 config 0x708 -k -h");
}

/// Check that a tracepoint which is not there is refused with its neighbours.
#[test]
fn refusals() {
    for (text, expected) in [
        (
            "sched:sched_swich",
            "there is no tracepoint 'sched_swich' in group 'sched'; did you mean 'sched_switch'?",
        ),
        ("shed:sched_switch", "there is no group of tracepoints 'shed'; did you mean 'sched'?"),
        ("nothing:like_it", "there is no group of tracepoints 'nothing'; ls "),
        ("sched:damaged", "the id of tracepoint 'sched:damaged' is no number: 'many'"),
    ] {
        check_refused(text, expected);
    }
}

/// Check that a missing tracefs is named as the reason, with the command that helps.
#[test]
fn no_tracefs() {
    let events = Names::with_roots("/nonexistent", "/nonexistent").parse("sched:x").unwrap();
    assert_eq!(
        show(&events[0]),
        "refused: tracefs is not mounted; mount -t tracefs nodev /sys/kernel/tracing (as root)"
    );
}
