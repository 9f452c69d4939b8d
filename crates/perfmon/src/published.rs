//! Contexts for programs in the kernel.

use std::os::fd::AsFd;

use perfmon_bpf::{Loaded, Loader};
use perfmon_core::{Refusal, SetId};
use perfmon_events::Event;
use perfmon_linux::ContextInfo;

use crate::Error;
use crate::session::Session;

/// A session's contexts, which programs in the kernel read: each part of its scope is one, in the order in which they were
/// loaded, and each of its events a register. Dropping it frees them: programs are then told that there are none.
///
/// What a program can do with them is in docs/kernel-api.md.
#[derive(Debug)]
pub struct Published {
    inner: perfmon_linux::Published,
}

/// Published contexts, found by name.
#[derive(Debug)]
pub struct Found {
    inner: perfmon_linux::Found,
}

impl Session {
    /// Publishes what is loaded under `name`, for programs in the kernel that this or another process loads.
    ///
    /// The session may go on as before. It must outlive what is published, or registers say that they have no event.
    ///
    /// # Errors
    /// [`Error::Refused`]: nothing is loaded, an event was refused, what is counted is not a thread's or a CPU's alone, the
    /// name is taken, or the user has no right to.
    pub fn publish(&self, name: &str) -> Result<Published, Error> {
        let refused = |refusal| Error::refused(format!("can't publish {name}"), refusal);
        let contexts = self.members.iter().map(|member| {
            let places: Option<Vec<usize>> = member.places.iter().copied().collect();
            let missing = || Refusal::new("an event is not counted there").hint("leave it out");
            member.loaded.to_publish(&places.ok_or_else(missing)?)
        });
        let contexts = contexts.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        if contexts.is_empty() {
            return Err(refused(Refusal::new("nothing is loaded").hint("load the session first")));
        }
        let mut inner = perfmon_linux::Published::new(&contexts).map_err(refused)?;
        inner.publish(name).map_err(refused)?;
        Ok(Published { inner })
    }
}

impl Published {
    /// Puts these contexts' maps into an object that `loader` loads.
    pub fn share<'a>(&'a self, loader: Loader<'a>) -> Loader<'a> {
        self.inner.share(loader)
    }

    /// Runs the call-back `name` of `programs` after each `period` of `event` on the target of context number `context`:
    /// at the event's overflows, or its hits if it is a tracepoint or a probe. A context has one call-back.
    ///
    /// # Errors
    /// [`Error::Refused`]: the event has no encoding here or can't be sampled there; there is no such context or program.
    pub fn call_back(
        &mut self,
        context: u32,
        event: &Event,
        period: u64,
        programs: &Loaded,
        name: &str,
    ) -> Result<(), Error> {
        let refused =
            |refusal| Error::refused(format!("can't call back at {}", event.text), refusal);
        let encoding = event.encoding.as_ref().map_err(|refusal| refused(refusal.clone()))?;
        self.inner.call_back(context, encoding, period, programs, name).map_err(refused)
    }

    /// Hands on the records that programs sent with `pfm_emit`, and says how many there were.
    pub fn drain(&mut self, take: impl FnMut(&[u8])) -> usize {
        self.inner.drain(take)
    }

    /// A descriptor that is readable when there are records to [`drain`](Self::drain).
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn records(&self) -> Result<impl AsFd, Error> {
        self.inner.records().map_err(|refusal| Error::refused("records", refusal))
    }

    /// Which set's registers programs can read.
    pub fn set_active_set(&self, context: u32, set: SetId) {
        self.inner.set_active_set(context, set);
    }

    /// How a context stands; `None` if there is none.
    pub fn info(&self, context: u32) -> Option<ContextInfo> {
        self.inner.info(context)
    }
}

impl Found {
    /// Finds the contexts that were published under `name`, by whatever process.
    ///
    /// # Errors
    /// [`Error::Refused`]: there are none, or not for this user.
    pub fn open(name: &str) -> Result<Self, Error> {
        let refused = |refusal| Error::refused(format!("can't open {name}"), refusal);
        Ok(Self { inner: perfmon_linux::Found::open(name).map_err(refused)? })
    }

    /// All names that are published, in alphabetical order.
    pub fn names() -> Vec<String> {
        perfmon_linux::Found::names()
    }

    /// Puts the contexts' maps into an object that `loader` loads.
    pub fn share<'a>(&'a self, loader: Loader<'a>) -> Loader<'a> {
        self.inner.share(loader)
    }

    /// How a context stands; `None` if there is none, or it was freed.
    pub fn info(&self, context: u32) -> Option<ContextInfo> {
        self.inner.info(context)
    }
}
