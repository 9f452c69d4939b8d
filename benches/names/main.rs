//! What names cost: listing them, resolving one, and the first one of a process; beside `perf list` and libpfm4.
//!
//! ```text
//! names [--only list|resolve|first] [--rounds N] [--pfmon FILE]
//! ```

use std::hint::black_box;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use common::{Case, Order, machine, number, option, table};
use perfmon_events::{Names, Wanted};
use perfmon_sys::Libpfm;

/// Names of a kind: what it is, perfmon's, and libpfm4's for the same event.
const KINDS: [(&str, &str, &str); 8] = [
    ("software", "page-faults", "perf::PAGE-FAULTS"),
    ("software, letters", "page-faults:u", "perf::PAGE-FAULTS:u"),
    ("generic", "cycles:u", "perf::CYCLES:u"),
    ("cache", "L1-dcache-load-misses", "perf::L1-DCACHE-LOAD-MISSES"),
    ("described", "amd_zen3::RETIRED_INSTRUCTIONS", "amd64_fam19h_zen3::RETIRED_INSTRUCTIONS"),
    ("mask", "amd_zen3::LS_DISPATCH:LD_DISPATCH", "amd64_fam19h_zen3::LS_DISPATCH:LD_DISPATCH"),
    (
        "mask, modifiers",
        "amd_zen3::LS_DISPATCH:LD_DISPATCH:c=2:i:u",
        "amd64_fam19h_zen3::LS_DISPATCH:LD_DISPATCH:c=2:i:u",
    ),
    ("no PMU in front", "LS_DISPATCH:LD_DISPATCH", "amd64_fam19h_zen3::LS_DISPATCH:LD_DISPATCH"),
];

/// Forms that libpfm4 has not.
const OURS_ALONE: [(&str, &str); 3] = [
    ("raw", "r1a8:u"),
    ("terms", "cpu/event=0x29,umask=1/u"),
    ("vendor's dot", "LS_DISPATCH.LD_DISPATCH"),
];

fn main() {
    match option("--part").as_deref() {
        None => {}
        Some("catalog") => return catalog(),
        Some("libpfm4") => return libpfm_catalog(),
        Some("first") => {
            return first(|| drop(black_box(Names::system().encoding("page-faults:u"))));
        }
        Some("first-libpfm4") => {
            return first(|| {
                drop(black_box(Libpfm::open().map(|it| it.encode("perf::PAGE-FAULTS:u"))))
            });
        }
        Some(part) => panic!("there is no part '{part}'"),
    }
    // libpfm4 reads it once; other machines' events are not encoded without.
    if std::env::var_os("LIBPFM_ENCODE_INACTIVE").is_none() {
        let status =
            own([]).args(std::env::args_os().skip(1)).env("LIBPFM_ENCODE_INACTIVE", "1").status();
        std::process::exit(status.ok().and_then(|it| it.code()).unwrap_or(1));
    }
    println!("{}", machine());
    let libpfm = Libpfm::open();
    if let Err(error) = &libpfm {
        println!("libpfm4: {error}: its rows are missing");
    }
    let only = option("--only");
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if wanted("list") {
        lists(libpfm.is_ok());
    }
    if wanted("resolve") {
        resolve(libpfm.as_ref().ok());
    }
    if wanted("first") {
        firsts(libpfm.is_ok());
    }
}

/// This program, with other arguments.
fn own<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the program has a file"));
    command.args(arguments);
    command
}

/// Prints all names of perfmon, those of other machines included.
fn catalog() {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let wanted = Wanted { other_machines: true, ..Wanted::default() };
    Names::system().catalog(&wanted, &mut |entry| {
        let _ = writeln!(out, "{}  {}", entry.name, entry.about);
        for (mask, about) in &entry.masks {
            let _ = writeln!(out, "  :{mask}  {about}");
        }
    });
}

/// Prints all names of libpfm4.
fn libpfm_catalog() {
    let Ok(library) = Libpfm::open() else { return };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for pmu in library.pmus() {
        library.events(&pmu, &mut |entry| {
            let _ = writeln!(out, "{}::{}  {}", pmu.name, entry.name, entry.description);
            for attribute in entry.attributes {
                let _ = writeln!(out, "  :{}", attribute.name);
            }
            ControlFlow::Continue(())
        });
    }
}

/// Prints how long `encode` takes, in ns.
fn first(encode: impl FnOnce()) {
    let start = Instant::now();
    encode();
    println!("{}", start.elapsed().as_nanos());
}

