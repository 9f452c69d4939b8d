mod layout;
mod library;

use std::ffi::{CString, c_int};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use library::Api;

/// `PFM_ERR_INVAL`.
const ERR_INVAL: c_int = -2;
/// `PFM_ERR_NOTFOUND`.
const ERR_NOTFOUND: c_int = -4;
/// No library has PMUs with this number or a higher one: ten bits of an event's index name the PMU.
const PMUS_MAX: u32 = 1024;

const TEXT_BYTES_MAX: usize = 4096;

/// libpfm4, opened at run time: event names of its tables to perf events.
///
/// There is one library per process, and it stays open; all handles are of that one. libpfm4 is not
/// thread-safe, so calls through handles are serialised; calls that other code of the process makes into
/// libpfm4 by itself are not.
///
/// Variables of the environment that libpfm4 heeds (`LIBPFM_ENCODE_INACTIVE=1`: encode for PMUs that this
/// machine does not have; `LIBPFM_FORCE_PMU`, `LIBPFM_DISABLED_PMUS`, `LIBPFM_VERBOSE`, `LIBPFM_DEBUG`) are
/// read once, when it is opened.
///
/// # References
/// - libpfm(3), pfm_initialize(3)
#[derive(Clone, Copy, Debug)]
pub struct Libpfm {
    api: &'static Mutex<Api>,
}

/// Why libpfm4 did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LibpfmError {
    /// The library is not there, or not usable: the loader's text.
    NotInstalled(String),
    /// The event's text was not given to libpfm4, for this reason.
    Text(&'static str),
    /// libpfm4's answer.
    Library {
        /// The error's number, a `PFM_ERR_*`.
        code: i32,
        /// What pfm_strerror(3) says of it.
        text: String,
    },
}

impl LibpfmError {
    /// Whether libpfm4 knows no event, or no PMU present here, of that name.
    #[doc(alias = "PFM_ERR_NOTFOUND")]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Library { code: ERR_NOTFOUND, .. })
    }
}

impl std::fmt::Display for LibpfmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotInstalled(text) => write!(f, "cannot load libpfm4: {text}"),
            Self::Text(reason) => f.write_str(reason),
            Self::Library { code, text } => write!(f, "{text} (libpfm4's error {code})"),
        }
    }
}

impl std::error::Error for LibpfmError {}

/// A perf event as libpfm4 encodes it: fields of `perf_event_attr`, which perf_event_open(2) explains.
#[doc(alias = "pfm_perf_encode_arg_t")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibpfmEvent {
    /// `type`: the number of the kernel's PMU.
    pub pmu_type: u32,
    /// `config`.
    pub config: u64,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
    /// `config3`; libpfm4 4.13 does not know it yet and leaves 0.
    pub config3: u64,
    /// Does not count in user mode.
    pub exclude_user: bool,
    /// Does not count in the kernel.
    pub exclude_kernel: bool,
    /// Does not count in the hypervisor; so without `h`, where the PMU can tell.
    pub exclude_hv: bool,
    /// Does not count in guests; so without `mg`, where the PMU can tell.
    pub exclude_guest: bool,
    /// Does not count in the host.
    pub exclude_host: bool,
    /// `precise_ip`, 0 to 3.
    pub precise_ip: u8,
    /// Must always be on the PMU.
    pub pinned: bool,
    /// Must be alone on the PMU.
    pub exclusive: bool,
    /// Occurrences per sample, or samples per second if `is_frequency`; 0 if the text gives none.
    #[doc(alias = "sample_freq")]
    pub sample_period: u64,
    /// Whether `sample_period` is a frequency in hertz.
    #[doc(alias = "freq")]
    pub is_frequency: bool,
    /// The CPU that the text asks for.
    pub cpu: Option<u32>,
    /// The event with its PMU and all its modifiers spelled out; the given text where libpfm4 gives none. It is to be
    /// read, not encoded again: libpfm4 4.13 takes `mg=0` for `mg`, and cuts long names.
    #[doc(alias = "fstr")]
    pub full_name: String,
}

/// A PMU that libpfm4 has a table for.
#[doc(alias = "pfm_pmu_info_t")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibpfmPmu {
    /// What comes before `::` in an event's text.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Whether this machine has it, as far as libpfm4 can tell.
    pub present: bool,
    /// How many events it has, aliases included.
    pub event_count: u32,
    first_event: c_int,
}

/// An event in libpfm4's tables.
#[doc(alias = "pfm_event_info_t")]
#[derive(Clone, Copy, Debug)]
pub struct LibpfmEntry<'a> {
    /// What comes after `::` in an event's text.
    pub name: &'a str,
    /// What it counts.
    pub description: &'a str,
    /// What it stands for, if it is an alias.
    pub equivalent: Option<&'a str>,
    /// What may follow the name, each after a colon: unit masks first, then modifiers.
    pub attributes: &'a [LibpfmAttribute],
}

