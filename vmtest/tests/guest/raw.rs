//! Events of the calling thread without perfmon's model: what the kernel itself says.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use perfmon_core::{Encoding, Privilege};
use perfmon_data::{Attr, GroupRead, group_read_words, pmu_type};
use perfmon_sys::{Errno, OpenFlags, perf_event_open, read_words};

/// `PERF_COUNT_HW_INSTRUCTIONS`.
const INSTRUCTIONS: u64 = 1;

/// Instructions in user mode.
pub(crate) fn instructions() -> Encoding {
    Encoding {
        pmu_type: pmu_type::HARDWARE,
        config: INSTRUCTIONS,
        privilege: Privilege::USER,
        ..Encoding::default()
    }
}

pub(crate) fn open(
    encoding: &Encoding,
    leader: Option<BorrowedFd<'_>>,
    disabled: bool,
) -> Result<OwnedFd, Errno> {
    // The kernel copies the name while it opens the event.
    let path = encoding.path.as_ref();
    let attr = Attr {
        encoding,
        path_address: path.map(|path| path.as_ptr().expose_provenance() as u64),
        disabled,
        inherit: false,
        enable_on_exec: false,
        by_thread: false,
        thread_records: false,
        sample_period: 0,
    };
    perf_event_open(&attr.to_bytes(), 0, -1, leader, OpenFlags { pid_cgroup: false })
}

/// The count of an event on its own, which was on the PMU all the time.
pub(crate) fn read(event: impl AsFd) -> u64 {
    let mut words = [0; group_read_words(1)];
    let length = read_words(event, &mut words).unwrap();
    let read = GroupRead::parse(&words[..length]).unwrap();
    assert_eq!(read.running_ns, read.enabled_ns);
    read.values[0]
}
