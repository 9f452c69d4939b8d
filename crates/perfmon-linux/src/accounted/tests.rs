//! That the audit notices: what was spoilt, and what found no room.

use std::io::Write;
use std::mem::offset_of;

use perfmon_core::{Encoding, Inherit, StartOn};
use perfmon_data::pmu_type;

use super::Audit;
use super::kernel_side::{KernelSide, Options, Purpose, layout};
use crate::counter::{Counter, Place};

const PAGE_FAULTS: u64 = 2;

/// A kernel side with one event that follows this thread and what it creates; its counters live as long as the second.
fn following(name: &str, plugged: bool) -> Option<(KernelSide, Vec<Counter>)> {
    let options = Options {
        events: 1,
        late: 0,
        at_switch: 0,
        follow: true,
        system: false,
        rows: true,
        ended_bytes: 0,
    };
    let mut kernel = match KernelSide::load(&options) {
        Ok(kernel) => kernel,
        Err(refusal) => {
            let _ = writeln!(std::io::stderr(), "skipped: {name}: {refusal}");
            return None;
        }
    };
    let encoding =
        Encoding { pmu_type: pmu_type::SOFTWARE, config: PAGE_FAULTS, ..Encoding::default() };
    let mut counters = Vec::new();
    for cpu in crate::cpus::online().unwrap().into_iter().filter(|_| plugged) {
        let cpu_of_place = i32::try_from(cpu).unwrap();
        let place = Place {
            tid: -1,
            cpu: cpu_of_place,
            cgroup: None,
            inherit: Inherit::None,
            start_on: StartOn::Load,
        };
        let counter = Counter::open(&encoding, &place, None).unwrap();
        kernel.plug_cpu(0, cpu, &counter).unwrap();
        counters.push(counter);
    }
    kernel.attach(true).unwrap();
    kernel.seed_thread(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
    kernel.set_active(true);
    kernel.flush(Purpose::Start).unwrap();
    Some((kernel, counters))
}

/// Check that nothing is wrong where nothing was spoilt.
#[test]
fn nothing_is_wrong_by_itself() {
    let Some((kernel, _counters)) = following("nothing_is_wrong_by_itself", true) else { return };
    kernel.flush(Purpose::Read).unwrap();
    let audit = kernel.audit();
    assert_eq!(Audit { unseen: 0, ..audit }, Audit::default());
    assert!(audit.is_complete());
}

/// Check that an event that is not there is noticed.
#[test]
fn missing_events_are_noticed() {
    let Some((kernel, _)) = following("missing_events_are_noticed", false) else { return };
    kernel.flush(Purpose::Read).unwrap();
    let audit = kernel.audit();
    assert!(audit.read_errors > 0 && !audit.is_complete(), "{audit:?}");
}

/// Check that a time on a CPU that was accounted to another task is noticed.
#[test]
fn wrong_owners_are_noticed() {
    let Some((kernel, _counters)) = following("wrong_owners_are_noticed", true) else { return };
    let cpus = kernel.map("CPUS").raw();
    for cpu in 0..crate::cpus::possible().unwrap() {
        let mut element = vec![0; size_of::<layout::Cpu>()];
        cpus.lookup(&cpu.to_ne_bytes(), &mut element).unwrap();
        let owner = offset_of!(layout::Cpu, owner);
        element[owner..owner + 8].copy_from_slice(&1_u64.to_ne_bytes());
        cpus.update(&cpu.to_ne_bytes(), &element).unwrap();
    }
    kernel.flush(Purpose::Read).unwrap();
    let audit = kernel.audit();
    assert!(audit.gaps > 0 && !audit.is_complete(), "{audit:?}");
}

/// Check that ended tasks that find no room for their rows are counted.
#[test]
fn lost_rows_are_counted() {
    const THREADS: u64 = 100;
    let name = "lost_rows_are_counted";
    let Some((mut kernel, _counters)) = following(name, true) else { return };
    for _ in 0..THREADS {
        std::thread::spawn(|| ()).join().unwrap();
    }
    kernel.set_active(false);
    kernel.flush(Purpose::Stop).unwrap();
    let mut rows = 0;
    // The last thread may still be on its way out.
    while rows + kernel.audit().lost < THREADS {
        kernel.drain(|_| rows += 1);
        std::thread::yield_now();
    }
    assert_eq!(rows + kernel.audit().lost, THREADS);
    assert!(kernel.audit().lost > 0);
}