/// A unit mask or a modifier of an event.
#[doc(alias = "pfm_event_attr_info_t")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibpfmAttribute {
    /// Its name in an event's text.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The attributes that it stands for, if it is an alias.
    pub equivalent: Option<String>,
    /// What it is, and takes.
    pub kind: LibpfmAttributeKind,
    /// Whether it is the unit mask that applies if the text names none of its kind.
    pub is_default: bool,
}

/// What an attribute is.
#[doc(alias = "pfm_attr_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LibpfmAttributeKind {
    /// `PFM_ATTR_UMASK`: a unit mask, which takes no value.
    Mask,
    /// `PFM_ATTR_MOD_BOOL`: a modifier that is set or not: `:u`, `:u=0`.
    Flag,
    /// `PFM_ATTR_MOD_INTEGER`: a modifier with a number: `:c=1`.
    Number,
    /// Something newer.
    Other,
}

impl Libpfm {
    /// Opens libpfm4 (`libpfm.so.4`, as the loader finds it) and initialises it; gives the open one if that
    /// was done before.
    ///
    /// # Errors
    /// [`LibpfmError::NotInstalled`], or the [`LibpfmError::Library`] of pfm_initialize(3). The next call
    /// tries again.
    #[doc(alias = "pfm_initialize")]
    pub fn open() -> Result<Self, LibpfmError> {
        static OPENING: Mutex<()> = Mutex::new(());
        static OPEN: OnceLock<Mutex<Api>> = OnceLock::new();
        let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(api) = OPEN.get() {
            return Ok(Self { api });
        }
        let api = Api::load()?;
        Ok(Self { api: OPEN.get_or_init(|| Mutex::new(api)) })
    }

    /// The version of libpfm4's interface, major and minor. That is not the release: 4.13 says (4, 0).
    ///
    /// # References
    /// - pfm_get_version(3)
    #[doc(alias = "pfm_get_version")]
    pub fn version(&self) -> (u32, u32) {
        let version = self.api().version();
        (version >> 16, version & 0xffff)
    }

    /// Encodes one event, a text in libpfm4's own syntax (`PMU::EVENT:MASK:MODIFIER=VALUE`), for perf.
    /// User mode and the kernel are counted if the text doesn't say (`:u`, `:k`, `:h`), as perf does.
    ///
    /// # Errors
    /// [`LibpfmError::Text`] for a text that holds a NUL, has more than 4096 bytes, or more attributes than
    /// libpfm4 has place for, which it does not check. Otherwise libpfm4's, see
    /// pfm_get_os_event_encoding(3); [`is_not_found`](LibpfmError::is_not_found) if there is no such event.
    ///
    /// # References
    /// - pfm_get_os_event_encoding(3) with `PFM_OS_PERF_EVENT_EXT`
    #[doc(alias = "pfm_get_os_event_encoding")]
    pub fn encode(&self, event: &str) -> Result<LibpfmEvent, LibpfmError> {
        let text = EventText::new(event)?;
        self.api().encode(&text)
    }

    /// The PMUs that libpfm4 has tables for, present or not.
    ///
    /// # References
    /// - pfm_get_pmu_info(3)
    #[doc(alias = "pfm_get_pmu_info")]
    pub fn pmus(&self) -> Vec<LibpfmPmu> {
        let api = self.api();
        let numbers = (0..PMUS_MAX).map(|number| api.pmu(number));
        // The number after the last PMU's is invalid; numbers of other architectures are not supported.
        let known = numbers.take_while(|pmu| *pmu != Err(ERR_INVAL));
        known.filter_map(Result::ok).collect()
    }

    /// Calls `visit` for each event of `pmu`, until it breaks. It may use this handle.
    ///
    /// # References
    /// - pfm_get_event_next(3), pfm_get_event_info(3), pfm_get_event_attr_info(3)
    #[doc(alias = "pfm_get_event_next")]
    #[doc(alias = "pfm_get_event_info")]
    #[doc(alias = "pfm_get_event_attr_info")]
    pub fn events(
        &self,
        pmu: &LibpfmPmu,
        visit: &mut dyn FnMut(LibpfmEntry<'_>) -> ControlFlow<()>,
    ) {
        let mut index = pmu.first_event;
        while index >= 0 {
            // The lock is not held during the visit.
            let entry = self.api().entry(index);
            if entry.is_some_and(|entry| visit(entry.borrow()).is_break()) {
                return;
            }
            index = self.api().next_event(index);
        }
    }

    fn api(&self) -> MutexGuard<'static, Api> {
        self.api.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event's text that libpfm4 can read.
struct EventText(CString);

impl EventText {
    fn new(event: &str) -> Result<Self, LibpfmError> {
        if event.len() > TEXT_BYTES_MAX {
            return Err(LibpfmError::Text("the event has more than 4096 bytes"));
        }
        let has_nul = |_| LibpfmError::Text("the event holds a NUL");
        CString::new(event).map(Self).map_err(has_nul)
    }
}
