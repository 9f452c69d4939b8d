//! Contexts for programs in the kernel.

use std::os::fd::AsFd;

use perfmon_bpf::{Loaded, Loader, Program};
use perfmon_core::{Encoding, Refusal, SetId, Target};
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

/// A program that runs for an event. Dropping it ends that.
#[derive(Debug)]
pub struct Attached {
    _inner: perfmon_linux::Attached,
}

impl Attached {
    /// Runs `program` after each `period` of `event` on `target`, or at each hit, with a `period` of 0, if the event is a
    /// tracepoint or a probe: these hits are then those of all tasks that can hit it. The program finds `cookie` with
    /// `bpf_get_attach_cookie`.
    ///
    /// Programs for other places (`tp_btf`, `raw_tp`, `fentry`) attach by themselves: [`Program::attach`].
    ///
    /// # Errors
    /// [`Error::Refused`]: the event has no encoding here, can't be opened there, or takes no programs of this kind.
    pub fn new(
        program: &Program,
        event: &Event,
        target: &Target,
        period: u64,
        cookie: u64,
    ) -> Result<Self, Error> {
        let refused = |refusal| Error::refused(format!("can't attach to {}", event.text), refusal);
        let encoding = encoding_of(event).map_err(refused)?;
        let inner = perfmon_linux::Attached::new(program, encoding, target, period, cookie);
        Ok(Self { _inner: inner.map_err(refused)? })
    }
}

fn encoding_of(event: &Event) -> Result<&Encoding, Refusal> {
    event.encoding.as_deref().map_err(Refusal::clone)
}

impl Session {
    /// Publishes what is loaded under `name`, for programs in the kernel that this or another process loads.
    ///
    /// The session may go on as before. If it ends first, its events still go on until what is published is dropped.
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

    /// Runs the call-back `name` of `programs` (`callback!` or `PFM_CALLBACK` made it) after each `period` of `event` on the target of context number `context`:
    /// at the event's overflows, or its hits if it is a tracepoint or a probe. A context has one call-back; another replaces it.
    ///
    /// # Errors
    /// [`Error::Refused`]: the event has no encoding here or can't be sampled there; there is no such context or program.
    /// The context then has no call-back.
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
        let encoding = encoding_of(event).map_err(refused)?;
        self.inner.call_back(context, encoding, period, programs, name).map_err(refused)
    }

    /// Takes a context's call-back away. Its event goes on: what comes counts as
    /// [unplugged](ContextInfo::unplugged) until there is another call-back.
    ///
    /// # Errors
    /// [`Error::Refused`]: it has none.
    pub fn unplug(&mut self, context: u32) -> Result<(), Error> {
        self.inner.unplug(context).map_err(|refusal| Error::refused("can't unplug", refusal))
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

    /// Hits of tracepoints and probes, in any task, that the kernel has kept from call-backs: a program was running on that
    /// CPU. Since Linux 7 it may be one whose task was switched out.
    pub fn skipped(&self) -> u64 {
        self.inner.skipped()
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

    /// How a context stands; `None` if there is none, if it was freed or its publisher has ended.
    pub fn info(&self, context: u32) -> Option<ContextInfo> {
        self.inner.info(context)
    }
}
