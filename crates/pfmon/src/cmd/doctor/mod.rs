//! `pfmon doctor`: what this machine lets this user do, and what to change for more.

mod perf_events;
pub(crate) mod results;

use std::process::ExitCode;

use perfmon::Abilities;

use crate::args::Doctor;
use crate::exit::Failure;
use crate::output::{self, Sink};
use results::{AbilityRow, DoctorResult, SCHEMA};

/// Capabilities that change what is allowed, by their numbers.
const CAPABILITIES: [(u32, &str); 5] = [
    (19, "CAP_SYS_PTRACE"),
    (21, "CAP_SYS_ADMIN"),
    (24, "CAP_SYS_RESOURCE"),
    (38, "CAP_PERFMON"),
    (39, "CAP_BPF"),
];

/// Looks, tries, and shows what was found.
pub(crate) fn run(args: &Doctor) -> Result<ExitCode, Failure> {
    let system = rustix::system::uname();
    let capabilities = capabilities();
    let mut abilities = perf_events::abilities(&capabilities);
    abilities.extend(Abilities::here().iter().map(|ability| {
        let lack = ability.available.as_ref().err();
        AbilityRow {
            area: "eBPF",
            name: ability.name,
            available: lack.is_none(),
            detail: None,
            serves: ability.serves,
            why: lack.map(|lack| lack.why.clone()),
            hint: lack.and_then(|lack| lack.hint.clone()),
        }
    }));
    let result = DoctorResult {
        schema: SCHEMA,
        kernel: system.release().to_string_lossy().into_owned(),
        machine: system.machine().to_string_lossy().into_owned(),
        uid: rustix::process::geteuid().as_raw(),
        capabilities,
        abilities,
    };
    output::doctor(&mut Sink::stdout(), args.json, &result)?;
    Ok(ExitCode::SUCCESS)
}

fn capabilities() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let effective = CAPABILITIES.iter().filter(|(number, _)| mask & (1 << number) != 0);
    effective.map(|(_, name)| *name).collect()
}
