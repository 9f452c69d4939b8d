//! Files of sets.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use perfmon_core::SetId;
use perfmon_events::{Event, Names};
use serde::Deserialize;

use super::plan::{Leave, PlannedSet};

/// Most bytes of a file of sets.
const FILE_MAX_BYTES: u64 = 1 << 20;
const DWELL_US: u64 = 10_000;

/// Event sets as a file has them (docs/sets.md).
#[derive(Clone, Debug)]
pub struct SetsFile {
    path: PathBuf,
    text: Text,
}

/// Why a file of sets can't be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("sets of {}: {why}", .path.display())]
pub struct SetsFileError {
    path: PathBuf,
    why: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    format: u32,
    always: Option<String>,
    dwell_us: Option<u64>,
    #[serde(default)]
    randomise_dwell: bool,
    #[serde(default, rename = "set")]
    sets: Vec<SetText>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetText {
    id: Option<u16>,
    events: String,
    dwell_us: Option<u64>,
    switch_on: Option<String>,
    switch_after: Option<u64>,
}

impl SetsFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file can't be read, is longer than 1 MiB, or is no file of sets.
    pub fn read(path: &Path) -> Result<Self, SetsFileError> {
        let fail = |why: String| SetsFileError { path: path.to_owned(), why };
        let file = std::fs::File::open(path).map_err(|error| fail(error.to_string()))?;
        let mut bytes = Vec::new();
        file.take(FILE_MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| fail(error.to_string()))?;
        if bytes.len() as u64 > FILE_MAX_BYTES {
            return Err(fail("it is longer than 1 MiB".into()));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| fail("it is no text".into()))?;
        Self::parse(path, text)
    }

    /// Takes `text` as the content of a file at `path`, which errors name.
    ///
    /// # Errors
    /// It is no file of sets.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SetsFileError> {
        let fail = |why: String| SetsFileError { path: path.to_owned(), why };
        let text: Text = toml::from_str(text).map_err(|error| fail(error.to_string()))?;
        if text.format != 1 {
            return Err(fail(format!("format {} is not known, only 1 is", text.format)));
        }
        if text.sets.is_empty() {
            return Err(fail("there is no [[set]] in it".into()));
        }
        Ok(Self { path: path.to_owned(), text })
    }

    /// The events that count all the time, and the sets, looked up among `names`: what
    /// [`Session::with_sets`](crate::Session::with_sets) takes.
    ///
    /// # Errors
    /// An event list can't be understood; a set says how it is left in two ways, or by an event that it does not have.
    pub fn resolve(&self, names: &Names) -> Result<(Vec<Event>, Vec<PlannedSet>), SetsFileError> {
        let fail = |why: String| SetsFileError { path: self.path.clone(), why };
        let parse = |list: &str| match list.trim() {
            "" => Ok(Vec::new()),
            list => names.parse(list).map_err(|error| fail(error.to_string())),
        };
        let always = parse(self.text.always.as_deref().unwrap_or(""))?;
        let mut items = always.iter().map(|event| event.item + 1).max().unwrap_or(0);
        let mut sets: Vec<PlannedSet> = Vec::with_capacity(self.text.sets.len());
        for set in &self.text.sets {
            let next = sets.last().map_or(0, |last| last.id.0.saturating_add(1));
            let id = set.id.unwrap_or(next);
            let mut events = parse(&set.events)?;
            events.iter_mut().for_each(|event| event.item += items);
            items = events.iter().map(|event| event.item + 1).max().unwrap_or(items);
            let leave = self.leave(set, &events).map_err(|why| fail(format!("set {id}: {why}")))?;
            sets.push(PlannedSet { id: SetId(id), text: set.events.clone(), events, leave });
        }
        Ok((always, sets))
    }

    fn leave(&self, set: &SetText, events: &[Event]) -> Result<Leave, String> {
        match (&set.switch_on, set.switch_after) {
            (None, None) => {
                let dwell_us = set.dwell_us.or(self.text.dwell_us).unwrap_or(DWELL_US);
                let randomised = self.text.randomise_dwell;
                Ok(Leave::After { dwell: Duration::from_micros(dwell_us), randomised })
            }
            (Some(_), Some(_)) if set.dwell_us.is_some() => {
                Err("it is left by dwell_us or by switch_on, not by both".into())
            }
            (Some(event), Some(period)) => {
                let place = events.iter().position(|it| it.text == *event);
                let event = place
                    .ok_or(format!("switch_on names {event}, which is not among its events"))?;
                Ok(Leave::Overflow { event, period })
            }
            _ => Err("switch_on and switch_after go together".into()),
        }
    }
}
