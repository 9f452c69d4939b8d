//! Counts a command and all its descendants: `count_command [COMMAND [ARG]…]`.

use std::error::Error;

use perfmon::{Inherit, Scope, Session, StartOn, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let mut argv: Vec<String> = std::env::args().skip(1).collect();
    if argv.is_empty() {
        argv = ["sh", "-c", "ls / > /dev/null"].map(str::to_owned).to_vec();
    }
    let mut workload = Workload::spawn(&argv, None)?;
    let mut session = Session::new("task-clock,page-faults:u,minor-faults:u")?;
    let (inherit, start_on) = (Inherit::Tree, StartOn::Exec);
    session.load(&Scope::Command { pid: workload.pid(), inherit, start_on })?;
    workload.release()?;
    let ended = workload.wait()?;
    session.read();
    session.counts().iter().for_each(|row| println!("{row}"));
    println!("user {:?}, system {:?}", ended.times.user, ended.times.system);
    Ok(())
}
