use std::ffi::CStr;
use std::sync::Arc;

/// An encoded event: what a PMC holds. The fields are those of the kernel's `perf_event_attr`.
///
/// # References
/// - perf_event_open(2), "Arguments"
#[doc(alias = "perf_event_attr")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encoding {
    /// `type`: the PMU.
    pub pmu_type: u32,
    /// `config`: the event within the PMU.
    pub config: u64,
    /// `config1`, or `bp_addr` of a data breakpoint.
    pub config1: u64,
    /// `config2`, or `bp_len` of a data breakpoint.
    pub config2: u64,
    /// `config3`.
    pub config3: u64,
    /// `bp_type`: what kind of access a breakpoint counts; 0 for all other events.
    pub bp_type: u32,
    /// What `config1` points to: a uprobe's file, by its absolute path, or a kprobe's function; `None` for all
    /// other events.
    pub path: Option<Arc<CStr>>,
    /// At which privilege levels the event counts.
    pub privilege: Privilege,
    /// `pinned`: always on the PMU, or in error.
    pub pinned: bool,
    /// `exclusive`: alone on the PMU.
    pub exclusive: bool,
    /// `precise_ip`: 0 to 3.
    pub precise_ip: u8,
}

/// At which privilege levels an event counts: the `exclude_*` bits of `perf_event_attr`.
///
/// The default excludes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Privilege {
    /// Does not count in user mode.
    pub exclude_user: bool,
    /// Does not count in the kernel.
    pub exclude_kernel: bool,
    /// Does not count in the hypervisor.
    pub exclude_hv: bool,
    /// Does not count while the CPU is idle.
    pub exclude_idle: bool,
    /// Does not count on the host.
    pub exclude_host: bool,
    /// Does not count in guests.
    pub exclude_guest: bool,
}

impl Privilege {
    /// User mode only: what an ordinary user may count at `perf_event_paranoid` 2.
    pub const USER: Self = Self {
        exclude_user: false,
        exclude_kernel: true,
        exclude_hv: true,
        exclude_idle: false,
        exclude_host: false,
        exclude_guest: false,
    };
}
