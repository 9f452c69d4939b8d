//! `perf_event_attr` as the kernel reads it.

use perfmon::Encoding;
use perfmon_data::{Attr, pmu_type};
use serde::Serialize;

use crate::cmd::sysfs::{self, SysfsPmu};

/// The fields of `perf_event_attr` that are ever set for an event by itself, as read back from its bytes.
#[derive(Debug, Serialize)]
pub(crate) struct AttrRow {
    pub(crate) r#type: u64,
    pub(crate) type_name: Option<String>,
    /// The PMU that a generic event is for, of several core types.
    pub(crate) extended_type_name: Option<String>,
    pub(crate) size: u64,
    pub(crate) config: u64,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) config3: u64,
    pub(crate) bp_type: u64,
    /// The name whose address is in `config1`.
    pub(crate) path: Option<String>,
    pub(crate) read_format: u64,
    pub(crate) disabled: bool,
    pub(crate) inherit: bool,
    pub(crate) pinned: bool,
    pub(crate) exclusive: bool,
    pub(crate) exclude_user: bool,
    pub(crate) exclude_kernel: bool,
    pub(crate) exclude_hv: bool,
    pub(crate) exclude_idle: bool,
    pub(crate) exclude_host: bool,
    pub(crate) exclude_guest: bool,
    pub(crate) precise_ip: u64,
}

impl AttrRow {
    /// The attributes of an event that is opened by itself on a thread.
    ///
    /// References: `include/uapi/linux/perf_event.h` for the offsets and bits.
    pub(crate) fn new(encoding: &Encoding, pmus: &[SysfsPmu]) -> Self {
        let attr = Attr {
            encoding,
            path_address: None,
            disabled: true,
            inherit: false,
            enable_on_exec: false,
            by_thread: false,
            thread_records: false,
            sample_period: 0,
        };
        let bytes = attr.to_bytes();
        let flags = number::<8>(&bytes, 40);
        let flag = |bit: u32| flags >> bit & 1 == 1;
        let config = number::<8>(&bytes, 8);
        let is_generic = matches!(encoding.pmu_type, pmu_type::HARDWARE | pmu_type::HW_CACHE);
        // `PERF_PMU_TYPE_SHIFT`.
        let extended = u32::try_from(config >> 32).ok().filter(|it| is_generic && *it != 0);
        let name = |pmu_type| sysfs::name_of(pmus, pmu_type).map(ToOwned::to_owned);
        Self {
            r#type: number::<4>(&bytes, 0),
            type_name: name(encoding.pmu_type),
            extended_type_name: extended.and_then(name),
            size: number::<4>(&bytes, 4),
            config,
            config1: number::<8>(&bytes, 56),
            config2: number::<8>(&bytes, 64),
            config3: number::<8>(&bytes, 128),
            bp_type: number::<4>(&bytes, 52),
            path: encoding.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
            read_format: number::<8>(&bytes, 32),
            disabled: flag(0),
            inherit: flag(1),
            pinned: flag(2),
            exclusive: flag(3),
            exclude_user: flag(4),
            exclude_kernel: flag(5),
            exclude_hv: flag(6),
            exclude_idle: flag(7),
            exclude_host: flag(19),
            exclude_guest: flag(20),
            precise_ip: flags >> 15 & 3,
        }
    }
}

/// The number of `N` bytes at `offset`, in this machine's byte order; its bytes are the low ones of the result.
fn number<const N: usize>(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    let field = bytes.get(offset..offset + N).unwrap_or_default();
    let place = if cfg!(target_endian = "big") { 8 - N } else { 0 };
    for (to, from) in word.iter_mut().skip(place).zip(field) {
        *to = *from;
    }
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use perfmon::Privilege;

    use super::*;

    /// Check that what is shown is what was put in, bit by bit.
    #[test]
    fn fields_are_read_back() {
        let encoding = Encoding {
            pmu_type: 9,
            config: 0x1122_3344_5566_7788,
            config1: 1 << 63,
            config2: 2,
            config3: 3,
            bp_type: 0x8000_0001,
            path: Some(Arc::from(c"/bin/x")),
            privilege: Privilege { exclude_idle: true, exclude_guest: true, ..Privilege::USER },
            pinned: true,
            exclusive: false,
            precise_ip: 2,
        };
        let row = AttrRow::new(&encoding, &[]);
        assert_eq!((row.r#type, row.size, row.type_name), (9, 136, None));
        assert_eq!((row.config, row.config1), (encoding.config, 1 << 63));
        assert_eq!((row.config2, row.config3, row.bp_type), (2, 3, 0x8000_0001));
        assert_eq!(
            (row.read_format, row.precise_ip, row.path.as_deref()),
            (0xb, 2, Some("/bin/x"))
        );
        assert!(row.disabled && row.pinned && row.exclude_kernel && row.exclude_hv);
        assert!(row.exclude_idle && row.exclude_guest);
        assert!(!row.inherit && !row.exclusive && !row.exclude_user && !row.exclude_host);
    }

    /// Check that a generic event names the core type that it is for, and that no other event does.
    #[test]
    fn core_types_are_named() {
        let pmu = |name: &str, pmu_type| SysfsPmu { name: name.into(), pmu_type, cpus: None };
        let pmus = [pmu("cpu_atom", 10), pmu("cpu_core", 4)];
        let row = |pmu_type, config| {
            AttrRow::new(&Encoding { pmu_type, config, ..Encoding::default() }, &pmus)
        };
        let generic = row(0, 10 << 32 | 1);
        assert_eq!(generic.type_name.as_deref(), Some("hardware"));
        assert_eq!(generic.extended_type_name.as_deref(), Some("cpu_atom"));
        let own = row(4, 10 << 32);
        assert_eq!((own.type_name.as_deref(), own.extended_type_name), (Some("cpu_core"), None));
    }
}
