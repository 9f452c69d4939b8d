use std::io::Write;
use std::os::fd::OwnedFd;

use perfmon_bpf::{Errno, Error, Loaded, Loader, Object};
use perfmon_core::Encoding;
use perfmon_data::{Attr, pmu_type};
use perfmon_sys::OpenFlags;

pub(crate) const ACCOUNT: &[u8] = include_bytes!("../../../../bpf/objects/account.bpf.o");
pub(crate) const BAD: &[u8] = include_bytes!("../../../../bpf/objects/bad.bpf.o");
pub(crate) const CORE: &[u8] = include_bytes!("../../../../bpf/objects/core.bpf.o");
pub(crate) const SECTIONS: &[u8] = include_bytes!("../../../../bpf/objects/sections.bpf.o");
pub(crate) const LAB: &[u8] = include_bytes!("../../../../bpf/objects/lab.bpf.o");
pub(crate) const PLACES: &[u8] = include_bytes!("../../../../bpf/objects/places.bpf.o");

/// Says that a test did not run, past libtest's capture.
pub(crate) fn skipped(name: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

/// What was loaded; `None`, with a word about test `name`, if this user may not load or the kernel can't.
pub(crate) fn allowed<T>(name: &str, loaded: Result<T, Error>) -> Option<T> {
    match loaded {
        Ok(loaded) => Some(loaded),
        Err(error @ Error::Kernel { .. }) => {
            skipped(name, error);
            None
        }
        Err(error) if [Some(Errno::PERM), Some(Errno::NOSYS)].contains(&error.errno()) => {
            skipped(name, error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn lab() -> Object {
    Object::parse("lab", LAB).unwrap()
}

/// Loads the lab, for test `name`.
pub(crate) fn load_lab(name: &str, loader: &Loader<'_>) -> Option<Loaded> {
    allowed(name, loader.load(&lab()))
}

/// Runs a program of `loaded` with arguments.
pub(crate) fn run(loaded: &Loaded, program: &str, arguments: &[u64]) -> u32 {
    loaded.program(program).unwrap().run(None, arguments).unwrap()
}

/// A value of 8 bytes.
pub(crate) fn value(loaded: &Loaded, map: &str, key: &[u8]) -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    loaded.map(map).unwrap().raw().lookup(key, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The first word of an element of the lab's `STATE`.
pub(crate) fn state(loaded: &Loaded, element: u32) -> u64 {
    let mut bytes = [0; 64];
    loaded.map("STATE").unwrap().raw().lookup(&element.to_ne_bytes(), &mut bytes).unwrap();
    u64::from_ne_bytes(bytes[..8].try_into().unwrap())
}

/// An event of the calling thread that has an overflow at each page fault; disabled.
pub(crate) fn each_page_fault() -> OwnedFd {
    const PAGE_FAULTS: u64 = 2;
    const PERIOD: usize = 16;
    let encoding =
        Encoding { pmu_type: pmu_type::SOFTWARE, config: PAGE_FAULTS, ..Encoding::default() };
    let attr = Attr {
        encoding: &encoding,
        path_address: None,
        disabled: true,
        inherit: false,
        enable_on_exec: false,
        by_thread: false,
        thread_records: false,
        sample_period: 0,
    };
    let mut bytes = attr.to_bytes();
    bytes[PERIOD..PERIOD + 8].copy_from_slice(&1u64.to_ne_bytes());
    perfmon_sys::perf_event_open(&bytes, 0, -1, None, OpenFlags::default()).unwrap()
}

/// More than any allocator keeps of what was freed: the pages are always fresh.
const FRESH_BYTES: usize = 40 << 20;

/// Touches fresh pages: each is a page fault, but that some may be huge.
pub(crate) fn touch_fresh_pages() {
    let mut memory = vec![0_u8; FRESH_BYTES];
    for page in memory.chunks_mut(rustix::param::page_size()) {
        page[0] = 1;
    }
    std::hint::black_box(memory);
}

/// What `event` has counted.
pub(crate) fn count(event: &OwnedFd) -> u64 {
    let mut words = [0; 4];
    perfmon_sys::read_words(event, &mut words).unwrap();
    words[3]
}
