use std::sync::atomic::Ordering;

use super::{BpfMap, SharedMemory, map_type};
use crate::Errno;

/// The consumer's side of a BPF ring buffer.
///
/// # References
/// - Documentation/bpf/ringbuf.rst
#[derive(Debug)]
pub struct BpfRing {
    consumer: SharedMemory,
    /// A page with the producer's position, then the data, twice in a row.
    producer: SharedMemory,
    bytes: usize,
    page_bytes: usize,
}

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;

impl BpfRing {
    /// Maps the ring. It has one consumer: two lose records to each other.
    ///
    /// # Errors
    /// The kernel's; `EINVAL` for a map that is no ring buffer.
    pub fn map(map: &BpfMap) -> Result<Self, Errno> {
        let spec = map.spec();
        let bytes = spec.max_entries as usize;
        if spec.map_type != map_type::RINGBUF || !bytes.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let page_bytes = rustix::param::page_size();
        let consumer = SharedMemory::map(map, 0, page_bytes, true)?;
        let producer = SharedMemory::map(map, page_bytes as u64, page_bytes + 2 * bytes, false)?;
        Ok(Self { consumer, producer, bytes, page_bytes })
    }

    /// Hands every finished record to `take` and frees it. Says how many.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        let (Some(consumed), Some(produced)) = (self.consumer.word(0), self.producer.word(0))
        else {
            return 0;
        };
        let mut taken = 0;
        let mut position = consumed.load_relaxed();
        while position != produced.load() {
            // The size is a power of 2, and the positions wrap as it does.
            let offset = usize::try_from(position % self.bytes as u64).unwrap_or(0);
            let at = self.page_bytes + offset;
            let Some(header) = self.producer.word32(at) else { break };
            let header = header.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let length = (header & !(BUSY | DISCARDED)) as usize;
            // Submitted: the kernel writes it no more until the consumer's position has passed it.
            let Some(record) = self.producer.settled(at + HEADER_BYTES, length) else { break };
            if header & DISCARDED == 0 {
                take(record);
                taken += 1;
            }
            position += (length + HEADER_BYTES).next_multiple_of(8) as u64;
            consumed.store(position);
        }
        taken
    }
}
