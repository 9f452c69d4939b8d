use perfmon_core::{Encoding, Privilege};

/// `perf_event_attr.type` of the kernel's own PMUs.
pub mod pmu_type {
    /// `PERF_TYPE_HARDWARE`: generic hardware events.
    pub const HARDWARE: u32 = 0;
    /// `PERF_TYPE_SOFTWARE`.
    pub const SOFTWARE: u32 = 1;
    /// `PERF_TYPE_TRACEPOINT`.
    pub const TRACEPOINT: u32 = 2;
    /// `PERF_TYPE_HW_CACHE`: generic cache events.
    pub const HW_CACHE: u32 = 3;
    /// `PERF_TYPE_RAW`: the core PMU's own codes.
    pub const RAW: u32 = 4;
    /// `PERF_TYPE_BREAKPOINT`.
    pub const BREAKPOINT: u32 = 5;
}

/// Size of the attribute block we write: `PERF_ATTR_SIZE_VER8`. Older kernels take it as long as what they
/// don't know is zero.
pub const ATTR_SIZE_BYTES: usize = 136;

const FORMAT_TOTAL_TIME_ENABLED: u64 = 1 << 0;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const FORMAT_ID: u64 = 1 << 2;
const FORMAT_GROUP: u64 = 1 << 3;

/// A `perf_event_attr` for counting: an event, and how it is opened.
///
/// All members of a group are read at once, with the times for which the group was enabled and running; with
/// `by_thread` each event is read by itself ([`EventRead`](crate::EventRead)).
#[doc(alias = "perf_event_attr")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr<'a> {
    /// The event.
    pub encoding: &'a Encoding,
    /// Address of the file name that a uprobe needs; `config1` then holds it.
    pub path_address: Option<u64>,
    /// Starts disabled.
    pub disabled: bool,
    /// Follows into the threads and processes that the target creates.
    pub inherit: bool,
    /// Is enabled by the target's next exec.
    pub enable_on_exec: bool,
    /// Each thread that inherited the event leaves a record of its counts when it ends.
    pub by_thread: bool,
    /// The event leaves records of threads: their creation, names and ends.
    pub thread_records: bool,
    /// Events from one overflow to the next; 0 for none. Each overflow leaves a record without fields, and wakes whoever
    /// waits for the event, if it has a ring.
    pub sample_period: u64,
}

impl Attr<'_> {
    /// The attribute block as the kernel reads it, in this machine's byte order.
    pub fn to_bytes(&self) -> [u8; ATTR_SIZE_BYTES] {
        let encoding = self.encoding;
        let mut bytes = [0; ATTR_SIZE_BYTES];
        let mut put = |offset: usize, field: &[u8]| {
            bytes[offset..offset + field.len()].copy_from_slice(field);
        };
        let size: u32 = 136;
        let read_format = FORMAT_TOTAL_TIME_ENABLED
            | FORMAT_TOTAL_TIME_RUNNING
            | if self.by_thread { FORMAT_ID } else { FORMAT_GROUP };
        put(0, &encoding.pmu_type.to_ne_bytes());
        put(4, &size.to_ne_bytes());
        put(8, &encoding.config.to_ne_bytes());
        put(16, &self.sample_period.to_ne_bytes());
        put(32, &read_format.to_ne_bytes());
        put(40, &self.flags().to_ne_bytes());
        // `wakeup_events`
        put(48, &u32::from(self.sample_period > 0).to_ne_bytes());
        put(52, &encoding.bp_type.to_ne_bytes());
        put(56, &self.path_address.unwrap_or(encoding.config1).to_ne_bytes());
        put(64, &encoding.config2.to_ne_bytes());
        put(128, &encoding.config3.to_ne_bytes());
        bytes
    }

    /// The bit field after `read_format`; its first bit is the lowest on the little-endian machines that
    /// perfmon runs on.
    fn flags(&self) -> u64 {
        let Encoding { pinned, exclusive, precise_ip, privilege, .. } = *self.encoding;
        let Privilege {
            exclude_user,
            exclude_kernel,
            exclude_hv,
            exclude_idle,
            exclude_host,
            exclude_guest,
        } = privilege;
        let bits = [
            (0, self.disabled),
            (1, self.inherit),
            (2, pinned),
            (3, exclusive),
            (4, exclude_user),
            (5, exclude_kernel),
            (6, exclude_hv),
            (7, exclude_idle),
            (9, self.thread_records),
            (11, self.by_thread),
            (12, self.enable_on_exec),
            (13, self.thread_records),
            (19, exclude_host),
            (20, exclude_guest),
        ];
        let flags = bits.iter().filter(|(_, set)| *set).fold(0, |flags, (bit, _)| flags | 1 << bit);
        flags | u64::from(precise_ip & 3) << 15
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], offset: usize) -> u64 {
        u64::from_ne_bytes(bytes[offset..offset + 8].try_into().unwrap())
    }

    /// Check the offset of every field that we write, against the kernel's header.
    #[test]
    fn fields_are_where_the_kernel_reads_them() {
        let encoding = Encoding {
            pmu_type: pmu_type::BREAKPOINT,
            config: 0x1122,
            config1: 0x3344,
            config2: 8,
            config3: 0x5566,
            bp_type: 2,
            privilege: Privilege::USER,
            ..Encoding::default()
        };
        let attr = Attr {
            encoding: &encoding,
            path_address: None,
            disabled: true,
            inherit: true,
            enable_on_exec: true,
            by_thread: false,
            thread_records: false,
            sample_period: 0,
        };
        let bytes = attr.to_bytes();
        assert_eq!(word(&bytes, 0), 136 << 32 | 5);
        assert_eq!(word(&bytes, 8), 0x1122);
        assert_eq!(word(&bytes, 32), 0b1011);
        assert_eq!(word(&bytes, 40), 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 12);
        assert_eq!(word(&bytes, 48), 2 << 32);
        assert_eq!((word(&bytes, 56), word(&bytes, 64)), (0x3344, 8));
        assert_eq!(word(&bytes, 128), 0x5566);
        let zero = |range: std::ops::Range<usize>| bytes[range].iter().all(|byte| *byte == 0);
        assert!(zero(16..32) && zero(72..128));
        let by_thread = Attr { by_thread: true, thread_records: true, ..attr.clone() }.to_bytes();
        assert_eq!(word(&by_thread, 32), 0b111);
        assert_eq!(word(&by_thread, 40) & !word(&bytes, 40), 1 << 9 | 1 << 11 | 1 << 13);
        let path = Attr { path_address: Some(0x7788), ..attr };
        assert_eq!(word(&path.to_bytes(), 56), 0x7788);
    }
}
