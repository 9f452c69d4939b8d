use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use perfmon_sys::{BpfMap, MapSpec, SharedMemory, TaskFilter};

use crate::Error;
use crate::kind::Attach;

/// An object in the kernel. Dropping it closes everything that nothing else holds.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) object: String,
    pub(crate) maps: BTreeMap<String, Map>,
    pub(crate) programs: BTreeMap<String, Program>,
}

impl Loaded {
    /// A map by its name.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn map(&self, name: &str) -> Result<&Map, Error> {
        self.maps.get(name).ok_or_else(|| self.missing("map", name, self.maps.keys()))
    }

    /// A program by its name.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn program(&self, name: &str) -> Result<&Program, Error> {
        self.programs.get(name).ok_or_else(|| self.missing("program", name, self.programs.keys()))
    }

    /// All maps with their names, but for the object's globals.
    pub fn maps(&self) -> impl Iterator<Item = (&str, &Map)> {
        let named = self.maps.iter().filter(|(name, _)| !name.starts_with('.'));
        named.map(|(name, map)| (name.as_str(), map))
    }

    /// All programs with their names.
    pub fn programs(&self) -> impl Iterator<Item = (&str, &Program)> {
        self.programs.iter().map(|(name, program)| (name.as_str(), program))
    }

    fn missing<'a>(
        &self,
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a String>,
    ) -> Error {
        let known: Vec<&str> = known.map(String::as_str).collect();
        Error::missing(&self.object, what, name, &known)
    }
}

/// A map in the kernel.
#[derive(Debug)]
pub struct Map {
    pub(crate) name: String,
    pub(crate) map: BpfMap,
}

impl Map {
    /// A map that exists already, such as a pinned one.
    ///
    /// # Errors
    /// [`Error::Call`] if the descriptor is no map's.
    pub fn from_fd(name: &str, fd: OwnedFd) -> Result<Self, Error> {
        let map = BpfMap::from_fd(fd).map_err(Error::call(format!("map {name}"), "bpf"))?;
        Ok(Self { name: name.into(), map })
    }

    /// Opens a pinned map.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn pinned(at: &Path) -> Result<Self, Error> {
        let what = at.display().to_string();
        let fd = perfmon_sys::get_pinned(at).map_err(Error::call(&*what, "bpf(BPF_OBJ_GET)"))?;
        Self::from_fd(&what, fd)
    }

    /// Gives it a name in a BPF file system: it lives as long as the name.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn pin(&self, at: &Path) -> Result<(), Error> {
        let what = format!("pin map {} at {}", self.name, at.display());
        perfmon_sys::pin(&self.map, at).map_err(Error::call(what, "bpf(BPF_OBJ_PIN)"))
    }

    /// Its kind and sizes.
    pub fn spec(&self) -> MapSpec {
        self.map.spec()
    }

    /// The map as the system calls take it.
    pub fn raw(&self) -> &BpfMap {
        &self.map
    }

    /// Maps all elements of an array that was made for it (`BPF_F_MMAPABLE`). The kernel rounds elements up to 8 bytes.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn share_memory(&self, writable: bool) -> Result<SharedMemory, Error> {
        let spec = self.map.spec();
        let element = (spec.value_bytes as usize).next_multiple_of(8);
        let length = element.saturating_mul(spec.max_entries as usize);
        let length = length.next_multiple_of(rustix::param::page_size());
        SharedMemory::map(&self.map, 0, length, writable)
            .map_err(Error::call(format!("map {}", self.name), "mmap"))
    }

    /// Puts a descriptor (a program's or an event's) at `index`.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn plug(&self, index: u32, fd: impl AsFd) -> Result<(), Error> {
        use std::os::fd::AsRawFd;
        let value = fd.as_fd().as_raw_fd().to_ne_bytes();
        let what = || format!("map {}, index {index}", self.name);
        self.map
            .update(&index.to_ne_bytes(), &value)
            .map_err(|errno| Error::call(what(), "bpf(BPF_MAP_UPDATE_ELEM)")(errno))
    }

    /// Takes away what is at `index`.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn unplug(&self, index: u32) -> Result<(), Error> {
        let what = format!("map {}, index {index}", self.name);
        self.map.delete(&index.to_ne_bytes()).map_err(Error::call(what, "bpf(BPF_MAP_DELETE_ELEM)"))
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// A program in the kernel.
#[derive(Debug)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) fd: OwnedFd,
    pub(crate) section: String,
    pub(crate) attach: Attach,
}

