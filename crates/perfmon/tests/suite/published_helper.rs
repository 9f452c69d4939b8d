//! The programs of bpf/tests/reader.rs, loaded with the maps of published contexts.

use std::sync::atomic::{AtomicU32, Ordering};

use perfmon::bpf::{Loaded, Loader, Object};
use perfmon::{Attached, Event, Found, Names, Published, Target};

pub(crate) static READER: &[u8] = include_bytes!("../../../../bpf/objects/reader.bpf.o");

pub(crate) static READER_IN_C: &[u8] = include_bytes!("../../../../bpf/objects/reader_c.bpf.o");

pub(crate) const ENOENT: i64 = -2;
pub(crate) const EAGAIN: i64 = -11;
pub(crate) const EBUSY: i64 = -16;
pub(crate) const EINVAL: i64 = -22;

/// What a command does, as in bpf/tests/reader.rs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Do {
    ReadTask = 0,
    ReadCpu = 1,
    ReadFirst = 2,
    ReadSecond = 3,
    Start = 4,
    Stop = 5,
    Info = 6,
    Emit = 7,
    StartFirst = 8,
    ReadAll = 9,
    InfoOfFirst = 10,
}

/// What a program was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) runs: u64,
    pub(crate) context: i64,
    pub(crate) result: i64,
    /// Units, and times enabled and running.
    pub(crate) pmds: [[u64; 3]; 4],
    pub(crate) cookie: u64,
}

/// The programs, and what commands them.
pub(crate) struct Reader {
    pub(crate) loaded: Loaded,
    commands: u32,
    _attached: Vec<Attached>,
}

/// A call that nobody else makes.
const GETPPID: u64 = if cfg!(target_arch = "x86_64") { 110 } else { 173 };

impl Reader {
    pub(crate) fn new(published: &Published) -> Self {
        Self::load(READER, |loader| published.share(loader))
    }

    /// The same commands by functions in Rust, and in C.
    pub(crate) fn both(published: &Published) -> [Self; 2] {
        [READER, READER_IN_C].map(|bytes| Self::load(bytes, |loader| published.share(loader)))
    }

    pub(crate) fn of(found: &Found) -> Self {
        Self::load(READER, |loader| found.share(loader))
    }

    /// Where the kernel has them, with the programs for functions.
    fn load<'a>(bytes: &[u8], share: impl Fn(Loader<'a>) -> Loader<'a>) -> Self {
        static READERS: AtomicU32 = AtomicU32::new(0);
        let commands = 0x4000_0000 + (READERS.fetch_add(1, Ordering::Relaxed) << 10);
        let object = Object::parse("reader", bytes).unwrap();
        let loader = || share(Loader::new().set("COMMANDS", commands).set("CALL", GETPPID));
        let all = loader().load(&object);
        let loaded = all.or_else(|_| loader().without("read_function").load(&object)).unwrap();
        let call = event("syscalls:sys_enter_getpgid");
        let attach = |program| Attached::new(program, &call, &Target::CurrentThread, 0, 0).unwrap();
        let programs = ["command", "read_all"].into_iter();
        let programs = programs.filter_map(|name| loaded.program(name).ok());
        let attached = programs.map(attach).collect();
        Self { loaded, commands, _attached: attached }
    }

    /// Has the calling thread run a command.
    pub(crate) fn command(&self, what: Do) -> Answer {
        self.command_to(what, 0)
    }

    /// The same, with another place for the answer than other threads have.
    pub(crate) fn command_to(&self, what: Do, slot: u32) -> Answer {
        let number = self.commands + ((what as u32) << 4 | slot);
        let number = i32::try_from(number).unwrap();
        let _ = rustix::process::getpgid(rustix::process::Pid::from_raw(number));
        self.answer(slot)
    }

    pub(crate) fn answer(&self, slot: u32) -> Answer {
        let mut bytes = [0; 128];
        self.loaded.map("ANSWERS").unwrap().raw().lookup(&slot.to_ne_bytes(), &mut bytes).unwrap();
        let word = |number: usize| {
            u64::from_ne_bytes(bytes[number * 8..number * 8 + 8].try_into().unwrap())
        };
        let pmd = |number: usize| [0, 1, 2].map(|field| word(3 + number * 3 + field));
        Answer {
            runs: word(0),
            context: word(1).cast_signed(),
            result: word(2).cast_signed(),
            pmds: [0, 1, 2, 3].map(pmd),
            cookie: word(15),
        }
    }

    /// The first register at each of `count` runs of `read_probe`.
    pub(crate) fn values(&self, count: u32) -> Vec<u64> {
        let values = self.loaded.map("VALUES").unwrap().share_memory(false).unwrap();
        (0..count).map(|number| values.word(number as usize * 8).unwrap().load()).collect()
    }

    /// Runs a program at `event`, in any task.
    pub(crate) fn attach(&self, program: &str, event: &Event, cookie: u64) -> Attached {
        let program = self.loaded.program(program).unwrap();
        Attached::new(program, event, &Target::CurrentThread, 0, cookie).unwrap()
    }
}

/// One event.
pub(crate) fn event(text: &str) -> Event {
    Names::system().parse(text).unwrap().remove(0)
}

/// The event of calls (`uprobe`) or returns (`uretprobe`) of a function of this program.
pub(crate) fn calls_of(probe: &str, function: usize) -> Event {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let place = maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let offset = number(words.nth(1)?)?;
        let path = words.nth(2)?;
        let inside = (number(begin)?..number(end)?).contains(&function);
        inside.then(|| Some(format!("{probe}:{path}:{:#x}", function - number(begin)? + offset)))
    });
    event(&place.flatten().unwrap())
}

/// Memory whose pages are fresh, to be touched one by one.
pub(crate) struct Pages {
    memory: Vec<u8>,
    page: Vec<u8>,
}

impl Pages {
    pub(crate) fn new() -> Self {
        // More than any allocator keeps of what was freed.
        const BYTES: usize = 48 << 20;
        // A fault would bring in many pages at once.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        let page = vec![0; rustix::param::page_size()];
        let mut pages = Self { memory: Vec::with_capacity(BYTES), page };
        pages.touch(1);
        pages
    }

    /// Touches `count` pages more: each is one fault.
    pub(crate) fn touch(&mut self, count: u64) {
        for _ in 0..count {
            assert!(self.memory.len() + self.page.len() <= self.memory.capacity());
            self.memory.extend_from_slice(&self.page);
        }
    }
}

/// What a call-back sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) context: u64,
    pub(crate) kind: u64,
    pub(crate) result: u64,
    pub(crate) value: u64,
    pub(crate) thread: u64,
}

/// Takes the records that have come.
pub(crate) fn notes(published: &mut Published) -> Vec<Note> {
    let mut notes = Vec::new();
    published.drain(|bytes| {
        let word = |number: usize| {
            u64::from_ne_bytes(bytes[number * 8..number * 8 + 8].try_into().unwrap())
        };
        notes.push(Note {
            context: word(0) & 0xffff_ffff,
            kind: word(0) >> 32,
            result: word(1),
            value: word(2),
            thread: word(3),
        });
    });
    notes
}

/// A name that no other test takes.
pub(crate) fn name(of: &str) -> String {
    format!("test-{of}-{}", std::process::id())
}
