//! The programs, their maps, and how they are driven.

use std::mem::offset_of;
use std::os::fd::AsFd;

use perfmon_bpf::{
    BpfRing, Errno, Error, Layout, Link, Loaded, Loader, Object, SharedMemory, TaskFilter,
    kernel_types,
};
use perfmon_core::{Reading, Refusal};

use super::Audit;
use crate::proc_file;

#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../../../bpf/programs/layout/account.rs"]
pub(super) mod layout;

use layout::{Control, Count, Cpu, Row, Task};

static OBJECT: &[u8] = include_bytes!("../../../../bpf/objects/account.bpf.o");

const LAYOUTS: &[Layout] = &[
    Layout {
        name: "Control",
        bytes: size_of::<Control>(),
        members: &[
            ("active", offset_of!(Control, active)),
            ("mode", offset_of!(Control, mode)),
            ("hidden", offset_of!(Control, hidden)),
            ("serial", offset_of!(Control, serial)),
            ("unfollowed", offset_of!(Control, unfollowed)),
            ("gaps", offset_of!(Control, gaps)),
            ("read_errors", offset_of!(Control, read_errors)),
            ("lost", offset_of!(Control, lost)),
            ("unseen", offset_of!(Control, unseen)),
        ],
    },
    Layout {
        name: "Cpu",
        bytes: size_of::<Cpu>(),
        members: &[
            ("sequence", offset_of!(Cpu, sequence)),
            ("owner", offset_of!(Cpu, owner)),
            ("totals", offset_of!(Cpu, totals)),
        ],
    },
    Layout {
        name: "Row",
        bytes: size_of::<Row>(),
        members: &[
            ("serial", offset_of!(Row, serial)),
            ("tid", offset_of!(Row, tid)),
            ("tgid", offset_of!(Row, tgid)),
            ("comm", offset_of!(Row, comm)),
            ("counts", offset_of!(Row, counts)),
        ],
    },
    Layout {
        name: "Count",
        bytes: size_of::<Count>(),
        members: &[
            ("value", offset_of!(Count, value)),
            ("enabled_ns", offset_of!(Count, enabled_ns)),
            ("running_ns", offset_of!(Count, running_ns)),
        ],
    },
    Layout { name: "Task", bytes: size_of::<Task>(), members: &[] },
];

/// The programs on each tracepoint.
const ON_SWITCH: [&str; 1] = ["on_switch"];
const ON_EXEC: [&str; 4] = ["on_exec", "on_exec_2", "on_exec_3", "on_exec_4"];
const ON_NEW_TASK: [&str; 5] =
    ["on_new_task", "on_new_task_2", "on_new_task_3", "on_new_task_4", "on_wakeup_new"];

/// A program that keeps writing is not read for ever.
const READ_TRIES: usize = 1000;

pub(super) struct Options {
    pub(super) events: usize,
    /// Bit by event: the kernel counts it right after the tracepoint of the switch.
    pub(super) late: u32,
    /// Bit by event: the kernel counts it at the switch.
    pub(super) at_switch: u32,
    pub(super) follow: bool,
    pub(super) system: bool,
    pub(super) rows: bool,
    /// Room for the rows of ended tasks that wait to be read.
    pub(super) ended_bytes: u32,
}

/// What a CPU brings up to date.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Read,
    Start,
    Stop,
}

/// A row as the kernel side wrote it.
#[derive(Clone, Debug)]
pub(super) struct TaskRow {
    pub(super) serial: u64,
    pub(super) tid: u32,
    pub(super) pid: u32,
    pub(super) comm: String,
    pub(super) counts: Vec<Reading>,
}

pub(super) struct KernelSide {
    // First, so that nothing is accounted any more while the rest goes.
    links: Vec<Link>,
    loaded: Loaded,
    control: SharedMemory,
    cpus: SharedMemory,
    ended: BpfRing,
    events: usize,
    possible: u32,
}

