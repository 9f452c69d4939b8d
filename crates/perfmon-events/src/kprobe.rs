//! Probes of the kernel's functions.

use std::ffi::CString;
use std::path::Path;

use perfmon_core::Refusal;

use crate::blind::Subject;
use crate::found::Found;
use crate::sysfs::Pmu;
use crate::uprobe;

/// Looks up a probe `offset` bytes behind the begin of a function of the kernel, or of the return from it. Whether
/// there is such a function, and whether it may be probed there, the kernel says when the event is opened.
///
/// References: perf_event_open(2), "kprobe and uprobe" (`config1` is the function, `config2` the offset).
pub(crate) fn find(
    devices: &Path,
    function: &str,
    offset: u64,
    is_return: bool,
) -> Result<Found, Refusal> {
    uprobe::refuse_return_inside(offset, is_return)?;
    let pmu = Pmu::open(devices, "kprobe").map_err(|refusal| {
        refusal.hint("probes of the kernel need CONFIG_KPROBE_EVENTS; tracepoints may do as well")
    })?;
    let function = CString::new(function)
        .map_err(|_| Refusal::new(format!("the function '{function}' holds a NUL byte")))?;
    uprobe::encode(&pmu, function, offset, is_return, Subject::Kprobe)
}
