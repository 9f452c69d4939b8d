// guest rows: arm64, x86_64
//! Probes of the kernel's functions, which not every kernel has.

use std::ffi::CString;

use perfmon::{Count, Scope, Session};
use perfmon_core::{Encoding, Privilege};

use crate::helper::skipped;
use crate::raw::{open, read};

/// The function behind getppid(2).
const GETPPID: &str =
    if cfg!(target_arch = "aarch64") { "__arm64_sys_getppid" } else { "__x64_sys_getppid" };

fn has_kprobes(name: &str) -> bool {
    let has = std::path::Path::new("/sys/bus/event_source/devices/kprobe").exists();
    if !has {
        skipped(name, "this kernel has no kprobes");
    } else if !perfmon::Permissions::current().kernel_allowed() {
        skipped(name, "kprobes need privilege");
        return false;
    }
    has
}

/// Check that each call of a function is counted, and each return, and none of a function that is not called.
#[test]
fn calls_in_the_kernel_are_counted() {
    if !has_kprobes("calls_in_the_kernel_are_counted") {
        return;
    }
    let list = format!("kprobe:{GETPPID},kretprobe:{GETPPID},kprobe:{GETPPID}:k,kprobe:do_exit");
    let mut session = Session::new(&list).unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    let ((), counts) = session.region(|| {
        for _ in 0..100 {
            std::hint::black_box(rustix::process::getppid());
        }
    });
    let found: Vec<_> = counts.iter().map(|row| row.tally.count.exact()).collect();
    assert_eq!(found, [Some(100), Some(100), Some(100), Some(0)], "{counts:?}");
}

/// Check that probes that can't be are refused, each with its reason, and spoil no other event.
#[test]
fn impossible_probes_are_refused() {
    if !has_kprobes("impossible_probes_are_refused") {
        return;
    }
    let list = format!(
        "kprobe:no_such_function,kprobe:{GETPPID}:u,kretprobe:{GETPPID}+4,kprobe:{GETPPID}+1,page-faults:u"
    );
    let mut session = Session::new(&list).unwrap();
    session.load(&Scope::CurrentThread).unwrap();
    session.start().unwrap();
    let ((), counts) = session.region(|| ());
    let rows: Vec<_> = counts.iter().collect();
    let reason = |place: usize| rows[place].tally.count.reason().unwrap().to_string();
    assert!(reason(0).starts_with("the kernel has no such function (ENOENT"), "{}", reason(0));
    let blind = "this probe lies in the kernel: without 'k' it always reads 0";
    assert!(reason(1).starts_with(blind), "{}", reason(1));
    assert!(
        reason(2).starts_with("a return probe belongs on the first instruction"),
        "{}",
        reason(2)
    );
    let closed = "the kernel can't be probed there";
    assert!(reason(3).starts_with(closed), "{}", reason(3));
    assert_eq!(rows[4].tally.count, Count::Exact(0));
}

/// Check that a probe which leaves the kernel out counts nothing: that is why it is refused.
#[test]
fn probes_without_the_kernel_count_nothing() {
    if !has_kprobes("probes_without_the_kernel_count_nothing") {
        return;
    }
    let pmu_type = std::fs::read_to_string("/sys/bus/event_source/devices/kprobe/type").unwrap();
    let path = Some(CString::new(GETPPID).unwrap().into());
    let pmu_type = pmu_type.trim().parse().unwrap();
    let all = Encoding { pmu_type, path, ..Encoding::default() };
    let user = Encoding { privilege: Privilege::USER, ..all.clone() };
    let events = [all, user].map(|encoding| open(&encoding, None, false).unwrap());
    for _ in 0..100 {
        std::hint::black_box(rustix::process::getppid());
    }
    assert_eq!(events.map(read), [100, 0]);
}
