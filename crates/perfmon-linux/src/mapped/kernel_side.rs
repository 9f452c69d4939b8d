//! The programs that keep the page, once in a process, and the slots of its threads.

use std::cell::RefCell;
use std::fmt;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use perfmon_bpf::{Layout, Link, Loaded, Loader, Object, SharedMemory, TaskFilter, Together};
use perfmon_core::Refusal;
use perfmon_sys::Caller;
use rustix::time::{ClockId, clock_gettime};

use super::offered::Counts;
use crate::accounted::{is_initial_namespace, refusal, task_offset};
use crate::proc_file;

#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../../../bpf/programs/layout/page.rs"]
pub(super) mod layout;

use layout::Slot;

static OBJECT: &[u8] = include_bytes!("../../../../bpf/objects/page.bpf.o");

const LAYOUTS: &[Layout] = &[Layout {
    name: "Slot",
    bytes: size_of::<Slot>(),
    members: &[
        ("sequence", offset_of!(Slot, sequence)),
        ("on_since_ns", offset_of!(Slot, on_since_ns)),
        ("run_ns", offset_of!(Slot, run_ns)),
        ("switches", offset_of!(Slot, switches)),
        ("migrations", offset_of!(Slot, migrations)),
        ("user_faults", offset_of!(Slot, user_faults)),
        ("kernel_faults", offset_of!(Slot, kernel_faults)),
        ("ended", offset_of!(Slot, ended)),
        ("seen_run_ns", offset_of!(Slot, seen_run_ns)),
        ("seen_migrations", offset_of!(Slot, seen_migrations)),
    ],
}];

/// Threads of a process that can be watched at once.
pub(super) const SLOTS: u32 = 1024;
/// The words of a slot that are read: all up to `ended`.
const WORDS: usize = offset_of!(Slot, ended) / size_of::<u64>() + 1;
type Words = [u64; WORDS];
const ON_SINCE: usize = offset_of!(Slot, on_since_ns) / size_of::<u64>();
const RUN: usize = offset_of!(Slot, run_ns) / size_of::<u64>();
const MIGRATIONS: usize = offset_of!(Slot, migrations) / size_of::<u64>();
const ENDED: usize = offset_of!(Slot, ended) / size_of::<u64>();
/// A program that writes takes some nanoseconds, but its CPU may be another guest's for a while.
const TRIES: u32 = 100;
const TRIES_WITH_YIELD: u32 = 10_000;
/// How often a thread that looks at its own slot may be interrupted by a context switch.
const LOOKS: u32 = 100;
/// Programs see page faults where the kernel counts them.
pub(super) const HAS_FAULTS: bool = cfg!(target_arch = "x86_64");

/// The programs, their page, and who has which slot of it.
pub(super) struct Kernel {
    // First, so that nothing is counted any more while the rest goes.
    _links: Vec<Link>,
    fault_links: OnceLock<Result<Vec<Link>, Refusal>>,
    pub(super) loaded: Loaded,
    page: Arc<SharedMemory>,
    slots: Mutex<Slots>,
    /// Programs don't see a process, nor that one of its tasks leaves a CPU.
    hides_process: bool,
    /// Whose it is: a forked child has the same memory, but none of its threads is watched.
    pid: u32,
}

/// Who has which slot.
#[derive(Debug)]
struct Slots {
    users: Vec<u32>,
    free: Vec<u32>,
    /// Given up by another thread than their own, which programs may still write them for.
    left: Vec<u32>,
}

/// A thread that is watched, with its slot. Dropping the last handle ends that.
pub(super) struct Watched {
    words: Together<WORDS>,
    kernel: Arc<Kernel>,
    pub(super) slot: u32,
    owner: Caller,
}

/// Why a slot could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is not kept any more.
    Lost,
    /// Only its own thread can read it now.
    NotHere,
    /// It kept changing.
    Busy,
}

static KERNEL: Mutex<Weak<Kernel>> = Mutex::new(Weak::new());

thread_local! {
    static MINE: RefCell<Weak<Watched>> = const { RefCell::new(Weak::new()) };
}

impl Kernel {
    /// The programs of this process, loaded if they are not yet.
    fn shared() -> Result<Arc<Self>, Refusal> {
        let mut shared = lock(&KERNEL);
        let mine = |kernel: &Arc<Self>| kernel.pid == std::process::id();
        if let Some(kernel) = shared.upgrade().filter(mine) {
            return Ok(kernel);
        }
        let kernel = Arc::new(Self::load()?);
        *shared = Arc::downgrade(&kernel);
        Ok(kernel)
    }

