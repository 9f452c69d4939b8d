//! Programs whose instructions are known up to a constant, for the tests: `perfmon-known NAME [ARG]…`.

use std::process::{Command, ExitCode};
use std::thread;

use perfmon_vmtest::spin;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| args.get(place).and_then(|text| text.parse().ok()).unwrap_or(1);
    match args.first().map(String::as_str) {
        // N iterations.
        Some("spin") => spin(number(1)),
        // N threads one after the other, thread i with i × K iterations.
        Some("threads") => {
            for place in 1..=number(1) {
                let iterations = place * number(2);
                let _ = thread::spawn(move || spin(iterations)).join();
            }
        }
        // N processes one after the other, each with K iterations.
        Some("processes") => {
            for _ in 0..number(1) {
                let Ok(own) = std::env::current_exe() else { return 2.into() };
                let iterations = args.get(2).map_or("1", String::as_str);
                let child = Command::new(own).args(["spin", iterations]).status();
                if !child.is_ok_and(|status| status.success()) {
                    return 2.into();
                }
            }
        }
        _ => return 2.into(),
    }
    ExitCode::SUCCESS
}
