//! The command line of `cargo xtask vm`.

use super::rows::{self, ROWS, Row};

pub(crate) const USAGE: &str = "\
usage: cargo xtask vm [OPTION…] [GUEST…] [-- COMMAND…]

Runs the tests in guests, or a command instead. GUEST is the name or a tag of a guest, such as arm64-6.12 or exact;
without any, all guests. COMMAND may be `pfmon` or any other program of the workspace or of busybox.

--only PATTERN  only tests whose names match this extended regular expression
--limit SECONDS a guest that has not ended by then is killed (default 1500)
--install       install what is missing on this machine by apt-get (root)
--list          list guests and test files, and run nothing

Folders: PERFMON_VM_CACHE has what is fetched and built (default ~/.cache/perfmon-vm); delete it to have newer kernels.
A guest that can't be made is skipped, with its reason. Where CI is set, that is a failure, unless
PERFMON_GUESTS=optional.";

/// What was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(super) rows: Vec<&'static Row>,
    pub(super) only: Option<String>,
    pub(super) limit_s: u64,
    pub(super) install: bool,
    pub(super) list: bool,
    pub(super) command: Option<Vec<String>>,
}

impl Options {
    /// Reads what stands behind `vm`.
    pub(crate) fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            rows: Vec::new(),
            only: None,
            limit_s: 1500,
            install: false,
            list: false,
            command: None,
        };
        let mut args = args.iter();
        while let Some(&arg) = args.next() {
            let mut value = || args.next().map(|value| (*value).to_owned());
            match arg {
                "--" => {
                    let words: Vec<String> = args.by_ref().map(|word| (*word).to_owned()).collect();
                    options.command = Some(words).filter(|words| !words.is_empty());
                }
                "--only" => {
                    let pattern = value().ok_or("--only needs a pattern")?;
                    if pattern.contains(['"', '$', '`', '\\']) {
                        return Err("a pattern of --only may not hold \" $ ` or \\".to_owned());
                    }
                    options.only = Some(pattern);
                }
                "--limit" => {
                    let number = value().and_then(|text| text.parse().ok());
                    options.limit_s = number.ok_or("--limit needs a number of seconds")?;
                }
                "--install" => options.install = true,
                "--list" => options.list = true,
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}"));
                }
                word => {
                    for row in rows::called(word)? {
                        if !options.rows.contains(&row) {
                            options.rows.push(row);
                        }
                    }
                }
            }
        }
        if options.rows.is_empty() {
            options.rows = ROWS.iter().collect();
        }
        Ok(options)
    }

    /// Whether not all tests of all guests run.
    pub(super) fn is_part(&self) -> bool {
        self.only.is_some() || self.rows.len() < ROWS.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check what each option and word stands for.
    #[test]
    fn options_are_read() {
        let all = Options::parse(&[]).unwrap();
        assert_eq!((all.rows.len(), all.is_part(), all.limit_s), (ROWS.len(), false, 1500));
        let some = ["64-bit", "--only", "wrap", "arm64-64bit", "--limit", "9", "--install"];
        let some = Options::parse(&some).unwrap();
        assert_eq!((some.rows.len(), some.rows[0].name), (1, "arm64-64bit"));
        assert_eq!((some.only.as_deref(), some.limit_s, some.install), (Some("wrap"), 9, true));
        assert!(some.is_part());
        let command =
            Options::parse(&["x86_64-6.1", "--", "uname", "-r"]).unwrap().command.unwrap();
        assert_eq!(command, ["uname", "-r"]);
    }

    /// Check that what is wrong is named.
    #[test]
    fn wrong_words_are_refused() {
        let refused = |args: &[&str]| Options::parse(args).unwrap_err();
        assert_eq!(refused(&["--fast"]), "unknown option --fast");
        assert!(refused(&["sparc"]).starts_with("no guest is called 'sparc'"));
        assert_eq!(refused(&["--limit", "soon"]), "--limit needs a number of seconds");
        assert_eq!(refused(&["--only"]), "--only needs a pattern");
        assert_eq!(
            refused(&["--only", "$(reboot)"]),
            "a pattern of --only may not hold \" $ ` or \\"
        );
    }
}