    fn load() -> Result<Self, Refusal> {
        if !has_kernels_clock() {
            let why = "this process has a clock of its own (a time namespace)";
            return Err(Refusal::new(why));
        }
        let object =
            Object::parse_with("the programs of the page", OBJECT, LAYOUTS).map_err(refusal)?;
        let of_task = |path: &[&str]| task_offset(path);
        let events = of_task(&["perf_event_ctxp"])?;
        // An array of two up to 6.1, which its neighbour tells.
        let is_array = of_task(&["perf_event_mutex"])? == events + 16;
        let software_events = if is_array { events + 8 } else { events };
        let mut loader = Loader::new()
            .set("ANY_ORDER", u32::from(!cfg!(target_arch = "x86_64")))
            .set("USER_END", user_end())
            .set("STORAGE_OFFSET", of_task(&["bpf_storage"])?)
            .set("FLAGS_OFFSET", of_task(&["flags"])?)
            .set("EXIT_STATE_OFFSET", of_task(&["exit_state"])?)
            .set("EVENTS_OFFSET", events)
            .set("SOFTWARE_EVENTS_OFFSET", software_events)
            .set("MM_OFFSET", of_task(&["mm"])?)
            .set("TGID_OFFSET", of_task(&["tgid"])?)
            .set("NO_FAULTS_OFFSET", of_task(&["pagefault_disabled"])?)
            .set("MOVES_OFFSET", of_task(&["se", "nr_migrations"])?)
            .set("ARRIVAL_OFFSET", of_task(&["sched_info", "last_arrival"]).unwrap_or(0))
            .entries("SLOTS", SLOTS);
        if !HAS_FAULTS {
            loader = loader.without("on_user_fault").without("on_kernel_fault");
        }
        let loaded = loader.load(&object).map_err(refusal)?;
        let slots = loaded.map("SLOTS").map_err(refusal)?;
        let page = Arc::new(slots.share_memory(false).map_err(refusal)?);
        let seen = loaded
            .program("each_task")
            .and_then(|program| program.iterate(TaskFilter::Process(1)))
            .map_err(refusal)?;
        // In a PID namespace the first process is another one.
        let exists = proc_file::read("/proc/1/comm").is_some() && is_initial_namespace();
        let switch = loaded.program("on_switch").and_then(|program| program.attach());
        Ok(Self {
            _links: vec![switch.map_err(refusal)?],
            fault_links: OnceLock::new(),
            loaded,
            page,
            slots: Mutex::new(Slots::new(SLOTS)),
            hides_process: exists && seen.is_empty(),
            pid: std::process::id(),
        })
    }

    /// From now on page faults are counted, too.
    pub(super) fn count_faults(&self) -> Result<(), Refusal> {
        let attach = |name| self.loaded.program(name).and_then(|program| program.attach());
        let links = self.fault_links.get_or_init(|| {
            let links = ["on_user_fault", "on_kernel_fault"].into_iter().map(attach);
            links.collect::<Result<_, _>>().map_err(refusal)
        });
        links.as_ref().map(|_| ()).map_err(Refusal::clone)
    }

    fn control(&self, purpose: u64, slot: u64) -> Result<u32, Refusal> {
        let control = self.loaded.program("control");
        control.and_then(|control| control.run(None, &[purpose, slot])).map_err(refusal)
    }

    fn word(&self, slot: u32, offset: usize) -> u64 {
        self.page.word(at(slot) + offset).map_or(0, |word| word.load())
    }
}

impl Slots {
    fn new(count: u32) -> Self {
        Self { users: vec![0; count as usize], free: (0..count).rev().collect(), left: Vec::new() }
    }

    /// A slot for a thread; those of threads that are `gone` can be had again.
    fn take(&mut self, gone: impl Fn(u32) -> bool) -> Option<u32> {
        if self.free.is_empty() {
            let free = &mut self.free;
            self.left.retain(|&slot| {
                let is_gone = gone(slot);
                free.extend(is_gone.then_some(slot));
                !is_gone
            });
        }
        self.free.pop()
    }

    /// One more uses `slot`, which was not the one that it was offered, if any.
    fn enter(&mut self, slot: u32, offered: Option<u32>) {
        self.free.extend(offered.filter(|&offered| offered != slot));
        self.left.retain(|&left| left != slot);
        if let Some(users) = self.users.get_mut(slot as usize) {
            *users += 1;
        }
    }

