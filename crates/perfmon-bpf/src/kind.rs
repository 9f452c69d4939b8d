use crate::btf::Btf;

const PERF_EVENT: u32 = 7;
const KPROBE: u32 = 2;
const TRACEPOINT: u32 = 5;
const RAW_TRACEPOINT: u32 = 17;
const TRACING: u32 = 26;
const SYSCALL: u32 = 31;
const TRACE_RAW_TP: u32 = 23;
const TRACE_FENTRY: u32 = 24;
const TRACE_FEXIT: u32 = 25;
const TRACE_ITER: u32 = 28;
const SLEEPABLE: u32 = 1 << 4;

/// How a program is loaded, by its section's name.
///
/// # References
/// - Documentation/bpf/libbpf/program_types.rst
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) program_type: u32,
    pub(crate) attach_type: u32,
    pub(crate) flags: u32,
    pub(crate) attach: Attach,
}

/// Where a program attaches to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attach {
    /// An event of the user's.
    Event,
    /// The tracepoint of this name, whose arguments are the program's.
    RawTracepoint(String),
    /// The same, checked against the kernel's types.
    BtfTracepoint(String),
    /// A kernel function's begin or end.
    Function(String),
    /// An iterator over objects of this kind.
    Iterator(String),
    /// Nowhere: it is run, or continued with.
    Nowhere,
}

impl Kind {
    pub(crate) fn of(section: &str) -> Option<Self> {
        let (kind, rest) = section.split_once('/').unwrap_or((section, ""));
        let (kind, flags) = kind.strip_suffix(".s").map_or((kind, 0), |kind| (kind, SLEEPABLE));
        let rest = rest.to_owned();
        let (program_type, attach_type, attach) = match kind {
            "perf_event" => (PERF_EVENT, 0, Attach::Event),
            "kprobe" | "kretprobe" | "uprobe" | "uretprobe" => (KPROBE, 0, Attach::Event),
            "tp" | "tracepoint" => (TRACEPOINT, 0, Attach::Event),
            "raw_tp" | "raw_tracepoint" if rest.is_empty() => (RAW_TRACEPOINT, 0, Attach::Nowhere),
            "raw_tp" | "raw_tracepoint" => (RAW_TRACEPOINT, 0, Attach::RawTracepoint(rest)),
            "tp_btf" => (TRACING, TRACE_RAW_TP, Attach::BtfTracepoint(rest)),
            "fentry" => (TRACING, TRACE_FENTRY, Attach::Function(rest)),
            "fexit" => (TRACING, TRACE_FEXIT, Attach::Function(rest)),
            "iter" => (TRACING, TRACE_ITER, Attach::Iterator(rest)),
            "syscall" => (SYSCALL, 0, Attach::Nowhere),
            _ => return None,
        };
        let flags = if program_type == SYSCALL { SLEEPABLE } else { flags };
        Some(Self { program_type, attach_type, flags, attach })
    }
}

impl Attach {
    /// The id of the kernel's type or function that it attaches to, or what the kernel lacks.
    pub(crate) fn id_in(&self, kernel: &Btf) -> Result<u32, String> {
        let (id, what) = match self {
            Self::BtfTracepoint(name) => {
                (kernel.typedef(&format!("btf_trace_{name}")), format!("the tracepoint {name}"))
            }
            Self::Function(name) => (kernel.function(name), format!("the function {name}")),
            Self::Iterator(name) => {
                (kernel.function(&format!("bpf_iter_{name}")), format!("an iterator over {name}"))
            }
            Self::Event | Self::RawTracepoint(_) | Self::Nowhere => return Ok(0),
        };
        id.ok_or(what)
    }

    pub(crate) fn needs_kernel_types(&self) -> bool {
        matches!(self, Self::BtfTracepoint(_) | Self::Function(_) | Self::Iterator(_))
    }
}
