use std::collections::HashMap;

use perfmon_core::Reading;

use super::kernel_side::TaskRow;

/// What one task has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReadings {
    /// The thread, as the initial PID namespace numbers it.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// One reading per event of the plan, in its order.
    pub readings: Vec<Reading>,
}

/// The rows of tasks that have ended.
#[derive(Debug, Default)]
pub(super) struct Rows {
    ended: HashMap<u64, TaskRow>,
}

impl Rows {
    pub(super) fn note(&mut self, row: TaskRow) {
        self.ended.insert(row.serial, row);
    }

    /// All rows: those of ended tasks, and of `live` those that have not ended since; `places` says where in the plan of
    /// `events` events theirs are.
    pub(super) fn readings(
        &self,
        live: &[TaskRow],
        places: &[usize],
        events: usize,
    ) -> Vec<TaskReadings> {
        let live = live.iter().filter(|row| !self.ended.contains_key(&row.serial));
        let mut rows: Vec<&TaskRow> = self.ended.values().chain(live).collect();
        rows.sort_unstable_by_key(|row| row.serial);
        let readings = |row: &TaskRow| {
            let mut readings = vec![Reading::default(); events];
            for (&place, &reading) in places.iter().zip(&row.counts) {
                if let Some(slot) = readings.get_mut(place) {
                    *slot = reading;
                }
            }
            TaskReadings { tid: row.tid, pid: row.pid, comm: row.comm.clone(), readings }
        };
        rows.into_iter().map(readings).collect()
    }
}