    /// One less uses `slot`: whether that was the last.
    fn leave(&mut self, slot: u32) -> bool {
        let Some(users) = self.users.get_mut(slot as usize) else { return false };
        *users = users.saturating_sub(1);
        *users == 0
    }
}

impl Watched {
    /// Watches the calling thread, if it is not watched yet.
    pub(super) fn calling_thread() -> Result<Arc<Self>, Refusal> {
        let known = MINE.with_borrow(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.owner.is_current()) {
            return Ok(known);
        }
        let kernel = Kernel::shared()?;
        let owner = Caller::current()
            .map_err(|errno| Refusal::new(format!("can't tell threads apart: {errno}")))?;
        let mut slots = lock(&kernel.slots);
        let gone = |slot| kernel.word(slot, offset_of!(Slot, ended)) == layout::GONE;
        let offered = slots.take(gone);
        let slot = kernel.control(layout::WATCH, offered.map_or(u64::MAX, u64::from));
        let slot = match slot {
            Ok(slot) if slot > 0 => slot - 1,
            failed => {
                slots.free.extend(offered);
                failed?;
                let why = format!(
                    "there is no room to watch one more thread (at most {SLOTS}, as memory allows)"
                );
                return Err(Refusal::new(why));
            }
        };
        slots.enter(slot, offered);
        drop(slots);
        let words = Together::at(&kernel.page, at(slot)).expect("programs only know slots");
        let watched = Arc::new(Self { words, kernel, slot, owner });
        MINE.with_borrow_mut(|mine| *mine = Arc::downgrade(&watched));
        Ok(watched)
    }

    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(super) fn is_calling_thread(&self) -> bool {
        self.owner.is_current()
    }

    /// Hands on what the thread has counted less `base`; the time of its current run only `with_clock`. `None` if that
    /// takes more than a look at the slot.
    // Handed on and not returned: copies of words just written are what a read would wait for.
    #[inline]
    pub(super) fn glance<T>(
        &self,
        with_clock: bool,
        base: &Counts,
        take: impl FnOnce(&Counts) -> T,
    ) -> Option<T> {
        let clock = || if with_clock { now_ns() } else { 0 };
        let (words, now_ns) = self.words.read(TRIES, clock)?;
        is_complete(&words).then(|| take(&difference(&words, now_ns, base)))
    }

    /// What the thread has counted less `base`.
    #[cold]
    #[inline(never)]
    pub(super) fn counts(&self, base: &Counts) -> Result<Counts, Failure> {
        let (words, now_ns) = self.words_by_all_means()?;
        Ok(difference(&words, now_ns, base))
    }

    fn words_by_all_means(&self) -> Result<(Words, u64), Failure> {
        let is_own = self.owner.is_current();
        for _ in 0..TRIES_WITH_YIELD {
            match self.words.read(TRIES, now_ns) {
                Some((words, now_ns)) if is_complete(&words) => return Ok((words, now_ns)),
                // A program can tell what is not there, on the thread itself.
                Some((words, _)) if is_own => return self.look(words),
                // It is on no CPU, unless it came to one unseen.
                Some(_) if self.kernel.hides_process => return Err(Failure::NotHere),
                Some(found) => return Ok(found),
                // No program writes it while its thread is here.
                None if is_own => return Err(Failure::Lost),
                None => std::thread::yield_now(),
            }
        }
        Err(Failure::Busy)
    }

