//! One try for each ability. What is made is closed again.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use perfmon_sys::{
    BpfInfo, BpfMap, Errno, MapSpec, MapTypes, OpenFlags, ProgramSpec, SharedMemory, TaskFilter,
    map_type,
};

use super::{Lack, explain};
use crate::btf::kernel_types;
use crate::kind::Kind;

/// r0 = 0; exit
const RETURN_0: &[u8] = b"\xb7\0\0\0\0\0\0\0\x95\0\0\0\0\0\0\0";
/// call bpf_get_attach_cookie; r0 = 0; exit
const READ_COOKIE: &[u8] = b"\x85\0\0\0\xae\0\0\0\xb7\0\0\0\0\0\0\0\x95\0\0\0\0\0\0\0";
const LOAD: &str = "bpf(BPF_PROG_LOAD)";
const LINK: &str = "bpf(BPF_LINK_CREATE)";
const OPEN: &str = "bpf(BPF_RAW_TRACEPOINT_OPEN)";
const CREATE: &str = "bpf(BPF_MAP_CREATE)";
const MMAPABLE: u32 = 1 << 10;
const NO_PREALLOC: u32 = 1;

/// Functions of the kernel of which each has one: the first is made for tests.
const FUNCTIONS: [&str; 3] = ["bpf_fentry_test1", "do_nanosleep", "schedule"];

fn failed(call: &'static str) -> impl Fn(Errno) -> Lack {
    move |errno| explain(errno, call)
}

/// Loads a program as one of `section` is loaded.
fn load(section: &str, instructions: &[u8]) -> Result<OwnedFd, Lack> {
    let lacks = |why: String| {
        Lack::new(why, "build the kernel with CONFIG_DEBUG_INFO_BTF, or use another one")
    };
    let kind = Kind::of(section).ok_or_else(|| lacks(format!("{section} is not handled")))?;
    let attach_btf_id = if kind.attach.needs_kernel_types() {
        let types = kernel_types().map_err(|why| lacks(why.into()))?;
        kind.attach
            .id_in(types)
            .map_err(|what| lacks(format!("this kernel does not have {what}")))?
    } else {
        0
    };
    let spec = ProgramSpec {
        name: "perfmon_probe",
        program_type: kind.program_type,
        attach_type: kind.attach_type,
        flags: kind.flags,
        attach_btf_id,
        instructions,
        license: c"GPL",
        btf: None,
        functions: BpfInfo::default(),
        lines: BpfInfo::default(),
    };
    perfmon_sys::program_load(&spec, None).map_err(failed(LOAD))
}

fn map(spec: MapSpec, types: Option<MapTypes<'_>>) -> Result<BpfMap, Lack> {
    BpfMap::create("perfmon_probe", spec, types, None).map_err(failed(CREATE))
}

pub(super) fn types() -> Result<(), Lack> {
    let hint = "build the kernel with CONFIG_DEBUG_INFO_BTF, and mount sysfs at /sys";
    kernel_types().map(|_| ()).map_err(|why| Lack::new(why, hint))
}

pub(super) fn programs() -> Result<(), Lack> {
    load("raw_tp", RETURN_0).map(|_| ())
}

pub(super) fn event_programs() -> Result<(), Lack> {
    const SOFTWARE: u32 = 1;
    const PAGE_FAULTS: u64 = 2;
    const NEVER: u64 = 1 << 40;
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    let program = load("perf_event", READ_COOKIE)?;
    let mut attr = [0; 136];
    let mut put = |at: usize, field: &[u8]| attr[at..at + field.len()].copy_from_slice(field);
    put(0, &SOFTWARE.to_ne_bytes());
    put(4, &136u32.to_ne_bytes());
    put(8, &PAGE_FAULTS.to_ne_bytes());
    put(16, &NEVER.to_ne_bytes());
    put(40, &(DISABLED | EXCLUDE_KERNEL).to_ne_bytes());
    let event = perfmon_sys::perf_event_open(&attr, 0, -1, None, OpenFlags::default())
        .map_err(failed("perf_event_open"))?;
    perfmon_sys::link_perf_event(program, event, 1).map(|_| ()).map_err(failed(LINK))
}

pub(super) fn raw_tracepoints() -> Result<(), Lack> {
    let program = load("raw_tp", RETURN_0)?;
    perfmon_sys::raw_tracepoint_open(program, Some("sched_process_exec"))
        .map(|_| ())
        .map_err(failed(OPEN))
}

pub(super) fn typed_tracepoints() -> Result<(), Lack> {
    let program = load("tp_btf/sched_process_exec", RETURN_0)?;
    perfmon_sys::raw_tracepoint_open(program, None).map(|_| ()).map_err(failed(OPEN))
}

