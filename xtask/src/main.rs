//! `cargo xtask`: the one door to chores.

#![forbid(unsafe_code)]

mod bpf;
mod finding;
mod manifest;
mod syntax;
mod tidy;
mod tree;
mod vm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::tree::Tree;

const USAGE: &str = "\
usage: cargo xtask tidy
       cargo xtask bpf [OPTION…] [FILE -o OUT]
       cargo xtask vm [OPTION…] [GUEST…] [-- COMMAND…]

tidy  check sizes, dependency rows, the unsafe policy, the documented walk, documents and hygiene
bpf   build the eBPF programs, or check that their objects are up to date (bpf --help)
vm    run the tests in emulated machines, with a PMU and on other kernels (vm --help)";

/// What could not even be tried, as opposed to what was found.
const EXIT_TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["tidy"] => tidy(),
        ["bpf", "--help" | "-h"] => {
            println!("{}", bpf::USAGE);
            ExitCode::SUCCESS
        }
        ["bpf", ref options @ ..] => outcome(
            bpf::Options::parse(options)
                .and_then(|options| root().and_then(|root| bpf::run(&root, &options))),
        ),
        ["vm", "--help" | "-h"] => {
            println!("{}", vm::USAGE);
            ExitCode::SUCCESS
        }
        ["vm", ref options @ ..] => outcome(
            vm::Options::parse(options)
                .and_then(|options| root().and_then(|root| vm::run(&root, &options))),
        ),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(EXIT_TROUBLE)
        }
    }
}

/// Prints the findings in this workspace, one a line.
fn tidy() -> ExitCode {
    let tree = match root().and_then(|root| Tree::load(&root)) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::from(EXIT_TROUBLE);
        }
    };
    let findings = tidy::check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing found", tree.len());
        ExitCode::SUCCESS
    } else {
        println!("tidy: {} findings in {} files", findings.len(), tree.len());
        ExitCode::FAILURE
    }
}

/// How a chore went: all is well, something was found, or it could not be tried.
fn outcome(result: Result<bool, String>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(EXIT_TROUBLE)
        }
    }
}

/// The workspace's root: the directory above this crate, which Cargo names when it runs us.
fn root() -> Result<PathBuf, String> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("run me as `cargo xtask`")?;
    let parent = Path::new(&own).parent().ok_or("this crate has no directory above it")?;
    Ok(parent.to_path_buf())
}
