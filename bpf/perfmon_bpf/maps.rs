//! Maps: declared by [`map!`](crate::map), reached by key.

use core::ffi::c_void;

use crate::helpers::{
    map_delete_elem, map_lookup_elem, map_update_elem, ringbuf_reserve, task_storage_get,
};

/// The kinds of maps by the kernel's numbers; [`map!`](crate::map) takes their names.
#[allow(missing_docs)]
pub mod map_type {
    pub const HASH: usize = 1;
    pub const ARRAY: usize = 2;
    /// Programs, for [`tail_call`](crate::tail_call).
    pub const PROG_ARRAY: usize = 3;
    /// Events, for [`perf_event_read_value`](crate::perf_event_read_value).
    pub const PERF_EVENT_ARRAY: usize = 4;
    pub const PERCPU_HASH: usize = 5;
    pub const PERCPU_ARRAY: usize = 6;
    pub const RINGBUF: usize = 27;
    pub const TASK_STORAGE: usize = 29;
}

/// A map's flag: values are made when they are needed. `TASK_STORAGE` must have it, with 0 entries.
#[doc(alias = "BPF_F_NO_PREALLOC")]
pub const NO_PREALLOC: usize = 1;
/// A map's flag: user space may map an `ARRAY` into its memory.
#[doc(alias = "BPF_F_MMAPABLE")]
pub const MMAPABLE: usize = 1 << 10;

/// Of [`update`]: sets the value whether or not there is one.
#[doc(alias = "BPF_ANY")]
pub const ANY: u64 = 0;
/// Of [`update`]: only if there is none (-17, EEXIST).
#[doc(alias = "BPF_NOEXIST")]
pub const IF_ABSENT: u64 = 1;
/// Of [`update`]: only if there is one (-2, ENOENT).
#[doc(alias = "BPF_EXIST")]
pub const IF_PRESENT: u64 = 2;

/// Of ring buffers: does not wake the reader up.
#[doc(alias = "BPF_RB_NO_WAKEUP")]
pub const NO_WAKEUP: u64 = 1;
/// Of ring buffers: wakes the reader up whatever it has read.
#[doc(alias = "BPF_RB_FORCE_WAKEUP")]
pub const FORCE_WAKEUP: u64 = 2;

/// A map that [`map!`](crate::map) declared with types.
pub trait Map {
    /// What values are found by.
    type Key;
    /// What is found.
    type Value;
}

