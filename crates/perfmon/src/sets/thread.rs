//! The thread that switches sets.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use perfmon_core::{Backend, Refusal};
use perfmon_linux::{Errno, Fired, Linux, Loaded, take_precedence};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use super::rotating::Why;
use super::rotation::Rotation;

/// What the epoll says of the descriptor that wakes the thread.
const WAKE: u64 = u64::MAX;
/// Room for what happens at once.
const EVENTS: usize = 64;

/// A running thread; dropping it ends it.
#[derive(Debug)]
pub(crate) struct RotationThread {
    wake: Arc<OwnedFd>,
    ends: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

impl RotationThread {
    /// Switches the sets of `rotation` from now on, with precedence over ordinary threads where that is allowed.
    pub(crate) fn spawn(rotation: Arc<Mutex<Rotation<Loaded>>>) -> Result<Self, Refusal> {
        let failed = |call: &str| {
            let call = call.to_owned();
            move |errno: Errno| {
                Refusal::new(format!("can't wait for the turns of sets: {call}: {errno}"))
            }
        };
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(failed("eventfd"))?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed("epoll_create"))?;
        let add = |fd: BorrowedFd<'_>, data, flags| {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(data), flags)
                .map_err(failed("epoll_ctl"))
        };
        add(wake.as_fd(), WAKE, epoll::EventFlags::IN)?;
        // Each alarm once: the end of a thread would be told again and again.
        let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        for (number, rotating) in (0..).zip(&lock(&rotation).members) {
            rotating.member.loaded.alarm_descriptors().try_for_each(|fd| add(fd, number, once))?;
        }
        let ends = Arc::new(AtomicBool::new(false));
        let turns = Turns { rotation, epoll, wake: Arc::clone(&wake), ends: Arc::clone(&ends) };
        let handle = std::thread::Builder::new()
            .name("perfmon-sets".into())
            .spawn(move || turns.run())
            .map_err(|error| {
                Refusal::new(format!("can't start the thread that switches sets: {error}"))
            })?;
        Ok(Self { wake, ends, handle: Some(handle) })
    }

    /// Lets the thread look anew when the next set is due.
    pub(crate) fn wake(&self) {
        // A full counter has woken it already.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for RotationThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        self.wake();
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// What panicked while it held the lock has left whole contexts, each with a reason if it is broken.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Turns {
    rotation: Arc<Mutex<Rotation<Loaded>>>,
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
    ends: Arc<AtomicBool>,
}

impl Turns {
    fn run(self) {
        // Without it sets are left later, while others want the CPU.
        let _ = take_precedence();
        let mut backend = Linux::new();
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        while !self.ends.load(Ordering::Acquire) {
            let due_ns = lock(&self.rotation).due_ns();
            let left = |due_ns: u64| due_ns.saturating_sub(backend.now_ns());
            let timeout = due_ns.map(|due_ns| Duration::from_nanos(left(due_ns)));
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let mut rotation = lock(&self.rotation);
            for event in &events {
                match (event.data.u64(), usize::try_from(event.data.u64())) {
                    (WAKE, _) => {
                        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                    }
                    (_, Ok(number)) => attend(&mut rotation, &mut backend, number, event.flags),
                    (_, Err(_)) => {}
                }
            }
            rotation.leave_due(&mut backend);
        }
    }
}

/// Does what the alarm of context `number` asks for.
fn attend(
    rotation: &mut Rotation<Loaded>,
    backend: &mut Linux,
    number: usize,
    flags: epoll::EventFlags,
) {
    let Some(rotating) = rotation.members.get_mut(number) else { return };
    let Fired { timer, events } = rotating.member.loaded.fired();
    let overflowed = rotating.overflowed(&events);
    if flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
        rotating.ended = true;
    }
    if timer {
        rotation.leave(backend, number, &Why::Expired);
    } else if !overflowed.is_empty() {
        rotation.leave(backend, number, &Why::Overflowed(overflowed));
    }
}
