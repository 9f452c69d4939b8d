use crate::{check, check_refused, event};

/// Check that events which are only in the kernel are refused where the kernel is left out.
#[test]
fn always_zero_in_user_mode() {
    for name in [
        "context-switches",
        "cs",
        "cpu-migrations",
        "migrations",
        "cgroup-switches",
        "sched:sched_switch",
    ] {
        for modifier in ["u", "h", "uh"] {
            check_refused(&format!("{name}:{modifier}"), "always reads 0");
        }
        for modifier in ["k", "uk", "ukh"] {
            let text = format!("{name}:{modifier}");
            assert!(event(&text).encoding.is_ok(), "{text}");
        }
    }
}

/// Check that the clocks are refused with a level, encoded for user mode, and open to all others.
#[test]
fn clocks() {
    for name in ["task-clock", "cpu-clock"] {
        for modifier in ["u", "k", "h"] {
            check_refused(&format!("{name}:{modifier}"), "the clocks ignore 'u', 'k' and 'h'");
        }
    }
    check("task-clock:D", "type 1 config 0x1 -k -h pinned");
    check("task-clock:ukh", "type 1 config 0x1 -k -h");
}

/// Check that faults are refused only where neither user mode nor the kernel is left.
#[test]
fn faults() {
    check("page-faults:u", "type 1 config 0x2 -k -h");
    check("page-faults:k", "type 1 config 0x2 -u -h");
    for name in ["page-faults", "minor-faults", "major-faults", "mem:0x1000/8:w", "mem:0x1000:x"] {
        check_refused(&format!("{name}:h"), "without 'u' and 'k' it always reads 0");
    }
}

/// Check that code of a program is not counted in the kernel; the kernel's own code is.
#[cfg(target_arch = "x86_64")]
#[test]
fn code() {
    check_refused("mem:0x1000:x:k", "without 'u' this always reads 0");
    check("mem:0x1000:x:u", "type 5 config 0x0 config1 0x1000 config2 0x8 bp_type 0x4 -k -h");
    let kernel = "type 5 config 0x0 config1 0xffffffff81000000 config2 0x8 bp_type 0x4 -u -h";
    check("mem:0xffffffff81000000:x:k", kernel);
}

/// Check that events which nothing raises are refused with any modifier and without.
#[test]
fn nothing_counts() {
    for name in ["dummy", "bpf-output", "dummy:u", "bpf-output:D"] {
        check_refused(name, "this event counts nothing");
    }
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        check_refused("alignment-faults", "nothing raises this event on x86");
        check_refused("emulation-faults:u", "nothing raises this event on x86");
    }
}

/// Check that events whose modifier the kernel ignores are refused with it.
#[test]
fn ignored() {
    for name in ["syscalls:sys_enter_write", "probe_program:hit"] {
        for modifier in ["k", "h"] {
            check_refused(&format!("{name}:{modifier}"), "whether or not it excludes user mode");
        }
    }
    for name in
        ["task-clock", "page-faults", "cs", "sched:sched_switch", "mem:0x1000", "mem:0x1000:x"]
    {
        check_refused(&format!("{name}:G"), "ignores 'G'");
        check_refused(&format!("{name}:I"), "ignores 'I'");
        assert!(event(&format!("{name}:H")).encoding.is_ok(), "{name}");
        assert!(event(&format!("{name}:GH")).encoding.is_ok(), "{name}");
    }
}
