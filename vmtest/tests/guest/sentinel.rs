// guest rows: arm64, x86_64
//! Whether the guest is what it should be, asked without perfmon: if not, no other test means anything.

use std::os::fd::AsFd;

use perfmon_core::Encoding;
use perfmon_sys::{Errno, disable, enable};
use perfmon_vmtest::{SPIN_INSTRUCTIONS, spin};

use crate::helper::{Guest, skipped};
use crate::raw::{instructions, open, read};

/// Instructions of a spin, and of what is around it.
fn instructions_of(iterations: u64) -> u64 {
    let event = open(&instructions(), None, true).unwrap();
    enable(&event).unwrap();
    spin(iterations);
    disable(&event).unwrap();
    read(&event)
}

/// Check that the kernel and the CPUs are those of the row.
#[test]
fn kernel_and_cpus_are_the_rows() {
    let Some(guest) = Guest::found() else {
        return skipped("kernel_and_cpus_are_the_rows", "this is no guest");
    };
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    assert!(release.starts_with(&guest.kernel), "{} runs {release}", guest.name);
    assert_eq!(std::thread::available_parallelism().unwrap().get(), guest.cpus);
}

/// Check that the kernel's core PMU has as many counters as the row says, or is not there.
#[test]
fn pmu_is_the_rows() {
    let Some(guest) = Guest::found() else {
        return skipped("pmu_is_the_rows", "this is no guest");
    };
    assert_eq!(perfmon::has_core_pmu(), guest.counters > 0);
    if guest.counters == 0 {
        assert_eq!(open(&instructions(), None, true).map(drop), Err(Errno::NOENT));
        return;
    }
    let leader = open(&instructions(), None, false).unwrap();
    let mut members = Vec::new();
    // An enabled leader makes the kernel check the whole group.
    let refused = loop {
        match open(&instructions(), Some(leader.as_fd()), false) {
            Ok(member) => members.push(member),
            Err(errno) => break errno,
        }
    };
    assert_eq!((1 + members.len(), refused), (guest.counters, Errno::INVAL));
}

/// Check that the counters have as many bits as the row says: one that is long, and read in user mode, is had only where
/// each counter is long.
#[test]
fn counters_are_as_wide_as_the_rows() {
    let Some(guest) = Guest::found().filter(|guest| guest.counters > 0) else {
        return skipped("counters_are_as_wide_as_the_rows", "this is no guest with a PMU");
    };
    // long, rdpmc
    let encoding = Encoding { config1: 0b11, ..instructions() };
    let opened = open(&encoding, None, true).map(drop);
    let expected = if guest.counter_bits == 64 { Ok(()) } else { Err(Errno::OPNOTSUPP) };
    assert_eq!(opened, expected);
}

/// Check that a loop's instructions are counted to the unit, and twice alike.
#[test]
fn instructions_are_exact() {
    let Some(guest) = Guest::found() else {
        return skipped("instructions_are_exact", "this is no guest");
    };
    if !guest.exact {
        return;
    }
    let around = instructions_of(1) - SPIN_INSTRUCTIONS;
    for _ in 0..2 {
        let iterations = 10_000_000;
        assert_eq!(instructions_of(iterations), around + SPIN_INSTRUCTIONS * iterations);
    }
}
