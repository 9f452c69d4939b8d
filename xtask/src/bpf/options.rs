//! The command line of `cargo xtask bpf`.

use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: cargo xtask bpf [--install] [--check]
       cargo xtask bpf [--install] FILE -o OUT

Builds the eBPF programs of bpf/ into bpf/objects, or FILE (.rs or .c), wherever it lies, into OUT.

--check    compare the objects of bpf/objects with their sources; made by other compilers, they are replaced
--install  install what is missing on this machine by apt-get (root)

PERFMON_BPF_RUSTC is the Rust compiler (default /usr/bin/rustc, Debian's rustc-web), PERFMON_BPF_LLVM the folder
of LLVM's programs, clang among them (default /usr/lib/llvm-22/bin).
Without the compilers --check is skipped; where CI is set, that is a failure.";

/// What was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(super) task: Task,
    pub(super) install: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Builds what the tree has.
    All,
    /// Compares what the tree has.
    Check,
    /// Builds one file.
    One { source: PathBuf, object: PathBuf },
}

impl Options {
    /// Reads what stands behind `bpf`.
    pub(crate) fn parse(args: &[&str]) -> Result<Self, String> {
        let (mut install, mut check) = (false, false);
        let (mut source, mut object) = (None, None);
        let mut args = args.iter();
        while let Some(&arg) = args.next() {
            match arg {
                "--install" => install = true,
                "--check" => check = true,
                "-o" if object.is_none() => {
                    object = Some(args.next().map(PathBuf::from).ok_or("-o needs a file")?);
                }
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}, or given twice"));
                }
                file if source.is_none() => source = Some(PathBuf::from(file)),
                file => return Err(format!("one FILE at a time, and {file} is the second")),
            }
        }
        let task = match (source, object) {
            (None, None) if check => Task::Check,
            (None, None) => Task::All,
            (Some(_), Some(_)) if check => {
                return Err("--check is for the objects of the tree, not for FILE".to_owned());
            }
            (Some(source), Some(object)) => Task::One { source, object },
            (Some(source), None) => {
                return Err(format!("where to? Add -o OUT behind {}", source.display()));
            }
            (None, Some(_)) => return Err("-o OUT needs a FILE".to_owned()),
        };
        Ok(Self { task, install })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check what each option stands for.
    #[test]
    fn options_are_read() {
        let read = |args: &[&str]| Options::parse(args).unwrap();
        assert_eq!(read(&[]), Options { task: Task::All, install: false });
        assert_eq!(read(&["--check", "--install"]), Options { task: Task::Check, install: true });
        let one = Task::One { source: "a.rs".into(), object: "b.o".into() };
        assert_eq!(read(&["-o", "b.o", "a.rs"]), Options { task: one, install: false });
    }

    /// Check that what does not fit together is refused with what would.
    #[test]
    fn wrong_options_are_refused() {
        let refused = |args: &[&str]| Options::parse(args).unwrap_err();
        assert_eq!(refused(&["a.rs"]), "where to? Add -o OUT behind a.rs");
        assert_eq!(refused(&["-o", "b.o"]), "-o OUT needs a FILE");
        assert_eq!(refused(&["a.rs", "-o"]), "-o needs a file");
        assert_eq!(refused(&["--fast"]), "unknown option --fast, or given twice");
        assert_eq!(refused(&["a.rs", "b.rs"]), "one FILE at a time, and b.rs is the second");
        assert!(refused(&["--check", "a.rs", "-o", "b.o"]).starts_with("--check is for"));
    }
}
