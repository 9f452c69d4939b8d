//! The bare system calls.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use perfmon::{Encoding, Event};

const FORMAT_TIMES_GROUP: u64 = 1 | 2 | 8;
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;

/// Events of the calling thread in one group, as a session opens them.
pub struct RawGroup(Vec<OwnedFd>);

impl RawGroup {
    /// Opens `events`, stopped.
    pub fn open(events: &[Event]) -> Self {
        let mut group: Vec<OwnedFd> = Vec::with_capacity(events.len());
        for event in events {
            let fd = open(event.encoding.as_ref().expect("checked"), group.first());
            group.push(fd);
        }
        Self(group)
    }

    pub fn enable(&self) {
        self.ioctl(ENABLE);
    }

    pub fn disable(&self) {
        self.ioctl(DISABLE);
    }

    pub fn read(&self, words: &mut [u64; 20]) {
        // SAFETY: `words` is writable for its size.
        let bytes = unsafe {
            libc::read(self.0[0].as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(words))
        };
        assert!(bytes > 0);
    }

    fn ioctl(&self, request: libc::c_ulong) {
        // SAFETY: takes an integer; no memory is involved.
        let result = unsafe { libc::ioctl(self.0[0].as_raw_fd(), request as _, 0) };
        assert_eq!(result, 0);
    }
}

/// One stopped event of each type of `events`: while it is open, the kernel stays ready for its type.
pub fn keep_open(events: &[Event]) -> Vec<OwnedFd> {
    let encodings = events.iter().filter_map(|event| event.encoding.as_ref().ok());
    let mut configs: Vec<u64> = encodings.map(|encoding| encoding.config).collect();
    configs.sort_unstable();
    configs.dedup();
    let encoding = |config| Encoding { pmu_type: 1, config, ..Encoding::default() };
    configs.into_iter().map(|config| open(&encoding(config), None)).collect()
}

fn open(encoding: &Encoding, leader: Option<&OwnedFd>) -> OwnedFd {
    let mut attr = [0_u8; 136];
    let privilege = &encoding.privilege;
    let flags = u64::from(leader.is_none())
        | u64::from(privilege.exclude_user) << 4
        | u64::from(privilege.exclude_kernel) << 5
        | u64::from(privilege.exclude_hv) << 6;
    attr[..4].copy_from_slice(&encoding.pmu_type.to_ne_bytes());
    attr[4..8].copy_from_slice(&136_u32.to_ne_bytes());
    attr[8..16].copy_from_slice(&encoding.config.to_ne_bytes());
    attr[32..40].copy_from_slice(&FORMAT_TIMES_GROUP.to_ne_bytes());
    attr[40..48].copy_from_slice(&flags.to_ne_bytes());
    let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: `attr` is readable for the size that it says it has.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, leader, 8) };
    let fd = i32::try_from(fd).expect("a descriptor is an int");
    assert!(fd >= 0, "perf_event_open: {}", std::io::Error::last_os_error());
    // SAFETY: the kernel just gave it to us.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
