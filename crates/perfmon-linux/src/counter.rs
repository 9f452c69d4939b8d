use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use perfmon_core::{Encoding, Inherit, Privilege, StartOn};
use perfmon_data::{Attr, pmu_type};
use perfmon_sys::{Errno, OpenFlags, perf_event_open};

/// `PERF_COUNT_SW_DUMMY`.
const DUMMY: u64 = 9;

/// Where events are opened: the resolved form of a context's target.
#[derive(Debug)]
pub(crate) struct Place {
    /// A thread's id, 0 for the calling thread, -1 for all.
    pub(crate) tid: i32,
    /// A CPU, -1 for all.
    pub(crate) cpu: i32,
    /// The directory of a cgroup, which then stands in for the thread.
    pub(crate) cgroup: Option<OwnedFd>,
    pub(crate) inherit: Inherit,
    pub(crate) start_on: StartOn,
}

/// One event in the kernel: one descriptor.
#[derive(Debug)]
pub(crate) struct Counter {
    fd: OwnedFd,
}

impl Place {
    /// A thread on whatever CPU.
    pub(crate) fn is_thread(&self) -> bool {
        self.tid >= 0 && self.cpu == -1 && self.cgroup.is_none()
    }
}

impl Counter {
    /// Opens an event at `place`. A leader (no `leader` given) starts disabled, unless loading starts it; a
    /// sibling is enabled and counts whenever its leader does, so that a group is switched by its leader alone.
    pub(crate) fn open(
        encoding: &Encoding,
        place: &Place,
        leader: Option<&Counter>,
    ) -> Result<Self, Errno> {
        Self::open_overflowing(encoding, place, leader, 0)
    }

    /// As [`open`](Self::open), and it overflows after each `period`, unless that is 0.
    pub(crate) fn open_overflowing(
        encoding: &Encoding,
        place: &Place,
        leader: Option<&Counter>,
        period: u64,
    ) -> Result<Self, Errno> {
        let disabled = leader.is_none() && place.start_on != StartOn::Load;
        Self::open_in_state(encoding, place, leader, disabled, period)
    }

    /// Opens an event that counts at once.
    pub(crate) fn open_enabled(encoding: &Encoding, place: &Place) -> Result<Self, Errno> {
        Self::open_in_state(encoding, place, None, false, 0)
    }

    fn open_in_state(
        encoding: &Encoding,
        place: &Place,
        leader: Option<&Counter>,
        disabled: bool,
        period: u64,
    ) -> Result<Self, Errno> {
        // The kernel copies the name while it opens the event.
        let path_address =
            encoding.path.as_ref().map(|path| path.as_ptr().expose_provenance() as u64);
        let attr = Attr {
            encoding,
            path_address,
            disabled,
            inherit: place.inherit.follows(),
            enable_on_exec: leader.is_none() && place.start_on == StartOn::Exec,
            by_thread: place.inherit == Inherit::TreeByThread,
            thread_records: false,
            sample_period: period,
        };
        Self::open_attr(&attr, place, leader)
    }

    /// Opens an event that counts at once, and overflows after each `period`.
    pub(crate) fn open_sampling(
        encoding: &Encoding,
        place: &Place,
        period: u64,
    ) -> Result<Self, Errno> {
        let attr = Attr {
            encoding,
            path_address: None,
            disabled: false,
            inherit: false,
            enable_on_exec: false,
            by_thread: false,
            thread_records: false,
            sample_period: period,
        };
        Self::open_attr(&attr, place, None)
    }

    /// Opens an event that counts nothing, but is enabled as any other.
    pub(crate) fn open_witness(place: &Place) -> Result<Self, Errno> {
        Self::open(&dummy(), place, None)
    }

    /// Opens an event that counts nothing, but leaves records of the threads at `place`, from now on.
    pub(crate) fn open_tracker(place: &Place) -> Result<Self, Errno> {
        let attr = Attr {
            encoding: &dummy(),
            path_address: None,
            disabled: false,
            inherit: place.inherit.follows(),
            enable_on_exec: false,
            by_thread: false,
            thread_records: true,
            sample_period: 0,
        };
        Self::open_attr(&attr, place, None)
    }

    /// The same event, by another descriptor.
    pub(crate) fn duplicate(&self) -> Result<Self, Errno> {
        let fd = self
            .fd
            .try_clone()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Self { fd })
    }

    fn open_attr(attr: &Attr<'_>, place: &Place, leader: Option<&Counter>) -> Result<Self, Errno> {
        let pid = place.cgroup.as_ref().map_or(place.tid, AsRawFd::as_raw_fd);
        let flags = OpenFlags { pid_cgroup: place.cgroup.is_some() };
        let leader = leader.map(AsFd::as_fd);
        perf_event_open(&attr.to_bytes(), pid, place.cpu, leader, flags).map(|fd| Self { fd })
    }
}

fn dummy() -> Encoding {
    Encoding {
        pmu_type: pmu_type::SOFTWARE,
        config: DUMMY,
        privilege: Privilege::USER,
        ..Encoding::default()
    }
}

impl AsFd for Counter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
