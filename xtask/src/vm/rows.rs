//! The guests: which kernel on which emulated machine.

/// One guest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) arch: Arch,
    /// The Debian suite that its kernel comes from.
    pub(crate) suite: &'static str,
    /// What the kernel's release begins with; empty if it is whatever the suite has.
    pub(crate) kernel: &'static str,
    /// QEMU's CPU model.
    pub(crate) cpu: &'static str,
    pub(crate) cpus: u32,
    pub(crate) pmu: Option<Pmu>,
    /// With one CPU and a PMU, counts of instructions are exact.
    pub(crate) tags: &'static [&'static str],
    /// The distribution's own perf is put into it.
    pub(crate) has_perf: bool,
}

/// The PMU that a guest's kernel finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pmu {
    /// Counters for any event, beside the one for cycles.
    pub(crate) general_counters: u32,
    pub(crate) counter_bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arch {
    Arm64,
    X86_64,
}

impl Arch {
    /// Debian's name.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::X86_64 => "amd64",
        }
    }

    pub(crate) fn qemu(self) -> &'static str {
        match self {
            Self::Arm64 => "qemu-system-aarch64",
            Self::X86_64 => "qemu-system-x86_64",
        }
    }
}

const PMU_32: Option<Pmu> = Some(Pmu { general_counters: 6, counter_bits: 32 });
const PMU_64: Option<Pmu> = Some(Pmu { general_counters: 6, counter_bits: 64 });

const ARM64: Row = Row {
    name: "",
    arch: Arch::Arm64,
    suite: "bookworm",
    kernel: "6.1.",
    cpu: "cortex-a57",
    cpus: 1,
    pmu: PMU_32,
    tags: &[],
    has_perf: false,
};

const X86_64: Row =
    Row { arch: Arch::X86_64, cpu: "max", pmu: None, tags: &["x86_64", "no-pmu"], ..ARM64 };

/// All guests. The newest kernel is that of the backports to the stable release.
pub(crate) const ROWS: [Row; 9] = [
    Row { name: "arm64-6.1", tags: &["arm64", "exact", "32-bit", "6.1"], has_perf: true, ..ARM64 },
    Row {
        name: "arm64-6.12",
        suite: "trixie",
        kernel: "6.12.",
        tags: &["arm64", "exact", "32-bit", "6.12"],
        ..ARM64
    },
    Row {
        name: "arm64-newest",
        suite: "trixie-backports",
        kernel: "",
        tags: &["arm64", "exact", "32-bit", "newest"],
        ..ARM64
    },
    Row {
        name: "arm64-64bit",
        suite: "trixie",
        kernel: "6.12.",
        // The emulation of pointer authentication's own cipher is slow. The kernel takes SVE from a program now and
        // then, and the first instruction that wants it back is counted twice.
        cpu: "max,pauth-impdef=on,sve=off,sme=off",
        pmu: PMU_64,
        tags: &["arm64", "exact", "64-bit", "6.12"],
        ..ARM64
    },
    Row { name: "arm64-2cpus", cpus: 2, tags: &["arm64", "2-cpus", "6.1"], ..ARM64 },
    Row {
        name: "arm64-no-pmu",
        cpu: "cortex-a57,pmu=off",
        pmu: None,
        tags: &["arm64", "no-pmu", "6.1"],
        ..ARM64
    },
    Row { name: "x86_64-6.1", tags: &["x86_64", "no-pmu", "6.1"], ..X86_64 },
    Row {
        name: "x86_64-6.12",
        suite: "trixie",
        kernel: "6.12.",
        tags: &["x86_64", "no-pmu", "6.12"],
        ..X86_64
    },
    Row {
        name: "x86_64-newest",
        suite: "trixie-backports",
        kernel: "",
        tags: &["x86_64", "no-pmu", "newest"],
        ..X86_64
    },
];

impl Row {
    /// Whether `word` names it: by its name, or by a tag.
    pub(crate) fn is_called(&self, word: &str) -> bool {
        self.name == word || self.tags.contains(&word)
    }

    /// Whether its counts of instructions are exact: CPUs of one guest leak into each other's.
    pub(crate) fn is_exact(&self) -> bool {
        self.pmu.is_some() && self.cpus == 1
    }
}

/// The rows that `word` names.
pub(crate) fn called(word: &str) -> Result<Vec<&'static Row>, String> {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| row.is_called(word)).collect();
    if !rows.is_empty() {
        return Ok(rows);
    }
    let mut words: Vec<&str> = ROWS.iter().flat_map(|row| row.tags).copied().collect();
    words.sort_unstable();
    words.dedup();
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    Err(format!(
        "no guest is called '{word}'; there are {}, and {}",
        words.join(", "),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which rows a tag and a name stand for, and that another word is refused with those that there are.
    #[test]
    fn words_name_rows() {
        let names =
            |word| called(word).map(|rows| rows.iter().map(|row| row.name).collect::<Vec<_>>());
        let exact = ["arm64-6.1", "arm64-6.12", "arm64-newest", "arm64-64bit"];
        assert_eq!(names("exact").unwrap(), exact);
        assert_eq!(names("arm64-2cpus").unwrap(), ["arm64-2cpus"]);
        assert_eq!(names("x86_64").unwrap().len(), 3);
        assert!(names("riscv").unwrap_err().contains("'riscv'; there are 2-cpus, 32-bit, "));
    }

    /// Check that the rows tagged exact are those that are.
    #[test]
    fn exact_rows_are_exact() {
        for row in &ROWS {
            assert_eq!(row.is_exact(), row.is_called("exact"), "{}", row.name);
        }
    }
}
