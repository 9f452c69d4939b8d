//! What eBPF can do here for this user, found by trying.

mod probes;

use std::sync::OnceLock;

use perfmon_sys::Errno;

/// What eBPF can do here, for this process.
#[derive(Debug)]
pub struct Abilities(Vec<Ability>);

/// Something that eBPF can do, or can't.
#[derive(Clone, Debug)]
pub struct Ability {
    /// Its name.
    pub name: &'static str,
    /// What perfmon does with it.
    pub serves: &'static str,
    /// Whether it is there, or what is in the way.
    pub available: Result<(), Lack>,
}

/// Why something can't be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The reason.
    pub why: String,
    /// What to change.
    pub hint: Option<String>,
}

impl Lack {
    fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: Some(hint.into()) }
    }
}

impl Abilities {
    /// Those of this process, tried at the first call. Nothing that was tried stays.
    pub fn here() -> &'static Self {
        static HERE: OnceLock<Abilities> = OnceLock::new();
        HERE.get_or_init(|| {
            let try_it = |&(name, serves, probe): &(&'static str, &'static str, Probe)| Ability {
                name,
                serves,
                available: probe(),
            };
            Self(PROBES.iter().map(try_it).collect())
        })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Ability> {
        self.0.iter()
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Ability> {
        self.iter().find(|ability| ability.name == name)
    }
}

type Probe = fn() -> Result<(), Lack>;

const PROBES: &[(&str, &str, Probe)] = &[
    ("type information", "programs find the fields of the kernel's structs", probes::types),
    ("programs", "all that perfmon runs in the kernel", probes::programs),
    ("programs on events", "records of samples, told apart by cookie", probes::event_programs),
    ("raw tracepoints", "programs at the kernel's tracepoints", probes::raw_tracepoints),
    (
        "typed tracepoints",
        "accounting of events to tasks at each switch",
        probes::typed_tracepoints,
    ),
    ("task storage", "counts of each task", probes::task_storage),
    ("task iterators", "counts of tasks that run already", probes::task_iterators),
    ("mapped arrays", "counts and records are read without system calls", probes::mapped_arrays),
    ("ring buffers", "rows of tasks that have ended", probes::ring_buffers),
    ("runs on a CPU", "a CPU's counts are brought up to date", probes::runs_on_a_cpu),
    ("program uprobes", "programs at functions of programs", probes::uprobes),
    ("program kprobes", "programs at functions of the kernel", probes::kprobes),
    ("function tracing", "programs at functions of the kernel, at less cost", probes::functions),
    ("BPF file system", "sessions that outlive a command", probes::file_system),
    ("program statistics", "what programs of perfmon cost", probes::statistics),
];

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Which of the capabilities that eBPF wants are not effective.
fn missing_capabilities() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let has = |capability: u32| mask & (1 << capability | 1 << CAP_SYS_ADMIN) != 0;
    let wanted = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")];
    wanted.into_iter().filter(|&(number, _)| !has(number)).map(|(_, name)| name).collect()
}

/// What an errno of bpf(2) means for something that was tried.
fn explain(errno: Errno, call: &str) -> Lack {
    match errno {
        Errno::PERM | Errno::ACCESS => {
            let missing = missing_capabilities();
            if missing.is_empty() {
                return Lack::new(
                    format!("the kernel refuses it to everybody ({} from {call})", name(errno)),
                    "a lockdown or a security module is in the way, or the kernel was built without it",
                );
            }
            let missing = missing.join(" and ");
            Lack::new(
                format!("it needs {missing} ({} from {call})", name(errno)),
                format!("run as root, or give pfmon {missing} (setcap){}", unprivileged()),
            )
        }
        Errno::NOSYS => Lack::new(
            format!("this kernel has no bpf(2) ({} from {call})", name(errno)),
            "build it with CONFIG_BPF_SYSCALL",
        ),
        Errno::INVAL | Errno::OPNOTSUPP | Errno::NOENT => Lack::new(
            format!("this kernel does not have it ({} from {call})", name(errno)),
            "use a newer kernel, or one that was built with it",
        ),
        errno => Lack { why: format!("{call}: {errno}"), hint: None },
    }
}

/// Ordinary users may load some programs where this is 0, but none of perfmon's.
fn unprivileged() -> &'static str {
    match std::fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled") {
        Ok(text) if text.trim() == "0" => {
            "; kernel.unprivileged_bpf_disabled = 0 does not help: it is for programs of sockets"
        }
        _ => "",
    }
}

fn name(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM => "EPERM",
        Errno::ACCESS => "EACCES",
        Errno::NOSYS => "ENOSYS",
        Errno::INVAL => "EINVAL",
        Errno::NOENT => "ENOENT",
        _ => "EOPNOTSUPP",
    }
}
