// guest rows: arm64-6.12
//! `pfmon`: performance monitoring for Linux.

#![forbid(unsafe_code)]

mod args;
mod cmd;
mod exit;
mod output;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // A closed pipe is no reason to complain.
            let _ = error.print();
            return if error.use_stderr() { exit::FAILED.into() } else { ExitCode::SUCCESS };
        }
    };
    let result = match &args.command {
        args::Command::Stat(stat) => cmd::stat::run(stat),
        args::Command::List(list) => cmd::list::run(list),
        args::Command::Explain(explain) => cmd::explain::run(explain),
        args::Command::Fit(fit) => cmd::fit::run(fit),
        args::Command::Pmu(pmu) => cmd::pmu::run(pmu),
        args::Command::Doctor(doctor) => cmd::doctor::run(doctor),
    };
    result.unwrap_or_else(|failure| failure.report())
}
