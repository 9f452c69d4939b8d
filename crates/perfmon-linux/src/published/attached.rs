//! Programs at the overflows and hits of events.

use perfmon_bpf::{Link, Program};
use perfmon_core::{Encoding, Inherit, Refusal, StartOn, Target};
use perfmon_data::pmu_type;

use super::refusal;
use crate::counter::{Counter, Place};

/// A program that runs for an event. Dropping it ends that.
#[derive(Debug)]
pub struct Attached {
    _link: Link,
    _event: Counter,
}

impl Attached {
    /// Runs `program` after each `period` of `event` on `target`, or at each hit, with a `period` of 0, if the event is a
    /// tracepoint or a probe: these hits are then those of all tasks that can hit it. The program finds `cookie` with
    /// `bpf_get_attach_cookie`.
    ///
    /// # Errors
    /// The event can't be opened there, or has no programs of this kind; a period does not fit to the event.
    pub fn new(
        program: &Program,
        event: &Encoding,
        target: &Target,
        period: u64,
        cookie: u64,
    ) -> Result<Self, Refusal> {
        match (Way::of(event), period) {
            (Way::Overflow, 0) => {
                return Err(Refusal::new("a period of 0 events never passes"));
            }
            (Way::Tracepoint | Way::Probe, 1..) => {
                let why = "programs run at each hit of a tracepoint or a probe";
                return Err(Refusal::new(why).hint("take a period of 0, and count hits there"));
            }
            _ => {}
        }
        Self::at(program, event, &place_of(target)?, period, cookie)
    }

    pub(super) fn at(
        program: &Program,
        event: &Encoding,
        place: &Place,
        period: u64,
        cookie: u64,
    ) -> Result<Self, Refusal> {
        let counter = match Way::of(event) {
            Way::Overflow => Counter::open_sampling(&in_front(event), place, period),
            Way::Tracepoint | Way::Probe => Counter::open_enabled(event, place),
        };
        let counter =
            counter.map_err(|errno| crate::explain::use_of_open_event("perf_event_open", errno))?;
        let link = program.attach_event(&counter, cookie).map_err(refusal)?;
        Ok(Self { _link: link, _event: counter })
    }
}

/// The kernel's own events, which are never short of counters, see an occurrence last if they are pinned: registers that
/// are read at an overflow have counted it, too.
fn in_front(event: &Encoding) -> Encoding {
    let pinned = event.pinned || event.pmu_type == pmu_type::SOFTWARE;
    Encoding { pinned, ..event.clone() }
}

/// Where events of a target are opened.
pub(super) fn place_of(target: &Target) -> Result<Place, Refusal> {
    let signed = |id: u32| i32::try_from(id).unwrap_or(i32::MAX);
    let (tid, cpu) = match *target {
        Target::CurrentThread => (rustix::thread::gettid().as_raw_nonzero().get(), -1),
        Target::Thread(tid) => (signed(tid), -1),
        Target::Cpu(cpu) => (-1, signed(cpu)),
        Target::Cgroup { .. } | Target::Followed(_) => {
            let why = "programs read contexts of threads and of CPUs only";
            return Err(Refusal::new(why).hint("load threads (without what they create) or CPUs"));
        }
    };
    Ok(Place { tid, cpu, cgroup: None, inherit: Inherit::None, start_on: StartOn::Load })
}

/// How a program comes to run for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Overflow,
    Tracepoint,
    Probe,
}

impl Way {
    pub(super) fn of(event: &Encoding) -> Self {
        if event.path.is_some() {
            Self::Probe
        } else if event.pmu_type == pmu_type::TRACEPOINT {
            Self::Tracepoint
        } else {
            Self::Overflow
        }
    }

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Overflow => "",
            Self::Tracepoint => "_tracepoint",
            Self::Probe => "_probe",
        }
    }

    pub(super) fn stub(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Tracepoint => "hit_tracepoint",
            Self::Probe => "hit_probe",
        }
    }

    pub(super) fn callbacks(self) -> &'static str {
        match self {
            Self::Overflow => "pfm_callbacks",
            Self::Tracepoint => "pfm_tracepoint_callbacks",
            Self::Probe => "pfm_probe_callbacks",
        }
    }
}
