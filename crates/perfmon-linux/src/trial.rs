//! Whether events open here, and which of them the kernel counts together: found by trying.

use std::time::{Duration, Instant};

use perfmon_core::{Encoding, Inherit, Privilege, Refusal, StartOn, Target};
use perfmon_data::{GroupRead, group_read_words};
use perfmon_sys::{Errno, enable, read_words};

use crate::budget;
use crate::counter::{Counter, Place};
use crate::explain::{self, Ask};
use crate::permissions::{Permissions, has_core_pmu};

/// How an event opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// As it was asked for.
    AsAsked,
    /// Only for user mode: this user may not count in the kernel.
    UserOnly,
}

/// Tries events on the calling thread, or on a CPU for events that only CPUs have. Nothing stays open.
#[derive(Debug)]
pub struct Trial {
    permissions: Permissions,
    core_pmu: bool,
}

/// For so long at most a group is given the chance to run.
const RUN_MAX: Duration = Duration::from_millis(20);
/// So much enabled time tells whether a group runs.
const ENABLED_NS: u64 = 200_000;

impl Trial {
    /// With what this process may do now.
    pub fn new() -> Self {
        Self { permissions: Permissions::current(), core_pmu: has_core_pmu() }
    }

    /// Opens and closes one event; `cpus` are the CPUs that its PMU names.
    ///
    /// # Errors
    /// [`Refusal`] with the kernel's errno and its meaning.
    pub fn open(&self, encoding: &Encoding, cpus: Option<&[u32]>) -> Result<Opened, Refusal> {
        let (place, target) = place(cpus);
        let errno = match Counter::open(encoding, &place, None) {
            Ok(_) => return Ok(Opened::AsAsked),
            Err(errno) => errno,
        };
        let denied = errno == Errno::ACCESS || errno == Errno::PERM;
        if denied && !encoding.privilege.exclude_kernel {
            let user = Encoding { privilege: Privilege::USER, ..encoding.clone() };
            if Counter::open(&user, &place, None).is_ok() {
                return Ok(Opened::UserOnly);
            }
        }
        Err(self.refusal(errno, encoding, &target, false))
    }

    /// As [`open`](Self::open), but only as it was asked for.
    ///
    /// # Errors
    /// [`Refusal`] with the kernel's errno and its meaning.
    pub fn open_as_asked(&self, encoding: &Encoding, cpus: Option<&[u32]>) -> Result<(), Refusal> {
        let (place, target) = place(cpus);
        let opened = Counter::open(encoding, &place, None);
        opened.map(|_| ()).map_err(|errno| self.refusal(errno, encoding, &target, false))
    }

    /// Whether the kernel counts these events together: all open as one group, and the group gets onto the PMU
    /// while nothing else of this process wants it. Events of a thread follow one that counts on CPUs only.
    ///
    /// # Errors
    /// [`Refusal`] for an event that does not open by itself either.
    pub fn together(&self, events: &[(&Encoding, Option<&[u32]>)]) -> Result<bool, Refusal> {
        let Some(((first, cpus), rest)) = events.split_first() else { return Ok(true) };
        budget::reserve(events.len() as u64)?;
        let common = events.iter().find_map(|(_, cpus)| *cpus);
        let (at, target) = place(cpus.or(common));
        let leader = Counter::open(first, &at, None)
            .map_err(|errno| self.refusal(errno, first, &target, false))?;
        let mut members = Vec::new();
        for (encoding, cpus) in rest {
            let (own, own_target) = place(cpus.or(common));
            if own_target != target {
                return Ok(false);
            }
            match Counter::open(encoding, &at, Some(&leader)) {
                Ok(member) => members.push(member),
                Err(Errno::INVAL | Errno::NOSPC | Errno::BUSY | Errno::TOOBIG) => {
                    // Refused in the group; if it opens by itself, the group is the reason.
                    return match Counter::open(encoding, &own, None) {
                        Ok(_) => Ok(false),
                        Err(errno) => Err(self.refusal(errno, encoding, &own_target, true)),
                    };
                }
                Err(errno) => return Err(self.refusal(errno, encoding, &own_target, true)),
            }
        }
        runs(&leader, events.len())
    }

    fn refusal(
        &self,
        errno: Errno,
        encoding: &Encoding,
        target: &Target,
        in_group: bool,
    ) -> Refusal {
        let ask = Ask { encoding, target, in_group, core_pmu: self.core_pmu };
        explain::open(errno, &ask, &self.permissions)
    }
}

impl Default for Trial {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether the group of `leader` gets onto the PMU. The kernel takes groups that never will: a counter may be
/// in use by the machine itself, as by the NMI watchdog.
fn runs(leader: &Counter, events: usize) -> Result<bool, Refusal> {
    enable(leader).map_err(|errno| explain::use_of_open_event("ioctl", errno))?;
    let mut words = vec![0; group_read_words(events)];
    let end = Instant::now() + RUN_MAX;
    loop {
        let count = read_words(leader, &mut words)
            .map_err(|errno| explain::use_of_open_event("read", errno))?;
        let Some(read) = words.get(..count).and_then(GroupRead::parse) else { return Ok(false) };
        if read.running_ns > 0 && read.running_ns == read.enabled_ns {
            return Ok(true);
        }
        if read.enabled_ns > ENABLED_NS || Instant::now() > end {
            return Ok(false);
        }
        std::hint::spin_loop();
    }
}

fn place(cpus: Option<&[u32]>) -> (Place, Target) {
    let cpu = cpus.and_then(|cpus| cpus.first()).copied();
    let (tid, on) = match cpu.and_then(|cpu| i32::try_from(cpu).ok()) {
        Some(cpu) => (-1, cpu),
        None => (0, -1),
    };
    let place =
        Place { tid, cpu: on, cgroup: None, inherit: Inherit::None, start_on: StartOn::Call };
    (place, cpu.map_or(Target::CurrentThread, Target::Cpu))
}
