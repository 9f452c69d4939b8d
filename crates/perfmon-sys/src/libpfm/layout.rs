//! The structures of `perfmon/pfmlib.h` and `perfmon/pfmlib_perf_event.h`. Bit fields are as on the
//! little-endian machines that perfmon runs on.

use std::ffi::{c_char, c_int, c_uint};
use std::mem::MaybeUninit;

use super::LibpfmEvent;

/// A structure that libpfm4 fills, and zeroed room after it.
///
/// libpfm4 refuses a structure smaller than the first version of it, and otherwise writes its own version, also
/// if the given one is said to be smaller: a newer library that knows more fields writes into the room.
#[repr(C)]
pub(super) struct Roomy<T> {
    pub(super) known: T,
    room: [u64; 16],
}

/// All bytes zero is a value.
///
/// # Safety
/// It is one.
pub(super) unsafe trait Zero {}

impl<T: Zero> Roomy<T> {
    pub(super) fn zeroed() -> Self {
        // SAFETY: all bytes zero is a value of `T`, as `Zero` says, and of an array of numbers.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

/// `pfm_pmu_info_t`.
#[repr(C)]
pub(super) struct PmuInfo {
    pub(super) name: *const c_char,
    pub(super) desc: *const c_char,
    pub(super) size: usize,
    pmu: c_uint,
    kind: c_uint,
    pub(super) nevents: c_int,
    pub(super) first_event: c_int,
    max_encoding: c_int,
    num_cntrs: c_int,
    num_fixed_cntrs: c_int,
    /// Bit 0: is present.
    pub(super) flags: c_uint,
}

/// `pfm_event_info_t`.
#[repr(C)]
pub(super) struct EventInfo {
    pub(super) name: *const c_char,
    pub(super) desc: *const c_char,
    pub(super) equiv: *const c_char,
    pub(super) size: usize,
    code: u64,
    pmu: c_uint,
    dtype: c_uint,
    idx: c_int,
    pub(super) nattrs: c_int,
    reserved: c_int,
    flags: c_uint,
}

/// `pfm_event_attr_info_t`.
#[repr(C)]
pub(super) struct AttributeInfo {
    pub(super) name: *const c_char,
    pub(super) desc: *const c_char,
    pub(super) equiv: *const c_char,
    pub(super) size: usize,
    code: u64,
    /// A `pfm_attr_t`.
    pub(super) kind: c_uint,
    idx: c_int,
    ctrl: c_uint,
    /// Bit 0: is a default.
    pub(super) flags: c_uint,
    default: u64,
}

/// `pfm_perf_encode_arg_t`.
#[repr(C)]
pub(super) struct EncodeArgument {
    pub(super) attr: *mut AttrBytes,
    pub(super) fstr: *mut *mut c_char,
    pub(super) size: usize,
    idx: c_int,
    pub(super) cpu: c_int,
    flags: c_int,
    pad0: c_int,
}

// SAFETY: it holds pointers and numbers only.
unsafe impl Zero for PmuInfo {}
// SAFETY: it holds pointers and numbers only.
unsafe impl Zero for EventInfo {}
// SAFETY: it holds pointers and numbers only.
unsafe impl Zero for AttributeInfo {}
// SAFETY: it holds pointers and numbers only.
unsafe impl Zero for EncodeArgument {}

// The header's sizes of the first version (`PFM_PMU_INFO_ABI0` and so on), which 4.13 still has.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<PmuInfo>() == 56);
    assert!(size_of::<EventInfo>() == 64);
    assert!(size_of::<AttributeInfo>() == 64);
    assert!(size_of::<EncodeArgument>() == 40);
};

const ATTR_BYTES: usize = 256;

/// A `perf_event_attr` that says its size, which is more than any library knows: libpfm4 writes the part that it
/// knows.
#[repr(C, align(8))]
pub(super) struct AttrBytes([u8; ATTR_BYTES]);

impl AttrBytes {
    pub(super) fn new() -> Self {
        let mut bytes = [0; ATTR_BYTES];
        let size: u32 = 256;
        bytes[4..8].copy_from_slice(&size.to_ne_bytes());
        Self(bytes)
    }

    /// The fields, as in `include/uapi/linux/perf_event.h`; negative `cpu` is none.
    pub(super) fn event(&self, full_name: String, cpu: c_int) -> LibpfmEvent {
        let flags = self.u64_at(40);
        let flag = |bit: u32| flags >> bit & 1 != 0;
        LibpfmEvent {
            pmu_type: self.u32_at(0),
            config: self.u64_at(8),
            config1: self.u64_at(56),
            config2: self.u64_at(64),
            config3: self.u64_at(128),
            exclude_user: flag(4),
            exclude_kernel: flag(5),
            exclude_hv: flag(6),
            exclude_guest: flag(20),
            exclude_host: flag(19),
            precise_ip: u8::from(flag(15)) | u8::from(flag(16)) << 1,
            pinned: flag(2),
            exclusive: flag(3),
            sample_period: self.u64_at(16),
            is_frequency: flag(10),
            cpu: u32::try_from(cpu).ok(),
            full_name,
        }
    }

    fn u32_at(&self, offset: usize) -> u32 {
        self.0[offset..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn u64_at(&self, offset: usize) -> u64 {
        self.0[offset..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }
}
