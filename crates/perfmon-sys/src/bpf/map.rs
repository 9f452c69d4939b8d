use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Attributes, Command, address, bpf, bpf_fd, kernel_name, raw};
use crate::Errno;

/// `enum bpf_map_type`
pub mod map_type {
    /// A table by hash.
    pub const HASH: u32 = 1;
    /// Elements by index.
    pub const ARRAY: u32 = 2;
    /// Programs to continue with.
    pub const PROG_ARRAY: u32 = 3;
    /// Open perf events.
    pub const PERF_EVENT_ARRAY: u32 = 4;
    /// A table by hash for each CPU.
    pub const PERCPU_HASH: u32 = 5;
    /// Elements by index for each CPU.
    pub const PERCPU_ARRAY: u32 = 6;
    /// The one of each CPU that drops what was not used for longest.
    pub const LRU_PERCPU_HASH: u32 = 10;
    /// Records for user space.
    pub const RINGBUF: u32 = 27;
    /// A value for each task.
    pub const TASK_STORAGE: u32 = 29;
    /// `PERCPU_CGROUP_STORAGE`.
    pub const PERCPU_CGROUP_STORAGE: u32 = 21;
}

/// The kind and sizes of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapSpec {
    /// One of [`map_type`].
    pub map_type: u32,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Elements at most; bytes for a ring buffer.
    pub max_entries: u32,
    /// `BPF_F_NO_PREALLOC` (1), `BPF_F_MMAPABLE` (1024)...
    pub flags: u32,
}

/// The types of a map's keys and values, in type information that is loaded.
#[derive(Clone, Copy, Debug)]
pub struct MapTypes<'a> {
    /// From [`btf_load`](super::btf_load).
    pub btf: BorrowedFd<'a>,
    /// The key's type.
    pub key: u32,
    /// The value's type.
    pub value: u32,
}

/// A map.
#[derive(Debug)]
pub struct BpfMap {
    fd: OwnedFd,
    spec: MapSpec,
}

#[repr(C)]
#[derive(Default)]
struct Create {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    name: [u8; 16],
    ifindex: u32,
    btf_fd: u32,
    btf_key: u32,
    btf_value: u32,
}

// SAFETY: no addresses.
unsafe impl Attributes for Create {}

#[repr(C)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

// SAFETY: only made by `BpfMap::element`, whose callers check the buffers' sizes against the map's.
unsafe impl Attributes for Element {}

#[repr(C)]
struct MapFd(u32);

// SAFETY: no addresses.
unsafe impl Attributes for MapFd {}

impl BpfMap {
    /// Makes a map. `inner`, for a map of maps, is a map like those to be put into it.
    ///
    /// # Errors
    /// The kernel's: `EPERM` without `CAP_BPF`; `EINVAL` for sizes and flags that do not go with the type; `E2BIG` and
    /// `ENOMEM` for too much.
    pub fn create(
        name: &str,
        spec: MapSpec,
        types: Option<MapTypes<'_>>,
        inner: Option<BorrowedFd<'_>>,
    ) -> Result<Self, Errno> {
        let mut attributes = Create {
            map_type: spec.map_type,
            key_size: spec.key_bytes,
            value_size: spec.value_bytes,
            max_entries: spec.max_entries,
            flags: spec.flags,
            inner_map_fd: inner.map_or(0, raw),
            name: kernel_name(name),
            ..Create::default()
        };
        if let Some(MapTypes { btf, key, value }) = types {
            (attributes.btf_fd, attributes.btf_key, attributes.btf_value) = (raw(btf), key, value);
        }
        let fd = bpf_fd(Command::MapCreate, &mut attributes)?;
        Ok(Self { fd, spec })
    }

    /// A map that exists already.
    ///
    /// # Errors
    /// The kernel's: `EINVAL` if it is no map.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, Errno> {
        // The kernel says of a program, too, what fits into the struct on maps.
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        if std::fs::read_link(link).ok().as_deref() != Some("anon_inode:bpf-map".as_ref()) {
            return Err(Errno::INVAL);
        }
        let [map_type, _, key_bytes, value_bytes, max_entries, flags] =
            super::object::map_info(fd.as_fd())?;
        let spec = MapSpec { map_type, key_bytes, value_bytes, max_entries, flags };
        Ok(Self { fd, spec })
    }

    /// What it is.
    pub fn spec(&self) -> MapSpec {
        self.spec
    }

    /// One more handle of the same map.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn try_clone(&self) -> Result<Self, Errno> {
        let fd = crate::duplicate(std::os::fd::AsRawFd::as_raw_fd(&self.fd))?;
        Ok(Self { fd, spec: self.spec })
    }

    /// Copies the value of `key` to `value`. Not for maps that have a value for each CPU.
    ///
    /// # Errors
    /// The kernel's: `ENOENT`; `EINVAL` for sizes that are not the map's.
    pub fn lookup(&self, key: &[u8], value: &mut [u8]) -> Result<(), Errno> {
        self.check(key, value.len())?;
        self.element(Command::MapLookup, key, address(value.as_mut_ptr()), 0)
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// The kernel's: `E2BIG` if it is full or there is no such index; `EINVAL` for sizes that are not the map's.
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<(), Errno> {
        self.check(key, value.len())?;
        self.element(Command::MapUpdate, key, address(value.as_ptr()), 0)
    }

    /// Removes the value of `key`.
    ///
    /// # Errors
    /// The kernel's: `ENOENT`; `EINVAL` for a key that is not of the map's size.
    pub fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.check(key, self.spec.value_bytes as usize)?;
        self.element(Command::MapDelete, key, 0, 0)
    }

    /// From now on only programs read it, and its content counts as constant.
    ///
    /// # Errors
    /// The kernel's.
    pub fn freeze(&self) -> Result<(), Errno> {
        bpf(Command::MapFreeze, &mut MapFd(raw(self.fd.as_fd()))).map(|_| ())
    }

    /// The key that follows `key` (`None`: the first).
    ///
    /// # Errors
    /// The kernel's: `ENOENT` after the last.
    pub fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno> {
        let size = self.spec.key_bytes as usize;
        if next.len() != size || key.is_some_and(|key| key.len() != size) {
            return Err(Errno::INVAL);
        }
        let key = key.map_or(0, |key| address(key.as_ptr()));
        let mut attributes = Element {
            map_fd: raw(self.fd.as_fd()),
            padding: 0,
            key,
            value: address(next.as_mut_ptr()),
            flags: 0,
        };
        bpf(Command::MapNextKey, &mut attributes).map(|_| ())
    }

    /// The kernel copies as much as the map's sizes say.
    fn check(&self, key: &[u8], value_bytes: usize) -> Result<(), Errno> {
        let per_cpu = matches!(
            self.spec.map_type,
            map_type::PERCPU_HASH
                | map_type::PERCPU_ARRAY
                | map_type::LRU_PERCPU_HASH
                | map_type::PERCPU_CGROUP_STORAGE
        );
        let fits = key.len() == self.spec.key_bytes as usize
            && value_bytes == self.spec.value_bytes as usize;
        if per_cpu || !fits { Err(Errno::INVAL) } else { Ok(()) }
    }

    fn element(&self, command: Command, key: &[u8], value: u64, flags: u64) -> Result<(), Errno> {
        let map_fd = raw(self.fd.as_fd());
        let key = address(key.as_ptr());
        bpf(command, &mut Element { map_fd, padding: 0, key, value, flags }).map(|_| ())
    }
}

impl AsFd for BpfMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