impl KernelSide {
    pub(super) fn load(options: &Options) -> Result<Self, Refusal> {
        let possible = crate::cpus::possible()?;
        let events = u32::try_from(options.events).unwrap_or(u32::MAX);
        let object =
            Object::parse_with("the accounting programs", OBJECT, LAYOUTS).map_err(refusal)?;
        let of_task = |path: &[&str]| task_offset(path);
        let loaded = Loader::new()
            .set("NR_EVENTS", events)
            .set("NR_CPUS", possible)
            .set("LATE", options.late)
            .set("AT_SWITCH", options.at_switch)
            .set("FOLLOW", u32::from(options.follow))
            .set("SYSTEM", u32::from(options.system))
            .set("ROWS_WANTED", u32::from(options.rows))
            .set("EXIT_STATE_OFFSET", of_task(&["exit_state"])?)
            .set("FLAGS_OFFSET", of_task(&["flags"])?)
            .set("EVENTS_OFFSET", of_task(&["perf_event_ctxp"])?)
            .set(
                "EVENTS_WORDS",
                (of_task(&["perf_event_mutex"])? - of_task(&["perf_event_ctxp"])?) / 8,
            )
            .set("PID_OFFSET", of_task(&["pid"])?)
            .set("TGID_OFFSET", of_task(&["tgid"])?)
            .set("COMM_OFFSET", of_task(&["comm"])?)
            .entries("CPUS", possible)
            .entries("EVENTS", (events.saturating_mul(possible.saturating_add(1))).max(1))
            .entries("ENDED", options.ended_bytes.max(page_bytes()))
            .load(&object)
            .map_err(refusal)?;
        let map = |name: &str| loaded.map(name).map_err(refusal);
        let control = map("CONTROL")?.share_memory(true).map_err(refusal)?;
        let cpus = map("CPUS")?.share_memory(false).map_err(refusal)?;
        let ended = BpfRing::map(map("ENDED")?.raw())
            .map_err(|errno| Refusal::new(format!("can't map the ring of ended tasks: {errno}")))?;
        let links = Vec::new();
        Ok(Self { links, loaded, control, cpus, ended, events: options.events, possible })
    }

    pub(super) fn plug_cpu(
        &self,
        event: usize,
        cpu: u32,
        counter: impl AsFd,
    ) -> Result<(), Refusal> {
        let event = u32::try_from(event).unwrap_or(u32::MAX);
        self.plug(event.saturating_mul(self.possible).saturating_add(cpu), counter)
    }

    pub(super) fn plug_starter(&self, event: usize, counter: impl AsFd) -> Result<(), Refusal> {
        let first = self.events * self.possible as usize;
        self.plug(u32::try_from(first + event).unwrap_or(u32::MAX), counter)
    }

    fn plug(&self, index: u32, counter: impl AsFd) -> Result<(), Refusal> {
        self.loaded.map("EVENTS").and_then(|events| events.plug(index, counter)).map_err(refusal)
    }

    /// To be called once all events are open: what the kernel counts at a switch it then counts before these run.
    pub(super) fn attach(&mut self, follow: bool) -> Result<(), Refusal> {
        let names = ON_SWITCH.iter().chain(&ON_EXEC);
        for name in names.chain(follow.then_some(&ON_NEW_TASK).into_iter().flatten()) {
            let link = self.loaded.program(name).and_then(|program| program.attach());
            self.links.push(link.map_err(refusal)?);
        }
        Ok(())
    }

    /// Takes note of the first process if the kernel hides it from events and programs, as some sandboxes' kernels do.
    pub(super) fn note_hidden(&self) -> Result<(), Refusal> {
        const FIRST: u32 = 1;
        let seen = self.iterate(layout::PROCESSES, TaskFilter::Process(FIRST)).map_err(refusal)?;
        // In a PID namespace the first process is another one.
        let exists = proc_file::read("/proc/1/comm").is_some() && is_initial_namespace();
        if exists && seen.is_empty() {
            self.set_control(offset_of!(Control, hidden), u64::from(FIRST));
        }
        Ok(())
    }

