//! Probes of user code.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perfmon_core::{Encoding, Refusal};

use crate::blind::Subject;
use crate::found::Found;
use crate::syntax::Place;
use crate::sysfs::{Pmu, Registers};
use crate::{elf, read};

/// Looks up a probe at `place` of the file `path`; `is_return` for the return from it.
///
/// The kernel puts the probe where it is told: an offset that is not at the start of an instruction
/// damages the probed program.
///
/// References: perf_event_open(2), "kprobe and uprobe" (`config1` is the path, `config2` the offset).
pub(crate) fn find(
    devices: &Path,
    path: &str,
    place: &Place<'_>,
    is_return: bool,
) -> Result<Found, Refusal> {
    if let Place::Symbol { offset, .. } = place {
        refuse_return_inside(*offset, is_return)?;
    }
    let pmu = Pmu::open(devices, "uprobe")?;
    let file = std::fs::canonicalize(path)
        .map_err(|error| read::refusal("realpath", path.as_ref(), &error))?;
    let offset = elf::file_offset(&file, place)?;
    let file = CString::new(file.as_os_str().as_bytes())
        .map_err(|_| Refusal::new(format!("the path '{path}' holds a NUL byte")))?;
    encode(&pmu, file, offset, is_return, Subject::Uprobe)
}

/// Refuses a return probe `offset` bytes inside a function: the kernel replaces what it takes for the return address,
/// which is some other word of the stack there.
pub(crate) fn refuse_return_inside(offset: u64, is_return: bool) -> Result<(), Refusal> {
    if is_return && offset > 0 {
        let why = "a return probe belongs on the first instruction of a function";
        return Err(Refusal::new(why).hint("leave the offset out"));
    }
    Ok(())
}

/// A probe of `pmu`, of user code or of the kernel, at `offset` in what is called `name`.
pub(crate) fn encode(
    pmu: &Pmu<'_>,
    name: CString,
    offset: u64,
    is_return: bool,
    subject: Subject,
) -> Result<Found, Refusal> {
    let mut registers = Registers::default();
    if is_return {
        registers.set("retprobe", &pmu.field("retprobe")?, 1)?;
    }
    let encoding = Encoding {
        pmu_type: pmu.kind,
        config: registers.words[0],
        config2: offset,
        path: Some(name.into()),
        ..Encoding::default()
    };
    Ok(Found::new(encoding, subject))
}