/// N1: a process that lists everything. Wall time, output thrown away.
fn lists(has_libpfm: bool) {
    let rounds = number("--rounds", 31);
    let mut commands: Vec<(String, Command)> =
        vec![("perfmon: catalog, all machines".into(), own(["--part", "catalog"]))];
    if let Some(pfmon) = option("--pfmon") {
        commands.push(("pfmon list".into(), program(Path::new(&pfmon), &["list"])));
    } else {
        println!("without --pfmon FILE the row of `pfmon list` is missing");
    }
    match find("perf") {
        Some(perf) => commands.push(("perf list".into(), program(&perf, &["list"]))),
        None => println!("perf is not installed: its row is missing"),
    }
    if has_libpfm {
        commands.push(("libpfm4: all PMUs".into(), own(["--part", "libpfm4"])));
    }
    let mut cases: Vec<Case> = commands.iter().map(|(name, _)| Case::new(name.as_str())).collect();
    let mut order = Order::new(7);
    for _ in 0..rounds {
        for place in order.shuffled(commands.len()) {
            let start = Instant::now();
            let status = commands[place].1.stdout(Stdio::null()).stderr(Stdio::null()).status();
            let took = start.elapsed().as_secs_f64() * 1e3;
            assert!(status.is_ok_and(|status| status.success()), "{} fails", cases[place].name);
            cases[place].values.push(took);
        }
    }
    let first = cases[0].name.clone();
    println!("{}", table(&format!("List everything, {rounds} rounds"), "ms", 2, &cases, &[&first]));
}

fn program(file: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(file);
    command.args(arguments);
    command
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// N2: one name after all is warm, by [`Names::encoding`] and by libpfm4's `pfm_get_os_event_encoding`.
fn resolve(libpfm: Option<&Libpfm>) {
    let rounds = number("--rounds", 61);
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/perfmon-events/tests/fixtures");
    let zen3 = fixtures.join("machines/zen3");
    let names =
        Names::with_roots(zen3.join("sys"), fixtures.join("tracefs")).proc(zen3.join("proc"));
    let ours = |text: &'static str| {
        let encoding = names.encoding(text);
        assert!(encoding.as_ref().is_ok_and(Result::is_ok), "{text}: {encoding:?}");
        let names = &names;
        move || drop(black_box(names.encoding(black_box(text))))
    };
    for (kind, text, theirs) in KINDS {
        let mut ways: Vec<(Case, Box<dyn FnMut() + '_>)> =
            vec![(Case::new("perfmon"), Box::new(ours(text)))];
        if let Some(libpfm) = libpfm {
            match libpfm.encode(theirs) {
                Ok(_) => ways.push((
                    Case::new("libpfm4"),
                    Box::new(move || drop(black_box(libpfm.encode(black_box(theirs))))),
                )),
                Err(error) => println!("{theirs}: {error}: its row is missing"),
            }
        }
        interleaved(&format!("Resolve, {kind}: `{text}`, {rounds} rounds"), rounds, ways);
    }
    for (kind, text) in OURS_ALONE {
        let ways: Vec<(Case, Box<dyn FnMut() + '_>)> =
            vec![(Case::new("perfmon"), Box::new(ours(text)))];
        interleaved(&format!("Resolve, {kind}: `{text}`, {rounds} rounds"), rounds, ways);
    }
}

/// Runs the ways in another order each round, in batches of about 2 ms, and prints ns a call.
fn interleaved(title: &str, rounds: usize, mut ways: Vec<(Case, Box<dyn FnMut() + '_>)>) {
    let mut times = Vec::new();
    for (_, call) in &mut ways {
        let start = Instant::now();
        (0..64).for_each(|_| call());
        times.push((64.0 * 2e-3 / start.elapsed().as_secs_f64()).clamp(1.0, 1e6) as u64);
    }
    let mut order = Order::new(7);
    for _ in 0..rounds {
        for place in order.shuffled(ways.len()) {
            let (case, call) = &mut ways[place];
            call();
            let start = Instant::now();
            (0..times[place]).for_each(|_| call());
            case.values.push(start.elapsed().as_nanos() as f64 / times[place] as f64);
        }
    }
    let cases: Vec<Case> = ways.into_iter().map(|(case, _)| case).collect();
    println!("{}", table(title, "ns", 0, &cases, &["perfmon"]));
}

/// N3: the first name of a process: nothing was read, opened or initialised before.
fn firsts(has_libpfm: bool) {
    let rounds = number("--rounds", 61);
    let mut ways = vec![(Case::new("perfmon: system and encoding"), "first")];
    if has_libpfm {
        ways.push((Case::new("libpfm4: load, initialise and encoding"), "first-libpfm4"));
    }
    let mut order = Order::new(7);
    for _ in 0..rounds {
        for place in order.shuffled(ways.len()) {
            let output =
                own(["--part", ways[place].1]).env_remove("LIBPFM_ENCODE_INACTIVE").output();
            let text = output.expect("the program runs itself").stdout;
            let ns: f64 = String::from_utf8_lossy(&text).trim().parse().expect("a number of ns");
            ways[place].0.values.push(ns / 1e3);
        }
    }
    let cases: Vec<Case> = ways.into_iter().map(|(case, _)| case).collect();
    let first = cases[0].name.clone();
    println!(
        "{}",
        table(&format!("First name of a process, {rounds} rounds"), "us", 1, &cases, &[&first])
    );
}