    pub(super) fn seed_process(&mut self, pid: u32, waits: bool) -> Result<(), Refusal> {
        let mode = if waits { layout::SEED_WAITING } else { layout::SEED_PROCESS };
        let before = self.control(offset_of!(Control, serial));
        // Once more for threads that were created before their creators were known.
        for _ in 0..2 {
            self.iterate(mode, TaskFilter::Process(pid))
                .map_err(|error| gone("process", pid, error))?;
        }
        self.forget_targets();
        self.check_seeded("process", pid, before)
    }

    pub(super) fn seed_thread(&mut self, tid: u32) -> Result<(), Refusal> {
        let before = self.control(offset_of!(Control, serial));
        self.iterate(layout::SEED, TaskFilter::Thread(tid))
            .map_err(|error| gone("thread", tid, error))?;
        self.check_seeded("thread", tid, before)
    }

    pub(super) fn seed_all(&mut self) -> Result<(), Refusal> {
        self.iterate(layout::SEED, TaskFilter::All).map(|_| ()).map_err(refusal)
    }

    fn check_seeded(&self, what: &str, id: u32, before: u64) -> Result<(), Refusal> {
        if self.audit().unfollowed > 0 {
            return Err(Refusal::new(format!("there is not enough memory to follow {what} {id}")));
        }
        if self.control(offset_of!(Control, serial)) == before {
            return Err(no_such(what, id));
        }
        Ok(())
    }

    /// Whose processes' new threads are followed is not known by id any more: it may be another's later.
    fn forget_targets(&self) {
        let Ok(targets) = self.loaded.map("TARGETS") else { return };
        let mut key = [0; 4];
        while targets.raw().next_key(None, &mut key).is_ok() {
            if targets.raw().delete(&key).is_err() {
                break;
            }
        }
    }

    fn iterate(&self, mode: u64, filter: TaskFilter) -> Result<Vec<u8>, Error> {
        self.set_control(offset_of!(Control, mode), mode);
        self.loaded.program("each_task")?.iterate(filter)
    }

    pub(super) fn set_active(&self, active: bool) {
        self.set_control(offset_of!(Control, active), u64::from(active));
    }