/// Declares a map as a variable of its name.
///
/// ```text
/// map!(COUNTS: PERCPU_HASH, key u32, value Count, entries 1024);
/// map!(RECORDS: ARRAY, key u32, value Record, entries 4096, flags MMAPABLE);
/// map!(TASKS: TASK_STORAGE, key i32, value State, entries 0, flags NO_PREALLOC);
/// map!(FORMATS: PROG_ARRAY, sizes 4 4, entries 8);
/// map!(EVENTS: PERF_EVENT_ARRAY, sizes 4 4, entries 64);
/// map!(STREAM: RINGBUF, bytes 65536);
/// ```
///
/// Maps of descriptors have sizes and no types. A ring buffer's bytes are a power of two and whole pages.
/// The loader makes the map, and may give it another number of entries. Types are `#[repr(C)]` or plain
/// numbers, since user space has them too.
// Loaders read the variable's type: numbers are the lengths of arrays behind pointers, key and value are
// behind pointers as they are.
#[macro_export]
macro_rules! map {
    ($(#[$attribute:meta])* $name:ident: RINGBUF, bytes $bytes:expr) => {
        $crate::map!(@define [$(#[$attribute])*] $name {
            r#type: [i32; $crate::map_type::RINGBUF], max_entries: [i32; $bytes]
        });
    };
    ($(#[$attribute:meta])* $name:ident: $kind:ident, key $key:ty, value $value:ty,
        entries $entries:expr) => {
        $crate::map!($(#[$attribute])* $name: $kind, key $key, value $value, entries $entries, flags 0);
    };
    ($(#[$attribute:meta])* $name:ident: $kind:ident, key $key:ty, value $value:ty,
        entries $entries:expr, flags $flags:expr) => {
        $crate::map!(@define [$(#[$attribute])*] $name {
            r#type: [i32; $crate::map_type::$kind], key: $key, value: $value,
            max_entries: [i32; $entries], map_flags: [i32; $flags]
        });
        impl $crate::Map for $name {
            type Key = $key;
            type Value = $value;
        }
    };
    ($(#[$attribute:meta])* $name:ident: $kind:ident, sizes $key:literal $value:literal,
        entries $entries:expr) => {
        $crate::map!(@define [$(#[$attribute])*] $name {
            r#type: [i32; $crate::map_type::$kind], key_size: [i32; $key],
            value_size: [i32; $value], max_entries: [i32; $entries]
        });
    };
    (@define [$($attribute:tt)*] $name:ident { $($field:ident: $type:ty),* }) => {
        $($attribute)*
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(C)]
        pub struct $name { $($field: *const $type),* }
        // Its pointers are null, and nobody reads them.
        unsafe impl Sync for $name {}
        #[unsafe(link_section = ".maps")]
        #[unsafe(no_mangle)]
        pub static $name: $name = $name { $($field: core::ptr::null()),* };
    };
}

/// A map as helpers take it: its address, in whose place the loader puts the map.
#[inline(always)]
pub fn at<M>(map: &'static M) -> *const c_void {
    (map as *const M).cast()
}

/// The value of `key`, or null: of a hash without such a key, of an array with an index outside.
///
/// In maps of one value per CPU it is that of the CPU the program runs on.
#[inline(always)]
pub fn lookup<M: Map>(map: &'static M, key: &M::Key) -> *mut M::Value {
    let key: *const M::Key = key;
    // The helper reads a key's size of bytes, which a reference has.
    unsafe { map_lookup_elem(at(map), key.cast()) }.cast()
}

/// The element of an array, or null if the index is outside.
#[inline(always)]
pub fn element<M: Map<Key = u32>>(map: &'static M, index: u32) -> *mut M::Value {
    lookup(map, &index)
}

/// Sets the value of `key`; `when` is [`ANY`], [`IF_ABSENT`] or [`IF_PRESENT`]. Gives 0, or a negative
/// errno such as -7 (E2BIG: the map is full).
#[inline(always)]
pub fn update<M: Map>(map: &'static M, key: &M::Key, value: &M::Value, when: u64) -> i64 {
    let (key, value): (*const M::Key, *const M::Value) = (key, value);
    // The helper reads as many bytes as the two types have.
    unsafe { map_update_elem(at(map), key.cast(), value.cast(), when) }
}

/// Removes a hash's value. Gives 0, or -2 (ENOENT) if there is none.
#[inline(always)]
pub fn delete<M: Map>(map: &'static M, key: &M::Key) -> i64 {
    let key: *const M::Key = key;
    // As in `lookup`.
    unsafe { map_delete_elem(at(map), key.cast()) }
}

/// What a `TASK_STORAGE` map has for a task, or null if user space or [`task_value_or_new`] made nothing.
///
/// # Safety
///
/// `task` is a trusted pointer to a `task_struct`: an argument of a `tp_btf` program, or from
/// [`get_current_task_btf`](crate::get_current_task_btf).
#[inline(always)]
pub unsafe fn task_value<M: Map<Key = i32>>(map: &'static M, task: u64) -> *mut M::Value {
    unsafe { task_storage_get(at(map), task, core::ptr::null(), 0) }.cast()
}

/// As [`task_value`], but makes a value of zero bytes if there is none; null if memory is short.
///
/// # Safety
///
/// As for [`task_value`].
#[inline(always)]
pub unsafe fn task_value_or_new<M: Map<Key = i32>>(map: &'static M, task: u64) -> *mut M::Value {
    const CREATE: u64 = 1;
    unsafe { task_storage_get(at(map), task, core::ptr::null(), CREATE) }.cast()
}

/// Room for a `T` in a ring buffer, or null if there is none. Every way out of the program must
/// [`ringbuf_submit`](crate::ringbuf_submit) or [`ringbuf_discard`](crate::ringbuf_discard) it, and what
/// is in it before is undefined.
#[inline(always)]
pub fn reserve<T, M>(ring: &'static M) -> *mut T {
    // With a size that is a constant the helper touches nothing of ours.
    unsafe { ringbuf_reserve(at(ring), size_of::<T>() as u64, 0) }.cast()
}
