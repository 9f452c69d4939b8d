//! Counts on all CPUs for a tenth of a second, CPU by CPU. Needs privilege.

use std::time::Duration;

use perfmon::{Error, Scope, Session};

fn main() -> Result<(), Error> {
    let mut session = Session::new("cpu-clock,context-switches,page-faults")?;
    session.load(&Scope::System)?;
    session.start()?;
    std::thread::sleep(Duration::from_millis(100));
    session.stop()?;
    session.read();
    for (number, event) in session.events().iter().enumerate() {
        println!("{}: {:?}", event.text, session.tally(number).count);
        for (part, tally) in session.parts(number, None) {
            println!("  {part}: {:?}", tally.count);
        }
    }
    Ok(())
}