    /// Accounts to the tasks that run now what they have counted so far.
    pub(super) fn flush(&self, purpose: Purpose) -> Result<(), Refusal> {
        let purpose = match purpose {
            Purpose::Read => layout::FLUSH,
            Purpose::Start => layout::START,
            Purpose::Stop => layout::STOP,
        };
        let flush = self.loaded.program("flush").map_err(refusal)?;
        for cpu in 0..self.possible {
            match flush.run(Some(cpu), &[purpose]) {
                Ok(_) => {}
                // Nothing runs on a CPU that is not online.
                Err(error) if error.errno() == Some(Errno::NXIO) => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        Ok(())
    }

    /// Hands on each event's number and what it counted for all tasks.
    pub(super) fn totals(&self, mut take: impl FnMut(usize, Reading)) {
        let mut sums = vec![Reading::default(); self.events];
        for cpu in 0..self.possible as usize {
            let at = cpu * size_of::<Cpu>();
            for _ in 0..READ_TRIES {
                let before = self.cpu_word(at + offset_of!(Cpu, sequence));
                let of_cpu: Vec<Reading> = (0..self.events)
                    .map(|event| {
                        self.count(at + offset_of!(Cpu, totals) + event * size_of::<Count>())
                    })
                    .collect();
                if before.is_multiple_of(2)
                    && before == self.cpu_word(at + offset_of!(Cpu, sequence))
                {
                    for (sum, count) in sums.iter_mut().zip(of_cpu) {
                        sum.value = sum.value.wrapping_add(count.value);
                        sum.enabled_ns += count.enabled_ns;
                        sum.running_ns += count.running_ns;
                    }
                    break;
                }
                std::hint::spin_loop();
            }
        }
        sums.into_iter().enumerate().for_each(|(event, sum)| take(event, sum));
    }

    fn count(&self, at: usize) -> Reading {
        Reading {
            value: self.cpu_word(at + offset_of!(Count, value)),
            enabled_ns: self.cpu_word(at + offset_of!(Count, enabled_ns)),
            running_ns: self.cpu_word(at + offset_of!(Count, running_ns)),
            in_error: false,
        }
    }

    fn cpu_word(&self, at: usize) -> u64 {
        self.cpus.word(at).map_or(0, |word| word.load())
    }

    #[cfg(test)]
    pub(super) fn map(&self, name: &str) -> &perfmon_bpf::Map {
        self.loaded.map(name).expect("the programs have it")
    }

    fn control(&self, at: usize) -> u64 {
        self.control.word(at).map_or(0, |word| word.load())
    }

    fn set_control(&self, at: usize, value: u64) {
        if let Some(word) = self.control.word(at) {
            word.store(value);
        }
    }

    /// The rows of the tasks that are followed and have not ended.
    pub(super) fn live_rows(&self) -> Result<Vec<TaskRow>, Refusal> {
        let bytes = self.iterate(layout::ROWS, TaskFilter::All).map_err(refusal)?;
        let rows = bytes.chunks_exact(size_of::<Row>());
        Ok(rows.filter_map(|row| TaskRow::parse(row, self.events)).collect())
    }

    /// Hands on the rows of tasks that have ended.
    pub(super) fn drain(&mut self, mut take: impl FnMut(TaskRow)) {
        let events = self.events;
        self.ended.drain(|row| {
            if let Some(row) = TaskRow::parse(row, events) {
                take(row);
            }
        });
    }

    pub(super) fn audit(&self) -> Audit {
        Audit {
            unfollowed: self.control(offset_of!(Control, unfollowed)),
            gaps: self.control(offset_of!(Control, gaps)),
            read_errors: self.control(offset_of!(Control, read_errors)),
            lost: self.control(offset_of!(Control, lost)),
            unseen: self.control(offset_of!(Control, unseen)),
        }
    }
}

impl TaskRow {
    fn parse(row: &[u8], events: usize) -> Option<Self> {
        let word = |at: usize| {
            row.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_ne_bytes)
        };
        let half = |at: usize| {
            row.get(at..at + 4).and_then(|half| half.try_into().ok()).map(u32::from_ne_bytes)
        };
        let comm = row.get(offset_of!(Row, comm)..offset_of!(Row, comm) + 16)?;
        let comm = comm.split(|&byte| byte == 0).next().unwrap_or_default();
        let count = |event: usize| {
            let at = offset_of!(Row, counts) + event * size_of::<Count>();
            Some(Reading {
                value: word(at + offset_of!(Count, value))?,
                enabled_ns: word(at + offset_of!(Count, enabled_ns))?,
                running_ns: word(at + offset_of!(Count, running_ns))?,
                in_error: false,
            })
        };
        Some(Self {
            serial: word(offset_of!(Row, serial))?,
            tid: half(offset_of!(Row, tid))?,
            pid: half(offset_of!(Row, tgid))?,
            comm: String::from_utf8_lossy(comm).into_owned(),
            counts: (0..events).map(count).collect::<Option<_>>()?,
        })
    }
}

pub(crate) fn task_offset(path: &[&str]) -> Result<u32, Refusal> {
    let types = kernel_types().map_err(Refusal::new)?;
    types
        .offset("task_struct", path)
        .ok_or_else(|| Refusal::new(format!("the kernel's task_struct has no {}", path.join("."))))
}

/// Whether ids are those of the initial PID namespace, whose number the kernel fixes (`PROC_PID_INIT_INO`).
pub(crate) fn is_initial_namespace() -> bool {
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    namespace.is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

fn page_bytes() -> u32 {
    u32::try_from(rustix::param::page_size()).unwrap_or(u32::MAX)
}

fn gone(what: &str, id: u32, error: Error) -> Refusal {
    match error.errno() {
        Some(Errno::SRCH) => no_such(what, id),
        _ => refusal(error),
    }
}

fn no_such(what: &str, id: u32) -> Refusal {
    Refusal::new(format!("there is no {what} {id}"))
}

pub(crate) fn refusal(error: Error) -> Refusal {
    Refusal::new(error.to_string())
}
