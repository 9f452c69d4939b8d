use std::io::Write;
use std::sync::Arc;

use perfmon_core::{Backend, Group, Inherit, LoadPlan, PlannedEvent, PmdIndex, StartOn};
use perfmon_data::pmu_type;

use super::*;
use crate::Linux;

static READER: &[u8] = include_bytes!("../../../../bpf/objects/reader.bpf.o");
const COMMANDS: u32 = 0x7000_0000;
const READ_TASK: u32 = 0;
const READ_SECOND: u32 = 3;
const EAGAIN: i64 = -11;

fn faults() -> Encoding {
    const PAGE_FAULTS: u64 = 2;
    Encoding { pmu_type: pmu_type::SOFTWARE, config: PAGE_FAULTS, ..Encoding::default() }
}

/// The event of the system call that commands the reader; `None` where there is none, or it may not be seen.
fn command_event() -> Option<Encoding> {
    let id = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].iter().find_map(|tracefs| {
        let id = format!("{tracefs}/events/syscalls/sys_enter_getpgid/id");
        std::fs::read_to_string(id).ok()
    })?;
    let config = id.trim().parse().ok()?;
    Some(Encoding { pmu_type: pmu_type::TRACEPOINT, config, ..Encoding::default() })
}

fn plan(sets: &[u16]) -> LoadPlan {
    let event = |(number, set): (u16, &u16)| PlannedEvent {
        set: SetId(*set),
        pmd: PmdIndex(number),
        encoding: Arc::new(faults()),
        group: Group::Free,
        period: 0,
    };
    LoadPlan {
        target: Target::CurrentThread,
        inherit: Inherit::None,
        start_on: StartOn::Call,
        active: SetId(0),
        always: Vec::new(),
        timed: false,
        events: (0..).zip(sets).map(event).collect(),
    }
}

/// Result and first value of a read in the kernel.
fn read(reader: &Object, what: u32) -> (i64, u64) {
    let number = i32::try_from(COMMANDS + (what << 4)).unwrap();
    let _ = rustix::process::getpgid(rustix::process::Pid::from_raw(number));
    let mut answer = [0; 128];
    reader.map("ANSWERS").unwrap().raw().lookup(&0_u32.to_ne_bytes(), &mut answer).unwrap();
    let word = |at: usize| u64::from_ne_bytes(answer[at..at + 8].try_into().unwrap());
    (word(16).cast_signed(), word(24))
}

/// Check that programs read the registers of the active set, wherever they begin, and of no other.
#[test]
fn the_active_set_is_read() {
    let skipped = |why: &str| {
        let _ = writeln!(std::io::stderr(), "skipped: the_active_set_is_read: {why}");
    };
    let Some(event) = command_event() else { return skipped("it takes root and tracefs") };
    let mut linux = Linux::new();
    let (mut loaded, outcomes) = linux.load(&plan(&[0, 1, 1])).unwrap();
    assert!(outcomes.iter().all(Result::is_ok));
    let published = match Published::new(&[loaded.to_publish(&[0, 1, 2]).unwrap()]) {
        Ok(published) => published,
        Err(refusal) => return skipped(refusal.why()),
    };
    let object = File::parse("reader", READER).unwrap();
    let loader = || published.share(Loader::new().set("COMMANDS", COMMANDS));
    let reader = loader().load(&object);
    let reader = reader.or_else(|_| loader().without("read_function").load(&object)).unwrap();
    let command = reader.program("command").unwrap();
    let _attached = Attached::new(command, &event, &Target::CurrentThread, 0, 0).unwrap();

    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let page = vec![1; rustix::param::page_size()];
    let mut memory = Vec::<u8>::with_capacity(48 << 20);
    let mut touch = |pages| (0..pages).for_each(|_| memory.extend_from_slice(&page));
    touch(1);
    linux.start(&mut loaded, SetId(0)).unwrap();
    let (_, before) = read(&reader, READ_TASK);
    touch(10);
    assert_eq!(read(&reader, READ_TASK), (1, before + 10));
    assert_eq!(read(&reader, READ_SECOND).0, EAGAIN);
    linux.stop(&mut loaded, SetId(0)).unwrap();

    published.set_active_set(0, SetId(1));
    linux.start(&mut loaded, SetId(1)).unwrap();
    let (_, before) = read(&reader, READ_SECOND);
    touch(20);
    assert_eq!(read(&reader, READ_SECOND), (2, before + 20));
    assert_eq!(read(&reader, READ_TASK).0, EAGAIN);
    linux.stop(&mut loaded, SetId(1)).unwrap();
    linux.unload(loaded);
}