    /// Completes `words` of the calling thread, whose coming to its CPU was not seen.
    fn look(&self, words: Words) -> Result<(Words, u64), Failure> {
        let mut words = words;
        for _ in 0..LOOKS {
            match self.kernel.control(layout::LOOK, 0) {
                Ok(0) => {}
                Ok(1) => {
                    for (at, word) in words.iter_mut().enumerate() {
                        *word = self.kernel.word(self.slot, at * size_of::<u64>());
                    }
                    words[RUN] = self.kernel.word(self.slot, offset_of!(Slot, seen_run_ns));
                    words[MIGRATIONS] =
                        self.kernel.word(self.slot, offset_of!(Slot, seen_migrations));
                    // If it has just left its CPU and come back, that is not in there.
                    if words[ON_SINCE] == 0 {
                        return Ok((words, 0));
                    }
                }
                _ => return Err(Failure::Lost),
            }
            if let Some((words, now_ns)) = self.words.read(TRIES, now_ns)
                && is_complete(&words)
            {
                return Ok((words, now_ns));
            }
        }
        Err(Failure::Busy)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.kernel.pid != std::process::id() {
            return;
        }
        let mut slots = lock(&self.kernel.slots);
        if !slots.leave(self.slot) {
            return;
        }
        let is_unwatched =
            self.owner.is_current() && self.kernel.control(layout::UNWATCH, 0).is_ok();
        if is_unwatched {
            slots.free.push(self.slot);
        } else {
            slots.left.push(self.slot);
        }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// Whether nothing is missing: the thread was seen to come to its CPU, or has ended.
#[inline]
fn is_complete(words: &Words) -> bool {
    words[ON_SINCE] | words[ENDED] != 0
}

/// The counts less `base`, at `now_ns`.
#[inline]
fn difference(words: &Words, now_ns: u64, base: &Counts) -> Counts {
    let &[_, on_since_ns, run_ns, switches, migrations, user, kernel, _] = words;
    let is_on = on_since_ns != 0;
    let run_ns = run_ns + if is_on { now_ns.saturating_sub(on_since_ns) } else { 0 };
    let counts = [run_ns, switches, migrations, user + kernel, user, kernel, 0, 0];
    std::array::from_fn(|kind| counts[kind].wrapping_sub(base[kind]))
}

fn at(slot: u32) -> usize {
    slot as usize * size_of::<Slot>()
}

/// The clock of the programs.
#[inline]
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Whether the monotonic clock of this process is the kernel's own: a time namespace moves it. The kernel fixes the number
/// of the initial one (`PROC_TIME_INIT_INO`).
fn has_kernels_clock() -> bool {
    let namespace = std::fs::read_link("/proc/self/ns/time");
    namespace.map_or(true, |link| link.as_os_str() == "time:[4026531834]")
}

/// Where page faults are not the user's any more (x86_64's `TASK_SIZE_MAX`).
fn user_end() -> u64 {
    let cpu = proc_file::read("/proc/cpuinfo").unwrap_or_default();
    let flags = cpu.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let bits = if flags.split_whitespace().any(|flag| flag == "la57") { 56 } else { 47 };
    (1 << bits) - 4096
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that slots go from hand to hand, that those left by others come back once their threads are gone, and none
    /// is given twice.
    #[test]
    fn slots_are_used_again() {
        let mut slots = Slots::new(2);
        let nobody = |_| false;
        assert_eq!(slots.take(nobody), Some(0));
        slots.enter(0, Some(0));
        // A thread that had one already keeps it, and the other goes back.
        let offered = slots.take(nobody);
        slots.enter(0, offered);
        assert!(!slots.leave(0));
        assert!(slots.leave(0));
        slots.left.push(0);
        assert_eq!(slots.take(nobody), Some(1));
        assert_eq!(slots.take(nobody), None);
        assert_eq!(slots.take(|slot| slot == 0), Some(0));
        assert_eq!(slots.take(|_| true), None);
    }

    /// Check that a slot is complete with its arrival or its end, and how its time is made.
    #[test]
    fn times_go_on_while_the_thread_runs() {
        let base = [5, 1, 0, 0, 0, 0, 0, 0];
        let running = [2, 1000, 40, 7, 3, 20, 2, 0];
        assert!(is_complete(&running));
        assert_eq!(difference(&running, 1100, &base), [135, 6, 3, 22, 20, 2, 0, 0]);
        // The clock of the programs may be ahead by nanoseconds.
        assert_eq!(difference(&running, 999, &base)[0], 35);
        let ended = [2, 0, 40, 7, 3, 20, 2, layout::SETTLED];
        assert!(is_complete(&ended));
        assert_eq!(difference(&ended, 1100, &base)[0], 35);
        assert!(!is_complete(&[2, 0, 40, 7, 3, 20, 2, 0]));
    }

    /// Check that the words that are read are the first of a slot, and where.
    #[test]
    fn words_are_those_of_the_layout() {
        assert_eq!((offset_of!(Slot, sequence), ON_SINCE, RUN, MIGRATIONS, ENDED), (0, 1, 2, 4, 7));
        assert_eq!(offset_of!(Slot, kernel_faults), 6 * size_of::<u64>());
        assert!(offset_of!(Slot, seen_run_ns) >= size_of::<Words>() && size_of::<Slot>() == 128);
    }
}
