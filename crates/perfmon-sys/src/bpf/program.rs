use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Attributes, Command, address, bpf, bpf_fd, kernel_name, length, raw};
use crate::Errno;

/// Records that belong to a program's instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct BpfInfo<'a> {
    /// The records, one after the other.
    pub bytes: &'a [u8],
    /// Bytes of one of them.
    pub record_bytes: u32,
}

/// A program as [`program_load`] takes it.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// `enum bpf_prog_type`.
    pub program_type: u32,
    /// `enum bpf_attach_type`, for types that want it.
    pub attach_type: u32,
    /// `BPF_F_SLEEPABLE` (16)...
    pub flags: u32,
    /// The kernel's type or function that it attaches to, for tracing programs.
    pub attach_btf_id: u32,
    /// Its instructions, 8 bytes each.
    pub instructions: &'a [u8],
    /// Its licence.
    pub license: &'a CStr,
    /// The type information that the records below refer to.
    pub btf: Option<BorrowedFd<'a>>,
    /// Its functions.
    pub functions: BpfInfo<'a>,
    /// Its source lines.
    pub lines: BpfInfo<'a>,
}

/// Where the verifier writes what it found.
#[derive(Debug)]
pub struct VerifierLog<'a> {
    /// 1: what it did; 2: every state; 4: statistics.
    pub level: u32,
    /// The text goes here, with a NUL byte at its end.
    pub buffer: &'a mut [u8],
}

#[repr(C)]
#[derive(Default)]
struct Load {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach_type: u32,
    btf_fd: u32,
    function_record_size: u32,
    functions: u64,
    function_count: u32,
    line_record_size: u32,
    lines: u64,
    line_count: u32,
    attach_btf_id: u32,
}

// SAFETY: only made by `program_load`, from slices and their lengths.
unsafe impl Attributes for Load {}

/// Loads a program.
///
/// # Errors
/// The kernel's: `EPERM` without `CAP_BPF` and `CAP_PERFMON`; `EACCES` and `EINVAL` for a program that the verifier
/// refuses; `ENOSPC` if the log was too short for all that it had to say.
pub fn program_load(
    spec: &ProgramSpec<'_>,
    log: Option<VerifierLog<'_>>,
) -> Result<OwnedFd, Errno> {
    let mut attributes = Load {
        program_type: spec.program_type,
        instruction_count: length(spec.instructions.len() / 8)?,
        instructions: address(spec.instructions.as_ptr()),
        license: address(spec.license.as_ptr()),
        flags: spec.flags,
        name: kernel_name(spec.name),
        attach_type: spec.attach_type,
        attach_btf_id: spec.attach_btf_id,
        ..Load::default()
    };
    let count = |info: &BpfInfo<'_>| {
        length(info.bytes.len().checked_div(info.record_bytes as usize).unwrap_or(0))
    };
    if let Some(btf) = spec.btf {
        attributes.btf_fd = raw(btf);
        let (functions, lines) = (count(&spec.functions)?, count(&spec.lines)?);
        if functions > 0 {
            attributes.functions = address(spec.functions.bytes.as_ptr());
            attributes.function_count = functions;
            attributes.function_record_size = spec.functions.record_bytes;
        }
        if lines > 0 {
            attributes.lines = address(spec.lines.bytes.as_ptr());
            attributes.line_count = lines;
            attributes.line_record_size = spec.lines.record_bytes;
        }
    }
    if let Some(VerifierLog { level, buffer }) = log {
        attributes.log_level = level;
        attributes.log = address(buffer.as_mut_ptr());
        attributes.log_size = length(buffer.len())?;
    }
    bpf_fd(Command::ProgramLoad, &mut attributes)
}

#[repr(C)]
#[derive(Default)]
struct LoadBtf {
    btf: u64,
    log: u64,
    btf_size: u32,
    log_size: u32,
    log_level: u32,
    // Linux 6.1 refuses what is not zero behind the fields that it knows.
    padding: u32,
}

// SAFETY: only made by `btf_load`, from slices and their lengths.
unsafe impl Attributes for LoadBtf {}

/// Loads type information.
///
/// # Errors
/// The kernel's: `EPERM` without `CAP_BPF`; `EINVAL` if it is not well formed.
pub fn btf_load(btf: &[u8], log: Option<VerifierLog<'_>>) -> Result<OwnedFd, Errno> {
    let mut attributes =
        LoadBtf { btf: address(btf.as_ptr()), btf_size: length(btf.len())?, ..LoadBtf::default() };
    if let Some(VerifierLog { level, buffer }) = log {
        attributes.log_level = level;
        attributes.log = address(buffer.as_mut_ptr());
        attributes.log_size = length(buffer.len())?;
    }
    bpf_fd(Command::BtfLoad, &mut attributes)
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program_fd: u32,
    result: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

// SAFETY: only made by `program_run`, from a slice and its length.
unsafe impl Attributes for TestRun {}

const TEST_RUN_ON_CPU: u32 = 1;

/// Runs a program once with `arguments` as its context, on `cpu` if one is given, and says what it returned.
/// For programs of the types raw tracepoint (any CPU) and syscall (this one).
///
/// # Errors
/// The kernel's: `ENXIO` if the CPU is not online, `EOPNOTSUPP` (as `ENOTSUPP`, 524) for other types.
pub fn program_run(program: impl AsFd, cpu: Option<u32>, arguments: &[u64]) -> Result<u32, Errno> {
    let mut attributes = TestRun {
        program_fd: raw(program.as_fd()),
        context_size_in: length(size_of_val(arguments))?,
        context_in: if arguments.is_empty() { 0 } else { address(arguments.as_ptr()) },
        ..TestRun::default()
    };
    if let Some(cpu) = cpu {
        (attributes.flags, attributes.cpu) = (TEST_RUN_ON_CPU, cpu);
    }
    bpf(Command::TestRun, &mut attributes)?;
    Ok(attributes.result)
}