/// A program's connection to where it runs; dropping it ends that.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
}

impl Program {
    /// The name of its section, which says what it is for.
    pub fn section(&self) -> &str {
        &self.section
    }

    /// Attaches it to the tracepoint or function that its section names.
    ///
    /// # Errors
    /// [`Error::Call`]; [`Error::Object`] if its section names none.
    pub fn attach(&self) -> Result<Link, Error> {
        let what = format!("attach {} ({})", self.name, self.section);
        let (call, fd) = match &self.attach {
            Attach::RawTracepoint(name) => (
                "bpf(BPF_RAW_TRACEPOINT_OPEN)",
                perfmon_sys::raw_tracepoint_open(&self.fd, Some(name)),
            ),
            Attach::BtfTracepoint(_) => {
                ("bpf(BPF_RAW_TRACEPOINT_OPEN)", perfmon_sys::raw_tracepoint_open(&self.fd, None))
            }
            Attach::Function(_) => ("bpf(BPF_LINK_CREATE)", perfmon_sys::link_tracing(&self.fd)),
            Attach::Event | Attach::Iterator(_) | Attach::Nowhere => {
                let why = format!("its section {} names no place to attach to", self.section);
                return Err(Error::object(&self.name, why));
            }
        };
        fd.map(|fd| Link { fd }).map_err(Error::call(what, call))
    }

    /// Attaches it to an event: it runs at the event's overflows, or hits if the event is a tracepoint or a probe.
    /// It finds `cookie` with `bpf_get_attach_cookie`.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn attach_event(&self, event: impl AsFd, cookie: u64) -> Result<Link, Error> {
        let what = format!("attach {} ({}) to an event", self.name, self.section);
        perfmon_sys::link_perf_event(&self.fd, event, cookie)
            .map(|fd| Link { fd })
            .map_err(Error::call(what, "bpf(BPF_LINK_CREATE)"))
    }

    /// Runs an iterator over tasks to its end and gives what it wrote: nothing if there is no such task.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn iterate(&self, filter: TaskFilter) -> Result<Vec<u8>, Error> {
        let what = || format!("iterate with {} ({})", self.name, self.section);
        let link = perfmon_sys::link_iterator(&self.fd, filter)
            .map_err(|errno| Error::call(what(), "bpf(BPF_LINK_CREATE)")(errno))?;
        let file = perfmon_sys::iterator_create(link)
            .map_err(|errno| Error::call(what(), "bpf(BPF_ITER_CREATE)")(errno))?;
        let mut written = Vec::new();
        File::from(file).read_to_end(&mut written).map_err(|error| {
            let errno = perfmon_sys::Errno::from_io_error(&error);
            Error::call(what(), "read")(errno.unwrap_or(perfmon_sys::Errno::IO))
        })?;
        Ok(written)
    }

    /// Runs it once with `arguments`, on `cpu` if one is given, and says what it returned.
    ///
    /// # Errors
    /// [`Error::Call`]: `ENXIO` if the CPU is not online.
    pub fn run(&self, cpu: Option<u32>, arguments: &[u64]) -> Result<u32, Error> {
        perfmon_sys::program_run(&self.fd, cpu, arguments)
            .map_err(Error::call(format!("run {}", self.name), "bpf(BPF_PROG_TEST_RUN)"))
    }

    /// How often it was not run because it was already running on the CPU.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn recursion_misses(&self) -> Result<u64, Error> {
        let what = format!("ask for {}", self.name);
        perfmon_sys::recursion_misses(&self.fd)
            .map_err(Error::call(what, "bpf(BPF_OBJ_GET_INFO_BY_FD)"))
    }

    /// Gives it a name in a BPF file system.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn pin(&self, at: &Path) -> Result<(), Error> {
        let what = format!("pin program {} at {}", self.name, at.display());
        perfmon_sys::pin(&self.fd, at).map_err(Error::call(what, "bpf(BPF_OBJ_PIN)"))
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Link {
    /// Gives it a name in a BPF file system: the program runs as long as the name is there.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn pin(&self, at: &Path) -> Result<(), Error> {
        let what = format!("pin a link at {}", at.display());
        perfmon_sys::pin(&self.fd, at).map_err(Error::call(what, "bpf(BPF_OBJ_PIN)"))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
