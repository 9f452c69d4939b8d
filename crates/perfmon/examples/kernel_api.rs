//! Page faults of each call of a function, read by programs in the kernel: see docs/kernel-api.md.
//!
//! * `kernel_api [OBJECT]` does it all: publishes this thread's context, attaches programs to a function, calls it.
//! * `kernel_api publish NAME` publishes, and calls the function with each number that is a line of its input.
//! * `kernel_api watch NAME [OBJECT]` attaches the programs to that other process until its own input ends.
//!
//! OBJECT is `bpf/objects/faults_per_call.bpf.o` (the default, built in) or `faults_per_call_c.bpf.o`. It takes root.

use std::error::Error;
use std::io::Write;

use perfmon::bpf::{Loaded, Loader, Object};
use perfmon::{Attached, Found, Names, Published, Scope, Session, Target};

static OBJECT: &[u8] = include_bytes!("../../../bpf/objects/faults_per_call.bpf.o");
/// What programs find as their cookie: which function was called.
const FUNCTION: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["publish", name] => publish(name),
        ["watch", name] => watch(name, None),
        ["watch", name, object] => watch(name, Some(object)),
        [] => alone(None),
        [object] => alone(Some(object)),
        _ => Err("usage: kernel_api [OBJECT] | publish NAME | watch NAME [OBJECT]".into()),
    }
}

/// Publisher and loader are one process.
fn alone(object: Option<&str>) -> Result<(), Box<dyn Error>> {
    let mut session = Session::new("page-faults:u")?;
    session.load(&Scope::CurrentThread)?;
    session.start()?;
    let mut published = session.publish(&format!("kernel-api-{}", std::process::id()))?;
    let mut work = Work::new();
    let loaded = published.share(Loader::new()).load(&read(object)?)?;
    let _attached = attach(&loaded, &Target::CurrentThread)?;
    // At the first hit in a process the kernel maps a page for probes there: a fault that is no call's.
    work.touch(0);
    published.drain(|_| ());
    for pages in 1..=10 {
        work.touch(pages);
        show(&mut published)?;
    }
    Ok(())
}

/// Shares a context under a name with whoever may look into this process.
fn publish(name: &str) -> Result<(), Box<dyn Error>> {
    let mut session = Session::new("page-faults:u")?;
    session.load(&Scope::CurrentThread)?;
    session.start()?;
    let mut published = session.publish(name)?;
    let mut work = Work::new();
    println!("published");
    for line in std::io::stdin().lines() {
        work.touch(line?.trim().parse()?);
        show(&mut published)?;
        println!("done");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Reads a context that another process has published.
fn watch(name: &str, object: Option<&str>) -> Result<(), Box<dyn Error>> {
    let found = Found::open(name)?;
    let info = found.info(0).ok_or("it has no context")?;
    let loaded = found.share(Loader::new()).load(&read(object)?)?;
    let _attached = attach(&loaded, &Target::Thread(info.target))?;
    println!("watching thread {}, {} registers", info.target, info.nr_pmds);
    for line in std::io::stdin().lines() {
        line?;
    }
    show_totals(&loaded)
}

fn read(object: Option<&str>) -> Result<Object, Box<dyn Error>> {
    Ok(match object {
        Some(path) => Object::parse(path, &std::fs::read(path)?)?,
        None => Object::parse("faults_per_call", OBJECT)?,
    })
}

/// Has the programs run at begin and end of each call of [`touch`], which both processes have at the same place.
fn attach(loaded: &Loaded, target: &Target) -> Result<[Attached; 2], Box<dyn Error>> {
    let place = place_of(touch as fn(&mut Vec<u8>, usize) as usize).ok_or("it is nowhere")?;
    let list = format!("uprobe:{place},uretprobe:{place}");
    let [begin, end] = &Names::system().parse(&list)?[..] else { return Err("two events".into()) };
    Ok([
        Attached::new(loaded.program("call_begins")?, begin, target, 0, FUNCTION)?,
        Attached::new(loaded.program("call_ends")?, end, target, 0, FUNCTION)?,
    ])
}

/// File and offset in it of a function of this program. A name does as well, where it is not a mangled one.
fn place_of(function: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let [range, _, offset, _, _, path] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let (begin, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let (begin, end) = (number(begin)?, number(end)?);
        let inside = (begin..end).contains(&function);
        inside.then_some(format!("{path}:{:#x}", function - begin + number(offset)?))
    })
}

/// Shows what programs sent: a record each call, of two words.
fn show(published: &mut Published) -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    published.drain(|record| {
        let [function, count] = words(record);
        text += &format!("function {function}: {count} faults\n");
    });
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Shows what the programs have in their own map.
fn show_totals(loaded: &Loaded) -> Result<(), Box<dyn Error>> {
    let mut totals = [0; 24];
    loaded.map("TOTALS")?.raw().lookup(&0_u32.to_ne_bytes(), &mut totals)?;
    let [calls, count, error] = words(&totals);
    println!("{calls} calls, {count} faults, last error {}", error.cast_signed());
    Ok(())
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
    [0; N].map(|_| words.next().map_or(0, u64::from_ne_bytes))
}

/// Fresh memory.
struct Work(Vec<u8>);

impl Work {
    fn new() -> Self {
        // A fault would bring in many pages at once.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        let mut work = Self(Vec::with_capacity(64 << 20));
        // The first call also brings in code.
        work.touch(1);
        work
    }

    fn touch(&mut self, pages: usize) {
        touch(&mut self.0, pages);
    }
}

/// What is watched: one fault for each page.
#[inline(never)]
fn touch(memory: &mut Vec<u8>, pages: usize) {
    for _ in 0..pages {
        let end = memory.len() + rustix::param::page_size();
        memory.resize(end.min(memory.capacity()), 1);
    }
}
