use std::fmt;

use perfmon_sys::Errno;

/// A refusal by the verifier, with what it said.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The program, or the object's type information.
    pub what: String,
    /// The kernel's errno.
    pub errno: Errno,
    /// How many instructions the program has.
    pub instructions: usize,
    /// The verifier's log.
    pub log: String,
    /// The log was longer than the largest buffer.
    pub log_cut: bool,
}

const CONTEXT_LINES: usize = 8;

impl Refusal {
    /// The line of the last instruction that the verifier looked at: `8: (79) r1 = …`.
    fn last_instruction(lines: &[&str]) -> Option<usize> {
        let is_instruction =
            |line: &&str| line.split_once(": (").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        lines.iter().rposition(is_instruction)
    }

    /// The verifier's verdict: what follows that instruction (newer kernels add advice after it); without
    /// instructions, the last line.
    pub fn verdict(&self) -> Option<&str> {
        let noise = |line: &&&str| {
            line.trim().is_empty()
                || line.starts_with("processed ")
                || line.starts_with("verification time")
                || line.starts_with("stack depth")
                || line.starts_with("; ")
                || line.starts_with(|c: char| c.is_ascii_digit())
        };
        let lines: Vec<&str> = self.log.lines().collect();
        let verdict = match Self::last_instruction(&lines) {
            Some(last) => lines.get(last + 1..)?.iter().find(|line| !noise(line)),
            None => lines.iter().rev().find(|line| !noise(line)),
        };
        verdict.map(|line| line.trim())
    }

    /// The source line that the refused instruction belongs to.
    pub fn source(&self) -> Option<&str> {
        let line = self.log.lines().rev().find_map(|line| line.strip_prefix("; "))?;
        Some(line.trim()).filter(|line| !line.is_empty())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, errno, instructions, .. } = self;
        let Some(verdict) = self.verdict() else {
            return write!(f, "the kernel refuses {what}: {errno}{}", without_log(*errno));
        };
        write!(f, "the kernel refuses {what}: {verdict}")?;
        if let Some(source) = self.source() {
            write!(f, "\n  source: {source}")?;
        }
        write!(f, "\n  error: {errno}; {instructions} instructions")?;
        let lines: Vec<&str> = self.log.lines().collect();
        let last = Self::last_instruction(&lines);
        let end = last.map_or(lines.len(), |last| (last + 2).min(lines.len()));
        let cut = if self.log_cut { ", cut" } else { "" };
        write!(f, "\n  from its log ({} lines{cut}):", lines.len())?;
        let shown = lines.get(end.saturating_sub(CONTEXT_LINES)..end).unwrap_or_default();
        shown.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Why the kernel refuses a program without looking at it.
fn without_log(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM => {
            "; run as root, or with CAP_BPF and CAP_PERFMON (`pfmon doctor` says what is missing)"
        }
        Errno::INVAL => "; this kernel may not know this kind of program",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the verdict is found before and after the advice that newer kernels add, and the source with it.
    #[test]
    fn verdicts_are_found() {
        let log = "0: R1=ctx() R10=fp0\n; let x = *p; @ bad.rs:12\n8: (79) r1 = *(u64 *)(r1 +0)\n\
                   R1 invalid mem access 'scalar'\nprocessed 9 insns (limit 1000000)\n";
        let mut refusal = Refusal {
            what: "program p".into(),
            errno: Errno::ACCESS,
            instructions: 9,
            log: log.into(),
            log_cut: false,
        };
        assert_eq!(refusal.verdict(), Some("R1 invalid mem access 'scalar'"));
        assert_eq!(refusal.source(), Some("let x = *p; @ bad.rs:12"));
        let text = refusal.to_string();
        assert!(text.starts_with("the kernel refuses program p: R1 invalid mem access 'scalar'\n"));
        assert_eq!(text.lines().count(), 8);
        refusal.log = format!("{log}\nAdvice: check the pointer first\n");
        assert_eq!(refusal.verdict(), Some("R1 invalid mem access 'scalar'"));
        refusal.log.clear();
        assert_eq!(refusal.verdict(), None);
    }
}
