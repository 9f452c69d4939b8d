//! The commands that are about events and PMUs, and count nothing.

use std::path::PathBuf;

use clap::ValueEnum;
use perfmon::Source;

/// What is looked at beside this machine's own files.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Sources {
    /// Also takes a PMU description (docs/pmu-descriptions.md); may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) pmu: Vec<PathBuf>,

    /// Also takes a vendor's event files, a file or a directory; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) event_files: Vec<PathBuf>,
}

/// Where names are looked up.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) sources: Sources,

    /// Another machine's tree like /sys; with this, --tracefs or --proc nothing of this machine is looked at or tried
    #[arg(long, value_name = "DIR")]
    pub(crate) sysfs: Option<PathBuf>,

    /// Another machine's tree like /sys/kernel/tracing
    #[arg(long, value_name = "DIR")]
    pub(crate) tracefs: Option<PathBuf>,

    /// Another machine's tree like /proc, of which cpuinfo is read
    #[arg(long, value_name = "DIR")]
    pub(crate) proc: Option<PathBuf>,

    /// Prints JSON (docs/schema.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which events are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Try {
    /// All but tracepoints where there are many
    Auto,
    /// Each one; a tracepoint takes about 40 ms
    All,
    /// None
    None,
}

/// Show which events there are, and whether they open here.
///
/// Each WORD is searched for in names, unit masks, descriptions and PMUs, without regard to case; an event is shown
/// if all words are found.
///
/// OPENS is what the kernel said when the event was tried: yes; user (this user may count it in user mode only);
/// no, with the reason; - if it was not tried; yes* if others of its kind are let through.
///
/// Exit status: 0; 1 if no event is found; 125: the options can't be followed.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// What to search for
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,

    /// Takes the words as regular expressions
    #[arg(short, long)]
    pub(crate) regex: bool,

    /// Only events of this PMU: a description, a PMU in sysfs, a group of tracepoints
    #[arg(long, value_name = "PMU")]
    pub(crate) of: Option<String>,

    /// Only events from here: descriptions, sysfs, generic, tracefs, libpfm4 or vendor; may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_source)]
    pub(crate) source: Vec<Source>,

    /// Also events of other machines
    #[arg(short, long)]
    pub(crate) all: bool,

    /// One line per unit mask, too
    #[arg(short, long)]
    pub(crate) masks: bool,

    /// Which events are tried
    #[arg(long = "try", value_name = "WHICH", value_enum, default_value_t = Try::Auto)]
    pub(crate) tried: Try,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Show where events come from, what the kernel is given for them, and whether they open here.
///
/// Exit status: 0 if all events can be had and open; 1 if one is refused or does not open as typed; 125: an event
/// can't be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// Events, or lists of them, as for pfmon stat -e
    #[arg(value_name = "EVENT", required = true)]
    pub(crate) events: Vec<String>,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Find out whether events can be counted together, and if not, into which groups to split them.
///
/// Events in {braces} stay together. What is found holds for this machine as it is now: another tool, or the NMI
/// watchdog, may hold counters.
///
/// Exit status: 0 if all events fit into one group; 1 if not, or if one does not open; 125: the list can't be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Fit {
    /// Events, as for pfmon stat -e
    #[arg(value_name = "LIST", required_unless_present = "events")]
    pub(crate) lists: Vec<String>,

    /// The same as LIST; may be repeated
    #[arg(short, long = "event", value_name = "LIST")]
    pub(crate) events: Vec<String>,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Show the PMU descriptions and this machine's PMUs, or one description with its registers.
///
/// Exit status: 0; 125 if there is no description NAME.
#[derive(Debug, clap::Args)]
pub(crate) struct Pmu {
    /// A description, by its name or another that it goes by
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Show what this machine lets you do, and for what it does not, why and what to change.
///
/// What perf events allow, and what eBPF can do: each is tried, and nothing of that stays.
///
/// Exit status: 0.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Prints JSON (docs/schema.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Sources that have lists of events.
const SOURCES: [Source; 6] = [
    Source::Description,
    Source::Sysfs,
    Source::Generic,
    Source::Tracefs,
    Source::Libpfm,
    Source::Vendor,
];

fn parse_source(text: &str) -> Result<Source, String> {
    let named = SOURCES.into_iter().find(|source| source.name() == text);
    named.ok_or_else(|| format!("expected one of {}", SOURCES.map(Source::name).join(", ")))
}
