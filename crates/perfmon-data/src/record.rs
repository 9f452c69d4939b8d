use crate::EventRead;

/// A record of a perf ring: what counting needs of it. No sample ids are asked for, so none are expected.
///
/// # References
/// - perf_event_open(2), "MMAP layout"
/// - `include/uapi/linux/perf_event.h`, `enum perf_event_type`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// `PERF_RECORD_LOST`: the ring had no room for this many records.
    Lost(u64),
    /// `PERF_RECORD_COMM`: a thread took this name.
    Comm {
        /// The thread.
        tid: u32,
        /// Its name.
        comm: String,
    },
    /// `PERF_RECORD_EXIT`: a thread ended.
    Exit {
        /// The thread.
        tid: u32,
    },
    /// `PERF_RECORD_FORK`: a thread was created.
    Fork {
        /// The new thread.
        tid: u32,
        /// The thread that created it.
        parent_tid: u32,
    },
    /// `PERF_RECORD_READ`: what an inherited event counted for a thread that ended.
    Read {
        /// The thread.
        tid: u32,
        /// The counts.
        read: EventRead,
    },
    /// Any other.
    Other,
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const READ: u32 = 8;
const HEADER_BYTES: usize = 8;

/// The records in a run of bytes that begins with one.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes that could not be taken apart: none, unless a record was damaged or cut off.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let kind = u32_at(self.bytes, 0)?;
        let size = usize::from(u16::from_ne_bytes(self.bytes.get(6..8)?.try_into().ok()?));
        if size < HEADER_BYTES {
            return None;
        }
        let body = self.bytes.get(HEADER_BYTES..size)?;
        let record = parse(kind, body)?;
        self.bytes = &self.bytes[size..];
        Some(record)
    }
}

fn parse(kind: u32, body: &[u8]) -> Option<Record> {
    Some(match kind {
        LOST => Record::Lost(u64_at(body, 8)?),
        COMM => {
            let name = body.get(8..)?.split(|byte| *byte == 0).next().unwrap_or_default();
            Record::Comm { tid: u32_at(body, 4)?, comm: String::from_utf8_lossy(name).into_owned() }
        }
        EXIT => Record::Exit { tid: u32_at(body, 8)? },
        FORK => Record::Fork { tid: u32_at(body, 8)?, parent_tid: u32_at(body, 12)? },
        READ => {
            let mut words = [0; EventRead::WORDS];
            for (word, offset) in words.iter_mut().zip((8..).step_by(8)) {
                *word = u64_at(body, offset)?;
            }
            Record::Read { tid: u32_at(body, 4)?, read: EventRead::parse(&words)? }
        }
        _ => Record::Other,
    })
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(HEADER_BYTES + body.len()).unwrap();
        let header = [&kind.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes()].concat();
        [header, body.to_vec()].concat()
    }

    fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Check that each kind of record is taken apart where the kernel puts its fields.
    #[test]
    fn records_are_taken_apart() {
        let counts: Vec<u8> =
            [9_u64, 20, 10, 77].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let bytes = [
            record(FORK, &words([1, 2, 3, 4, 0, 0])),
            record(COMM, &[&words([1, 3])[..], b"ls\0\0\0\0\0\0"].concat()),
            record(READ, &[words([1, 3]), counts].concat()),
            record(EXIT, &words([1, 2, 3, 4, 0, 0])),
            record(LOST, &words([7, 0, 5, 0])),
            record(99, &[]),
        ]
        .concat();
        let mut records = Records::new(&bytes);
        let read = EventRead { value: 9, enabled_ns: 20, running_ns: 10, id: 77 };
        let expected = [
            Record::Fork { tid: 3, parent_tid: 4 },
            Record::Comm { tid: 3, comm: "ls".into() },
            Record::Read { tid: 3, read },
            Record::Exit { tid: 3 },
            Record::Lost(5),
            Record::Other,
        ];
        assert_eq!(records.by_ref().collect::<Vec<_>>(), expected);
        assert!(records.rest().is_empty());
    }

    /// Check that damage stops the reading where it is, and is seen as a rest.
    #[test]
    fn damage_is_left_as_a_rest() {
        let good = record(EXIT, &words([1, 2, 3, 4]));
        let short = record(READ, &words([1, 3, 0]));
        for bad in [&[1, 2, 3][..], &[0; 16], &short, &good[..12]] {
            let bytes = [&good, bad].concat();
            let mut records = Records::new(&bytes);
            assert_eq!(records.by_ref().count(), 1);
            assert_eq!(records.rest(), bad);
        }
    }
}
