use perfmon_core::Privilege;

use super::*;

const ORDINARY: Permissions = Permissions { paranoid: Some(2), capable: false };
const ROOT: Permissions = Permissions { paranoid: Some(2), capable: true };

fn of_type(pmu_type: u32) -> Encoding {
    Encoding { pmu_type, ..Encoding::default() }
}

fn breakpoint(address: u64, length: u64, kind: u32) -> Encoding {
    Encoding { config1: address, config2: length, bp_type: kind, ..of_type(pmu_type::BREAKPOINT) }
}

fn check(errno: Errno, encoding: &Encoding, target: &Target, who: &Permissions, expected: &str) {
    let ask = Ask { encoding, target, in_group: false, core_pmu: false };
    let refusal = open(errno, &ask, who);
    assert!(refusal.to_string().starts_with(expected), "{errno:?}: {refusal}");
    assert_eq!(refusal.errno_number(), Some(errno.raw_os_error()));
    assert!(refusal.next_step().is_some(), "no hint: {refusal}");
}

type Row<'a> = (Errno, &'a Encoding, &'a Target, &'a Permissions, &'a str);

fn check_rows(rows: &[Row<'_>]) {
    for &(errno, encoding, target, who, expected) in rows {
        check(errno, encoding, target, who, expected);
    }
}

/// Check that a denial has words by what was asked, of whom, and by whom.
#[test]
fn denials_have_words() {
    let (own, cpu) = (Target::CurrentThread, Target::Cpu(0));
    let faults = of_type(pmu_type::SOFTWARE);
    let faults_user = Encoding { privilege: Privilege::USER, ..faults.clone() };
    let tracepoint = of_type(pmu_type::TRACEPOINT);
    let uprobe = Encoding { path: Some(c"/bin/true".into()), ..of_type(9) };
    let kprobe = Encoding { path: Some(c"do_exit".into()), ..of_type(9) };
    let strict = Permissions { paranoid: Some(3), capable: false };
    check_rows(&[
        (Errno::ACCESS, &faults, &own, &ORDINARY, "counting in the kernel needs privilege (EACCES"),
        (
            Errno::ACCESS,
            &faults_user,
            &own,
            &ORDINARY,
            "the target belongs to somebody else (EACCES",
        ),
        (
            Errno::ACCESS,
            &faults_user,
            &own,
            &strict,
            "this machine allows no perf events to ordinary",
        ),
        (
            Errno::ACCESS,
            &faults,
            &cpu,
            &ORDINARY,
            "counting all that runs on a CPU needs privilege",
        ),
        (Errno::ACCESS, &tracepoint, &own, &ORDINARY, "tracepoints need privilege"),
        (Errno::ACCESS, &uprobe, &own, &ORDINARY, "uprobes need privilege"),
        (Errno::ACCESS, &kprobe, &own, &ORDINARY, "kprobes need privilege"),
        (Errno::ACCESS, &faults, &own, &ROOT, "permission denied in spite of CAP_PERFMON"),
        (Errno::PERM, &faults, &own, &ROOT, "not permitted in spite of CAP_PERFMON: a container"),
    ]);
}

/// Check that user mode is offered for events that happen there, and not for the scheduler's.
#[test]
fn user_mode_is_offered_where_it_helps() {
    let offered = |config| {
        let encoding = Encoding { config, ..of_type(pmu_type::SOFTWARE) };
        let ask = Ask {
            encoding: &encoding,
            target: &Target::CurrentThread,
            in_group: false,
            core_pmu: false,
        };
        open(Errno::ACCESS, &ask, &ORDINARY).next_step().unwrap_or_default().contains(":u")
    };
    let of_software: Vec<u64> = (0..12).filter(|config| !offered(*config)).collect();
    assert_eq!(of_software, [3, 4, 11], "context-switches, cpu-migrations, cgroup-switches");
}

/// Check that each other errno has its own words, by what was asked.
#[test]
fn each_errno_has_its_own_words() {
    let (own, cpu) = (Target::CurrentThread, Target::Cpu(0));
    let faults = of_type(pmu_type::SOFTWARE);
    let cycles = of_type(pmu_type::HARDWARE);
    let tracepoint = of_type(pmu_type::TRACEPOINT);
    let uncore = of_type(20);
    let uprobe = Encoding { path: Some(c"/bin/true".into()), ..of_type(9) };
    let precise = Encoding { precise_ip: 2, ..cycles.clone() };
    check_rows(&[
        (Errno::NOENT, &cycles, &own, &ROOT, "this machine has no PMU that counts it (ENOENT"),
        (Errno::NOENT, &tracepoint, &own, &ROOT, "the tracepoint is gone"),
        (Errno::NOENT, &uncore, &own, &ROOT, "this machine has no such event"),
        (Errno::INVAL, &breakpoint(8, 8, 1), &own, &ROOT, READ_ONLY),
        (
            Errno::INVAL,
            &breakpoint(9, 8, 2),
            &own,
            &ROOT,
            "the breakpoint's length is not 1, 2, 4 or 8",
        ),
        (
            Errno::INVAL,
            &breakpoint(9, 3, 2),
            &own,
            &ROOT,
            "the breakpoint's length is not 1, 2, 4 or 8",
        ),
        (
            Errno::INVAL,
            &breakpoint(9, 0, 2),
            &own,
            &ROOT,
            "the breakpoint's length is not 1, 2, 4 or 8",
        ),
        (Errno::INVAL, &precise, &own, &ROOT, "the PMU can't be as precise as asked"),
        (Errno::INVAL, &uncore, &own, &ROOT, "the PMU counts for CPUs, not for threads"),
        (Errno::INVAL, &uncore, &cpu, &ROOT, "the event's code is not valid on this machine"),
        (Errno::NODEV, &faults, &cpu, &ROOT, "the CPU is offline"),
        (Errno::NODEV, &faults, &own, &ROOT, "the PMU lacks what the event needs"),
        (Errno::OPNOTSUPP, &precise, &own, &ROOT, "the PMU has no precise events"),
        (Errno::OPNOTSUPP, &cycles, &own, &ROOT, "the PMU does not support the event in this form"),
        (Errno::SRCH, &faults, &own, &ROOT, "the target has ended (ESRCH"),
        (Errno::BUSY, &cycles, &own, &ROOT, "another user has the PMU to itself (EBUSY"),
        (Errno::NOSPC, &breakpoint(8, 8, 2), &own, &ROOT, "all breakpoint registers are in use"),
        (Errno::NOSPC, &cycles, &own, &ROOT, "the PMU has no room left (ENOSPC"),
        (Errno::MFILE, &faults, &own, &ROOT, "this process has no file descriptor left (EMFILE"),
        (Errno::NFILE, &faults, &own, &ROOT, "the machine has no file descriptor left (ENFILE"),
        (Errno::NOMEM, &faults, &own, &ROOT, "the kernel has no memory for it"),
        (Errno::TOOBIG, &faults, &own, &ROOT, "this kernel is older than the event's attributes"),
        (Errno::NOSYS, &faults, &own, &ROOT, "this kernel has no perf events"),
        (Errno::FAULT, &uprobe, &own, &ROOT, "the event's file name is not readable"),
    ]);
}

const READ_ONLY: &str = if cfg!(target_arch = "x86_64") {
    "this machine can't watch for reads alone"
} else {
    "the breakpoint's address or kind can't be watched here"
};

/// Check that a probe of the kernel and an event of a cgroup have words of their own.
#[test]
fn probes_of_the_kernel_and_cgroups_have_words() {
    let own = Target::CurrentThread;
    let kprobe = Encoding { path: Some(c"do_exit".into()), ..of_type(9) };
    let cgroup = Target::Cgroup { path: std::sync::Arc::new("/sys/fs/cgroup/a".into()), cpu: 0 };
    let faults = of_type(pmu_type::SOFTWARE);
    check_rows(&[
        (Errno::NOENT, &kprobe, &own, &ROOT, "the kernel has no such function (ENOENT"),
        (Errno::INVAL, &kprobe, &own, &ROOT, "the kernel can't be probed there"),
        (Errno::ILSEQ, &kprobe, &own, &ROOT, "the kernel can't be probed there"),
        (
            Errno::ADDRNOTAVAIL,
            &kprobe,
            &own,
            &ROOT,
            "several functions of the kernel have this name",
        ),
        (
            Errno::NOENT,
            &faults,
            &cgroup,
            &ROOT,
            "the perf_event controller does not know the cgroup",
        ),
    ]);
}

/// Check that a group's member is told about its group, and that reads have words of their own.
#[test]
fn groups_and_reads_have_words_too() {
    let cycles = of_type(pmu_type::HARDWARE);
    let ask =
        Ask { encoding: &cycles, target: &Target::CurrentThread, in_group: true, core_pmu: true };
    let refusal = open(Errno::INVAL, &ask, &ROOT);
    assert!(refusal.why().starts_with("the event does not fit into its group"));
    assert_eq!(
        open(Errno::TOOBIG, &ask, &ROOT).why(),
        "its group has too many events: it could not be read as a whole"
    );
    // A machine with a PMU is not told to get one.
    assert_eq!(open(Errno::NOENT, &ask, &ROOT).why(), "this machine's PMU does not count it");
    let refusal = use_of_open_event("read", Errno::CHILD);
    assert!(refusal.to_string().contains("(ECHILD from read)"), "{refusal}");
    let refusal = use_of_open_event("ioctl", Errno::from_raw_os_error(4095));
    assert_eq!(refusal.to_string(), "the kernel refused (an unknown errno from ioctl)");
}
