use std::time::{Duration, Instant};

use perfmon_linux::{cpus, times};

/// Check that the processor time of this process is seen, to the clock tick, and that nobody has none.
#[test]
fn own_time_is_seen() {
    let before = times::of_process(std::process::id()).unwrap();
    let cpu_before = times::of_cpus(&cpus::online().unwrap()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let used = loop {
        let used = times::of_process(std::process::id()).unwrap().since(before);
        if used.user + used.system >= Duration::from_millis(50) {
            break used;
        }
        assert!(Instant::now() < deadline, "{used:?}");
    };
    let cpu = times::of_cpus(&cpus::online().unwrap()).unwrap().since(cpu_before);
    // A tick of each CPU may be on its way.
    assert!(cpu.user + cpu.system + Duration::from_millis(40) >= used.user + used.system);
    assert!(times::on_cpu(std::process::id()).unwrap() > Duration::ZERO);
    assert_eq!(times::on_cpu(u32::MAX), None);
    assert_eq!(times::of_process(u32::MAX), None);
    assert_eq!(times::of_thread(u32::MAX), None);
}
