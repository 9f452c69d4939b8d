use std::collections::{BTreeMap, HashMap, HashSet};

use perfmon_core::{Inherit, Reading, StartOn};
use perfmon_data::{EventRead, Record, Records};
use perfmon_sys::{Errno, Ring, read_words, set_output};

use crate::counter::{Counter, Place};
use crate::group::CounterGroup;

/// Pages of a CPU's ring: half a megabyte, which is what an ordinary user may lock. Less is taken where not so
/// much is to be had.
const RING_PAGES: usize = 128;
const RING_PAGES_MIN: usize = 4;

/// What tells the threads of a tree apart.
///
/// Inherited events can leave records only in rings of one CPU, so each event is opened once per CPU; each
/// thread's copy of each of them leaves a record of its counts when the thread ends.
#[derive(Debug, Default)]
pub(crate) struct ByThread {
    /// An event that is not inherited. Without it the kernel may hand the target's own events on to a
    /// descendant (it swaps equal contexts at a context switch), whose end would then leave no record.
    _anchor: Option<Counter>,
    rings: Vec<(Counter, Ring)>,
    /// For each event's id its place in the plan.
    places: HashMap<u64, usize>,
    log: ThreadLog,
}

/// What the records said.
#[derive(Debug, Default)]
struct ThreadLog {
    /// What ended threads counted, by place in the plan.
    counts: BTreeMap<u32, BTreeMap<usize, Parts>>,
    parents: HashMap<u32, u32>,
    comms: HashMap<u32, String>,
    ended: HashSet<u32>,
    lost: u64,
}

/// One event of one thread, added up over the CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    number: usize,
    value: u64,
    running_ns: u64,
    enabled_ns: u64,
}

/// What one thread of a tree counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReadings {
    /// The thread.
    pub tid: u32,
    /// One reading per event of the plan, in its order.
    pub readings: Vec<Reading>,
}

/// Threads whose counts are in the total, but in no row of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotToldApart {
    /// Descendants that had not ended.
    pub running: usize,
    /// Descendants that ended without a complete record of their counts.
    pub silent: usize,
    /// Records for which a ring had no room.
    pub lost: u64,
}

impl NotToldApart {
    /// Every thread has its own row.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Parts {
    fn add(&mut self, read: &EventRead) {
        // An event that is bound to a CPU is enabled all the time and runs on that CPU: the times for which it
        // ran add up, those for which it was enabled are all the same, but for the microseconds between
        // one CPU's start and the next.
        self.enabled_ns =
            if self.number == 0 { read.enabled_ns } else { self.enabled_ns.min(read.enabled_ns) };
        self.number += 1;
        self.value = self.value.wrapping_add(read.value);
        self.running_ns = self.running_ns.saturating_add(read.running_ns);
    }

    fn reading(&self) -> Reading {
        let &Self { value, enabled_ns, running_ns, .. } = self;
        Reading { value, enabled_ns, running_ns, in_error: false }
    }
}

impl ByThread {
    /// For the thread at `place`, without rings yet.
    pub(crate) fn new(place: &Place) -> Result<Self, Errno> {
        let anchor = Counter::open_tracker(&Place {
            tid: place.tid,
            cpu: -1,
            cgroup: None,
            inherit: Inherit::None,
            start_on: StartOn::Call,
        })?;
        Ok(Self { _anchor: Some(anchor), ..Self::default() })
    }

    /// Opens the ring of one CPU, which `place` names.
    pub(crate) fn open_ring(&mut self, place: &Place) -> Result<(), Errno> {
        let tracker = Counter::open_tracker(place)?;
        let mut pages = RING_PAGES;
        let ring = loop {
            match Ring::map(&tracker, pages) {
                Err(Errno::PERM | Errno::NOMEM) if pages > RING_PAGES_MIN => pages /= 2,
                ring => break ring?,
            }
        };
        self.rings.push((tracker, ring));
        Ok(())
    }

    /// Sends the records of `group`, opened on the CPU of the last ring, to that ring.
    pub(crate) fn adopt(&mut self, group: &CounterGroup) -> Result<(), Errno> {
        let Some((tracker, _)) = self.rings.last() else { return Ok(()) };
        for (place, counter) in group.members() {
            set_output(counter, tracker)?;
            self.places.insert(read_one(counter)?.id, place);
        }
        Ok(())
    }

    /// Reads all events of `groups`, added up over the CPUs.
    pub(crate) fn read(groups: &[CounterGroup], readings: &mut [Reading]) -> Result<(), Errno> {
        let mut sums = vec![Parts::default(); readings.len()];
        for (place, counter) in groups.iter().flat_map(CounterGroup::members) {
            if let Some(sum) = sums.get_mut(place) {
                sum.add(&read_one(counter)?);
            }
        }
        for (reading, sum) in readings.iter_mut().zip(&sums).filter(|(_, sum)| sum.number > 0) {
            *reading = sum.reading();
        }
        Ok(())
    }

    /// Takes the records that are there.
    pub(crate) fn drain(&mut self) {
        let mut bytes = Vec::new();
        for (_, ring) in &mut self.rings {
            bytes.clear();
            ring.drain(&mut bytes);
            self.log.take(&bytes, &self.places);
        }
    }

