use perfmon::{Part, Scope, Session};

use crate::helper::skipped;

/// Check that a CPU that is not online is refused by its number.
#[test]
fn offline_cpus_are_refused_by_number() {
    let mut session = Session::new("cpu-clock").unwrap();
    let text = session.load(&Scope::Cpus(vec![60_000])).unwrap_err().to_string();
    let expected = "can't monitor CPU 60000: CPU 60000 is not online; choose among ";
    assert!(text.starts_with(expected), "{text}");
}

/// Check that the rows of all CPUs are there, and add up to the whole.
#[test]
fn rows_of_cpus_add_up() {
    let mut session = Session::new("cpu-clock").unwrap();
    session.load(&Scope::System).unwrap();
    session.start().unwrap();
    session.stop().unwrap();
    session.read();
    let parts = session.parts(0, None);
    let expected: Vec<Part> = perfmon::cpus::online().unwrap().into_iter().map(Part::Cpu).collect();
    assert!(parts.iter().map(|(part, _)| part).eq(&expected), "{parts:?}");
    let whole = session.tally(0);
    if let Some(reason) = whole.count.reason() {
        return skipped("rows_of_cpus_add_up", reason);
    }
    let sum = parts.iter().map(|(_, tally)| tally.count.exact().unwrap()).sum();
    assert_eq!(whole.count.exact(), Some(sum));
}
