//! Counts a closure, then regions of a loop, in the calling thread.

use perfmon::{Error, Scope, Session};

fn main() -> Result<(), Error> {
    let events = "task-clock,page-faults:u";
    let (sum, counts) = perfmon::measure(events, || (1..=1_000_000_u64).sum::<u64>())?;
    println!("the sum is {sum}");
    counts.iter().for_each(|row| println!("  {row}"));

    let mut session = Session::new(events)?;
    session.load(&Scope::CurrentThread)?;
    session.start()?;
    for pages in [1, 10, 100] {
        let (_, counts) = session.region(|| std::hint::black_box(vec![1_u8; pages * 4096]));
        println!("{pages} pages");
        counts.iter().for_each(|row| println!("  {row}"));
    }
    Ok(())
}
