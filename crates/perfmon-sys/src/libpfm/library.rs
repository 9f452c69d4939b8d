//! libpfm4's functions and structures: the C side.

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr;

use libloading::Library;

use super::layout::{AttrBytes, AttributeInfo, EncodeArgument, EventInfo, PmuInfo, Roomy};
use super::{
    EventText, LibpfmAttribute, LibpfmAttributeKind, LibpfmEntry, LibpfmError, LibpfmEvent,
    LibpfmPmu,
};

/// The library's name for the loader, which stands for its ABI.
const LIBRARY_NAME: &str = "libpfm.so.4";

/// `PFM_PLM0 | PFM_PLM3`: kernel and user.
const PRIVILEGES: c_int = 0x01 | 0x08;
/// `PFM_OS_PERF_EVENT_EXT`: with all of perf's modifiers.
const PERF_EVENT_EXT: c_uint = 2;

/// What an event's attributes begin with.
const DELIMITERS: [char; 2] = [':', '.'];
const ATTRIBUTES_MAX: usize = 64 - 8;

/// A string of libpfm4's, copied; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// `string` is null, or a C string that lives during the call.
unsafe fn copy(string: *const c_char) -> Option<String> {
    if string.is_null() {
        return None;
    }
    // SAFETY: it is a C string that lives during the call, so the caller.
    let string = unsafe { CStr::from_ptr(string) };
    Some(string.to_string_lossy().into_owned())
}

fn not_installed(error: libloading::Error) -> LibpfmError {
    // What the loader said is the cause.
    let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    LibpfmError::NotInstalled(text)
}