    /// The ended threads whose counts are complete, with one reading for each of `events` places.
    pub(crate) fn threads(&self, events: usize) -> Vec<ThreadReadings> {
        let complete = |parts: &&BTreeMap<usize, Parts>| self.is_complete(parts);
        let readings = |parts: &BTreeMap<usize, Parts>| {
            let reading = |place| parts.get(&place).map_or_else(Reading::default, Parts::reading);
            (0..events).map(reading).collect()
        };
        let counts = self.log.counts.iter().filter(|(_, parts)| complete(parts));
        counts.map(|(&tid, parts)| ThreadReadings { tid, readings: readings(parts) }).collect()
    }

    /// Whether each event of each CPU has said its count.
    fn is_complete(&self, parts: &BTreeMap<usize, Parts>) -> bool {
        let said: usize = parts.values().map(|parts| parts.number).sum();
        // A thread id that was used again says all of it again.
        said > 0 && said.is_multiple_of(self.places.len())
    }

    pub(crate) fn not_told_apart(&self) -> NotToldApart {
        let log = &self.log;
        let complete =
            |tid: &&u32| log.counts.get(tid).is_some_and(|parts| self.is_complete(parts));
        let descendants = || log.parents.keys();
        NotToldApart {
            running: descendants().filter(|tid| !log.ended.contains(tid)).count(),
            silent: descendants().filter(|tid| log.ended.contains(tid) && !complete(tid)).count(),
            lost: log.lost,
        }
    }

    /// The name of a thread: its own, or that of the thread that created it.
    pub(crate) fn comm(&self, tid: u32) -> Option<&str> {
        let mut tid = tid;
        // As long as there are ancestors; ids that were used again could make a circle.
        for _ in 0..=self.log.parents.len() {
            if let Some(comm) = self.log.comms.get(&tid) {
                return Some(comm);
            }
            tid = *self.log.parents.get(&tid)?;
        }
        None
    }
}

impl ThreadLog {
    fn take(&mut self, bytes: &[u8], places: &HashMap<u64, usize>) {
        let mut records = Records::new(bytes);
        for record in records.by_ref() {
            match record {
                Record::Lost(lost) => self.lost += lost,
                Record::Comm { tid, comm } => _ = self.comms.insert(tid, comm),
                Record::Exit { tid } => _ = self.ended.insert(tid),
                Record::Fork { tid, parent_tid } => _ = self.parents.insert(tid, parent_tid),
                Record::Read { tid, read } => {
                    if let Some(&place) = places.get(&read.id) {
                        self.counts.entry(tid).or_default().entry(place).or_default().add(&read);
                    }
                }
                Record::Other => {}
            }
        }
        // What could not be taken apart is lost, however much it was.
        self.lost += u64::from(!records.rest().is_empty());
    }
}

fn read_one(counter: &Counter) -> Result<EventRead, Errno> {
    let mut words = [0; EventRead::WORDS];
    let length = read_words(counter, &mut words)?;
    EventRead::parse(words.get(..length).unwrap_or_default()).ok_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: u64, value: u64, enabled_ns: u64, running_ns: u64) -> EventRead {
        EventRead { value, enabled_ns, running_ns, id }
    }

    /// Two events on two CPUs: ids 1 and 2 are place 0, ids 3 and 4 place 1.
    fn two_by_two() -> ByThread {
        let places = [(1, 0), (2, 0), (3, 1), (4, 1)].into();
        ByThread { places, ..ByThread::default() }
    }

    fn say(by_thread: &mut ByThread, tid: u32, reads: &[EventRead]) {
        for read in reads {
            let place = by_thread.places[&read.id];
            by_thread.log.counts.entry(tid).or_default().entry(place).or_default().add(read);
        }
        by_thread.log.ended.insert(tid);
    }

    /// Check that the CPUs' parts of a thread add up, and that it counts as having run all the time.
    #[test]
    fn parts_of_a_thread_add_up() {
        let mut by_thread = two_by_two();
        by_thread.log.parents.insert(7, 1);
        let reads =
            [read(1, 5, 100, 60), read(2, 6, 101, 40), read(3, 1, 100, 60), read(4, 0, 101, 40)];
        say(&mut by_thread, 7, &reads);
        let threads = by_thread.threads(2);
        let reading = |value| Reading { value, enabled_ns: 100, running_ns: 100, in_error: false };
        assert_eq!(threads, [ThreadReadings { tid: 7, readings: vec![reading(11), reading(1)] }]);
        assert!(by_thread.not_told_apart().is_none());
    }

    /// Check that a thread of which one record is missing gets no row, and is counted as such.
    #[test]
    fn incomplete_threads_have_no_row() {
        let mut by_thread = two_by_two();
        by_thread.log.parents.extend([(7, 1), (8, 1), (9, 8)]);
        say(&mut by_thread, 7, &[read(1, 5, 100, 60), read(2, 6, 101, 40), read(3, 1, 100, 60)]);
        by_thread.log.ended.insert(8);
        by_thread.log.lost = 3;
        assert!(by_thread.threads(2).is_empty());
        let expected = NotToldApart { running: 1, silent: 2, lost: 3 };
        assert_eq!(by_thread.not_told_apart(), expected);
    }

    /// Check that a thread without a name has its creator's, and that a circle of creators ends.
    #[test]
    fn names_come_from_creators() {
        let mut by_thread = two_by_two();
        by_thread.log.parents.extend([(7, 1), (8, 7), (20, 21), (21, 20)]);
        by_thread.log.comms.insert(1, "make".into());
        assert_eq!(by_thread.comm(8), Some("make"));
        assert_eq!(by_thread.comm(20), None);
    }
}
