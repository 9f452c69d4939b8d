//! Which CPU a machine has, from the files in which the kernel tells.
//!
//! References: Linux, `arch/x86/kernel/cpu/proc.c`, `arch/riscv/kernel/cpu.c`,
//! `Documentation/ABI/testing/sysfs-devices-system-cpu` (`regs/identification/midr_el1`).

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::read;

/// So much of `/proc/cpuinfo` holds the first CPU; the whole file is slow on machines of many CPUs.
const FIRST_CPU_BYTES: u64 = 2048;
/// Most CPUs that are asked for their core type.
const CPUS_MAX: u32 = 1024;

/// What a CPU is, as its maker numbers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuId {
    /// CPUID leaves 0 and 1, base and extended numbers added.
    X86 {
        /// Such as `GenuineIntel`.
        vendor: String,
        /// Display family.
        family: u32,
        /// Display model.
        model: u32,
        /// Stepping.
        stepping: u32,
    },
    /// The main ID register `MIDR_EL1`.
    Arm64 {
        /// Its value.
        midr: u64,
    },
    /// The machine CSRs of RISC-V.
    Riscv {
        /// `mvendorid`.
        vendor: u64,
        /// `marchid`.
        arch: u64,
        /// `mimpid`.
        implementation: u64,
    },
    /// The files don't tell.
    Unknown,
}

impl CpuId {
    /// The architecture, as descriptions name it; empty if unknown.
    pub fn arch(&self) -> &'static str {
        match self {
            Self::X86 { .. } => "x86",
            Self::Arm64 { .. } => "arm64",
            Self::Riscv { .. } => "riscv64",
            Self::Unknown => "",
        }
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86 { vendor, family, model, stepping } => {
                write!(f, "{vendor} family {family:#x} model {model:#x} stepping {stepping}")
            }
            Self::Arm64 { midr } => write!(f, "arm64 MIDR {midr:#x}"),
            Self::Riscv { vendor, arch, implementation } => {
                write!(f, "riscv64 {vendor:#x} {arch:#x} {implementation:#x}")
            }
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The distinct CPUs of the machine whose `/proc` and `/sys` are given: one, or one a core type on arm64.
pub(crate) fn cpus(proc: &Path, sysfs: &Path) -> Vec<CpuId> {
    let mut midrs = Vec::new();
    for cpu in 0..CPUS_MAX {
        let Ok(text) = midr_text(sysfs, cpu) else { break };
        midrs.extend(arm64(&text).filter(|id| !midrs.contains(id)));
    }
    if midrs.is_empty() { vec![from_cpuinfo(&first_cpu(proc))] } else { midrs }
}

/// What CPU number `cpu` is, where each of them tells: on arm64.
pub(crate) fn cpu(sysfs: &Path, cpu: u32) -> Option<CpuId> {
    arm64(&midr_text(sysfs, cpu).ok()?)
}

fn midr_text(sysfs: &Path, cpu: u32) -> io::Result<String> {
    read::text(&sysfs.join(format!("devices/system/cpu/cpu{cpu}/regs/identification/midr_el1")))
}

fn arm64(text: &str) -> Option<CpuId> {
    let midr = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    Some(CpuId::Arm64 { midr })
}

fn first_cpu(proc: &Path) -> String {
    let mut bytes = Vec::new();
    // A file that can't be read names no CPU.
    let _ = File::open(proc.join("cpuinfo"))
        .and_then(|file| file.take(FIRST_CPU_BYTES).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn from_cpuinfo(text: &str) -> CpuId {
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim())
        })
    };
    let number = |key: &str| value(key)?.parse().ok();
    let hex = |key: &str| u64::from_str_radix(value(key)?.strip_prefix("0x")?, 16).ok();
    if let (Some(vendor), Some(family), Some(model), Some(stepping)) =
        (value("vendor_id"), number("cpu family"), number("model"), number("stepping"))
    {
        return CpuId::X86 { vendor: vendor.to_owned(), family, model, stepping };
    }
    match (hex("mvendorid"), hex("marchid"), hex("mimpid")) {
        (Some(vendor), Some(arch), Some(implementation)) => {
            CpuId::Riscv { vendor, arch, implementation }
        }
        _ => CpuId::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the first CPU of cpuinfo is read in the forms of the architectures.
    #[test]
    fn cpuinfo_names_the_cpu() {
        let text = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n\
                    model name\t: AMD EPYC\nstepping\t: 1\n";
        let expected =
            CpuId::X86 { vendor: "AuthenticAMD".into(), family: 25, model: 1, stepping: 1 };
        assert_eq!(from_cpuinfo(text), expected);
        let text = "processor\t: 0\nhart\t\t: 2\nmvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x1\n";
        let expected =
            CpuId::Riscv { vendor: 0x489, arch: 0x8000_0000_0000_0007, implementation: 1 };
        assert_eq!(from_cpuinfo(text), expected);
        assert_eq!(from_cpuinfo(""), CpuId::Unknown);
    }
}