/// Declares libpfm4's functions with their types, and how they are looked up.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Functions of libpfm4 by their names. They are called under the lock of `Libpfm` only.
        #[derive(Debug)]
        pub(super) struct Api {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl Api {
            fn of(library: Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: it is of that type by `perfmon/pfmlib.h`, for all libraries of this name.
                    $($name: *unsafe { library.get(stringify!($name)) }?,)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    pfm_initialize: fn() -> c_int;
    pfm_get_version: fn() -> c_int;
    pfm_strerror: fn(c_int) -> *const c_char;
    pfm_find_event: fn(*const c_char) -> c_int;
    pfm_get_os_event_encoding: fn(*const c_char, c_int, c_uint, *mut Roomy<EncodeArgument>) -> c_int;
    pfm_get_pmu_info: fn(c_uint, *mut Roomy<PmuInfo>) -> c_int;
    pfm_get_event_next: fn(c_int) -> c_int;
    pfm_get_event_info: fn(c_int, c_uint, *mut Roomy<EventInfo>) -> c_int;
    pfm_get_event_attr_info: fn(c_int, c_int, c_uint, *mut Roomy<AttributeInfo>) -> c_int;
}

impl Api {
    pub(super) fn load() -> Result<Self, LibpfmError> {
        // SAFETY: libpfm4 has no constructors and destructors but those that every C library has.
        let library = unsafe { Library::new(LIBRARY_NAME) }.map_err(not_installed)?;
        let api = Self::of(library).map_err(not_installed)?;
        // SAFETY: `Libpfm::open` lets one thread in, and nobody else has this handle yet.
        api.check(unsafe { (api.pfm_initialize)() })?;
        Ok(api)
    }

    fn check(&self, code: c_int) -> Result<(), LibpfmError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any number.
        let text = unsafe { (self.pfm_strerror)(code) };
        // SAFETY: it is a constant of the library, which is open.
        let text = unsafe { copy(text) }.unwrap_or_default();
        Err(LibpfmError::Library { code, text })
    }

    pub(super) fn version(&self) -> u32 {
        // SAFETY: the function takes nothing and gives a constant.
        unsafe { (self.pfm_get_version)() }.cast_unsigned()
    }

    pub(super) fn encode(&self, text: &EventText) -> Result<LibpfmEvent, LibpfmError> {
        let mut attr = AttrBytes::new();
        let mut full_name: *mut c_char = ptr::null_mut();
        let mut argument = Roomy::<EncodeArgument>::zeroed();
        argument.known.attr = &raw mut attr;
        argument.known.fstr = &raw mut full_name;
        argument.known.size = size_of::<EncodeArgument>();
        argument.known.cpu = -1;
        let encode = self.pfm_get_os_event_encoding;
        let text = text.0.as_c_str();
        self.check_attributes(text)?;
        // SAFETY: the text is a C string whose attributes fit, as just checked, and is copied; `argument` and what
        // it points to are live, and say their sizes.
        let code = unsafe { encode(text.as_ptr(), PRIVILEGES, PERF_EVENT_EXT, &raw mut argument) };
        // SAFETY: it is null as set above, or the string that libpfm4 made for us.
        let name = unsafe { copy(full_name) };
        // SAFETY: it is null, or libpfm4 has it from malloc(3) for us to free.
        unsafe { libc::free(full_name.cast()) };
        self.check(code)?;
        let name = name.unwrap_or_else(|| text.to_string_lossy().into_owned());
        Ok(attr.event(name, argument.known.cpu))
    }

    /// Refuses a text with more attributes than fit into the array of 64 that libpfm4 puts them into, with what
    /// they are aliases of: it checks only those with a value.
    ///
    /// 8 are left for attributes that the event itself brings or has by default. Up to 3 need no count, since an
    /// alias stands for 16 at most. That is so by the tables of 4.13, and the test `attributes_fit` checks it with
    /// the installed library.
    fn check_attributes(&self, text: &CStr) -> Result<(), LibpfmError> {
        let string = text.to_string_lossy();
        // The first `::` ends the PMU's name. Both `:` and, in newer versions, `.` begin an attribute.
        let event = string.find("::").map_or(0, |position| position + 2);
        let Some(length) = string[event..].find(DELIMITERS) else { return Ok(()) };
        let (event, attributes) = string.split_at(event + length);
        let attributes = &attributes[1..];
        if attributes.split(DELIMITERS).count() <= 3 {
            return Ok(());
        }
        let entry = self.find(event)?;
        let count: usize = attributes.split(DELIMITERS).map(|it| entry.expanded(it)).sum();
        if count > ATTRIBUTES_MAX {
            return Err(LibpfmError::Text("the event has more attributes than libpfm4 can hold"));
        }
        Ok(())
    }

    /// The event that a text without attributes names, or is an alias of.
    fn find(&self, event: &str) -> Result<OwnedEntry, LibpfmError> {
        let text = EventText::new(event)?;
        // SAFETY: the text is a C string without attributes, and is copied.
        let index = unsafe { (self.pfm_find_event)(text.0.as_ptr()) };
        self.check(index.min(0))?;
        self.entry(index).ok_or(LibpfmError::Text("libpfm4 says nothing of the event"))
    }

    pub(super) fn pmu(&self, number: c_uint) -> Result<LibpfmPmu, c_int> {
        let mut info = Roomy::<PmuInfo>::zeroed();
        info.known.size = size_of::<PmuInfo>();
        // SAFETY: `info` is live and says its size; any number may be asked for.
        match unsafe { (self.pfm_get_pmu_info)(number, &raw mut info) } {
            0 => {}
            code => return Err(code),
        }
        let info = info.known;
        // SAFETY: libpfm4 set it, to a constant.
        let name = unsafe { copy(info.name) };
        // SAFETY: likewise.
        let description = unsafe { copy(info.desc) };
        Ok(LibpfmPmu {
            name: name.unwrap_or_default(),
            description: description.unwrap_or_default(),
            present: info.flags & 1 != 0,
            event_count: u32::try_from(info.nevents).unwrap_or(0),
            first_event: info.first_event,
        })
    }

    pub(super) fn next_event(&self, index: c_int) -> c_int {
        // SAFETY: the function checks the index.
        unsafe { (self.pfm_get_event_next)(index) }
    }

    pub(super) fn entry(&self, index: c_int) -> Option<OwnedEntry> {
        let mut info = Roomy::<EventInfo>::zeroed();
        info.known.size = size_of::<EventInfo>();
        // SAFETY: `info` is live and says its size; the function checks the index.
        let code = unsafe { (self.pfm_get_event_info)(index, PERF_EVENT_EXT, &raw mut info) };
        let info = info.known;
        if code != 0 {
            return None;
        }
        // SAFETY: libpfm4 set it, to a string of its tables, which stay as long as it is open.
        let name = unsafe { copy(info.name) };
        // SAFETY: likewise.
        let description = unsafe { copy(info.desc) };
        // SAFETY: likewise.
        let equivalent = unsafe { copy(info.equiv) };
        Some(OwnedEntry {
            name: name.unwrap_or_default(),
            description: description.unwrap_or_default(),
            equivalent,
            attributes: (0..info.nattrs).filter_map(|nth| self.attribute(index, nth)).collect(),
        })
    }

    fn attribute(&self, event: c_int, nth: c_int) -> Option<LibpfmAttribute> {
        let mut info = Roomy::<AttributeInfo>::zeroed();
        info.known.size = size_of::<AttributeInfo>();
        let get = self.pfm_get_event_attr_info;
        // SAFETY: `info` is live and says its size; the function checks both indices.
        let code = unsafe { get(event, nth, PERF_EVENT_EXT, &raw mut info) };
        let info = info.known;
        if code != 0 {
            return None;
        }
        // SAFETY: libpfm4 set it, to a string of its tables, which stay as long as it is open.
        let name = unsafe { copy(info.name) };
        // SAFETY: likewise.
        let description = unsafe { copy(info.desc) };
        // SAFETY: likewise.
        let equivalent = unsafe { copy(info.equiv) };
        Some(LibpfmAttribute {
            name: name?,
            description: description.unwrap_or_default(),
            equivalent,
            kind: match info.kind {
                1 => LibpfmAttributeKind::Mask,
                2 => LibpfmAttributeKind::Flag,
                3 => LibpfmAttributeKind::Number,
                _ => LibpfmAttributeKind::Other,
            },
            is_default: info.flags & 1 != 0,
        })
    }
}

/// An event in libpfm4's tables, copied.
#[derive(Debug)]
pub(super) struct OwnedEntry {
    name: String,
    description: String,
    equivalent: Option<String>,
    attributes: Vec<LibpfmAttribute>,
}

impl OwnedEntry {
    /// How many attributes one in a text becomes when aliases are replaced.
    fn expanded(&self, attribute: &str) -> usize {
        let name = attribute.split('=').next().unwrap_or_default();
        let same = self.attributes.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
        let parts = same.filter_map(|it| it.equivalent.as_deref());
        let sum = |parts: &str| parts.split(DELIMITERS).map(|part| self.expanded(part)).sum();
        parts.map(sum).max().unwrap_or(1)
    }

    pub(super) fn borrow(&self) -> LibpfmEntry<'_> {
        LibpfmEntry {
            name: &self.name,
            description: &self.description,
            equivalent: self.equivalent.as_deref(),
            attributes: &self.attributes,
        }
    }
}