pub(super) fn task_storage() -> Result<(), Lack> {
    // Its keys and values must have types: two integers.
    let integer = |name: u32, bytes: u32| [name, 1 << 24, bytes, bytes * 8];
    let words = [integer(1, 4), integer(3, 8)].concat();
    let mut btf = b"\x9f\xeb\x01\0".to_vec();
    for word in [24, 0, 32, 32, 5].into_iter().chain(words) {
        btf.extend(word.to_ne_bytes());
    }
    btf.extend(b"\0a\0b\0");
    let btf = perfmon_sys::btf_load(&btf, None).map_err(failed("bpf(BPF_BTF_LOAD)"))?;
    let spec = MapSpec {
        map_type: map_type::TASK_STORAGE,
        key_bytes: 4,
        value_bytes: 8,
        max_entries: 0,
        flags: NO_PREALLOC,
    };
    map(spec, Some(MapTypes { btf: btf.as_fd(), key: 1, value: 2 })).map(|_| ())
}

pub(super) fn task_iterators() -> Result<(), Lack> {
    let program = load("iter/task", RETURN_0)?;
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let link =
        perfmon_sys::link_iterator(program, TaskFilter::Thread(own)).map_err(failed(LINK))?;
    perfmon_sys::iterator_create(link).map(|_| ()).map_err(failed("bpf(BPF_ITER_CREATE)"))
}

pub(super) fn mapped_arrays() -> Result<(), Lack> {
    let spec = MapSpec {
        map_type: map_type::ARRAY,
        key_bytes: 4,
        value_bytes: 8,
        max_entries: 1,
        flags: MMAPABLE,
    };
    let page_bytes = rustix::param::page_size();
    SharedMemory::map(&map(spec, None)?, 0, page_bytes, true).map(|_| ()).map_err(failed("mmap"))
}

pub(super) fn ring_buffers() -> Result<(), Lack> {
    let max_entries = u32::try_from(rustix::param::page_size()).unwrap_or(1 << 16);
    let spec = MapSpec { map_type: map_type::RINGBUF, max_entries, ..MapSpec::default() };
    map(spec, None).map(|_| ())
}

pub(super) fn runs_on_a_cpu() -> Result<(), Lack> {
    let program = load("raw_tp", RETURN_0)?;
    let cpu = u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0);
    perfmon_sys::program_run(program, Some(cpu), &[])
        .map(|_| ())
        .map_err(failed("bpf(BPF_PROG_TEST_RUN)"))
}

/// A program of its kind can be loaded, and the kernel has the PMU whose events it is attached to.
fn probes_of(pmu: &str, option: &str) -> Result<(), Lack> {
    let path = format!("/sys/bus/event_source/devices/{pmu}/type");
    if !Path::new(&path).exists() {
        return Err(Lack::new(
            format!("this kernel has no PMU {pmu} in sysfs"),
            format!("build it with {option}"),
        ));
    }
    load(pmu, RETURN_0).map(|_| ())
}

pub(super) fn uprobes() -> Result<(), Lack> {
    probes_of("uprobe", "CONFIG_UPROBE_EVENTS")
}

pub(super) fn kprobes() -> Result<(), Lack> {
    probes_of("kprobe", "CONFIG_KPROBE_EVENTS")
}

pub(super) fn functions() -> Result<(), Lack> {
    let known = |name: &&&str| kernel_types().is_ok_and(|types| types.function(name).is_some());
    let name = FUNCTIONS.iter().find(known).unwrap_or(&FUNCTIONS[0]);
    let program = load(&format!("fentry/{name}"), RETURN_0)?;
    perfmon_sys::link_tracing(program).map(|_| ()).map_err(failed(LINK))
}

pub(super) fn file_system() -> Result<(), Lack> {
    const PLACE: &str = "/sys/fs/bpf";
    const MAGIC: i64 = 0xcafe_4a11;
    let is_bpf = rustix::fs::statfs(PLACE).is_ok_and(|found| found.f_type == MAGIC);
    if !is_bpf {
        let kernel = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !kernel.lines().any(|line| line.split_whitespace().any(|word| word == "bpf")) {
            return Err(Lack::new("this kernel has none", "build it with CONFIG_BPF_SYSCALL"));
        }
        return Err(Lack::new(
            format!("none is mounted at {PLACE}"),
            format!("as root: mount -t bpf bpf {PLACE}"),
        ));
    }
    rustix::fs::access(PLACE, rustix::fs::Access::WRITE_OK).map_err(|errno| {
        Lack::new(
            format!("{PLACE}: {errno}"),
            "run as root, or let root make a directory in it that is yours",
        )
    })
}

pub(super) fn statistics() -> Result<(), Lack> {
    const PLACE: &str = "/proc/sys/kernel/bpf_stats_enabled";
    match std::fs::read_to_string(PLACE) {
        Ok(text) if text.trim() == "1" => Ok(()),
        Ok(_) => Err(Lack::new(
            "the kernel does not measure programs now",
            "as root: sysctl kernel.bpf_stats_enabled=1; it costs some time at each run",
        )),
        Err(error) => Err(Lack { why: format!("{PLACE}: {error}"), hint: None }),
    }
}
