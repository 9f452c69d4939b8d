use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};

use crate::args::Stat;
use crate::exit::Failure;

/// Where results go.
pub(crate) struct Sink {
    name: String,
    to: Box<dyn Write>,
    terminal: bool,
    written: bool,
    /// What can't be written there goes to standard error.
    precious: bool,
}

impl Sink {
    /// Opens what the options name, before anything is measured.
    pub(crate) fn open(args: &Stat) -> Result<Self, Failure> {
        let file = |name: String, file: File| {
            let terminal = file.is_terminal();
            Self { name, to: Box::new(file), terminal, written: false, precious: true }
        };
        if let Some(path) = &args.output {
            let name = path.display().to_string();
            return match File::create(path) {
                Ok(created) => Ok(file(name, created)),
                Err(error) => Err(Failure::new(format!("can't write results to {name}: {error}"))),
            };
        }
        if let Some(fd) = args.fd {
            let name = format!("descriptor {fd}");
            return match perfmon::duplicate(fd) {
                Ok(copy) => Ok(file(name, copy.into())),
                Err(errno) => Err(Failure::new(format!("can't write results to {name}: {errno}"))),
            };
        }
        let stderr = std::io::stderr();
        let terminal = stderr.is_terminal();
        Ok(Self { terminal, precious: true, ..Self::to("standard error", stderr) })
    }

    /// Standard output, for what can be had again by asking again.
    pub(crate) fn stdout() -> Self {
        let stdout = std::io::stdout();
        let terminal = stdout.is_terminal();
        Self { terminal, ..Self::to("standard output", stdout) }
    }

    fn to(name: &str, to: impl Write + 'static) -> Self {
        let name = name.to_owned();
        Self { name, to: Box::new(to), terminal: false, written: false, precious: false }
    }

    /// Writes `text` at once. A reader that has gone is no error. What was measured and a file does not take
    /// goes to standard error, so that it is not lost.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.written = true;
        match self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                if self.precious {
                    let _ = std::io::stderr().write_all(text.as_bytes());
                }
                Err(Failure::new(format!("can't write results to {}: {error}", self.name)))
            }
            _ => Ok(()),
        }
    }

    /// Whether nothing was written yet.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.written
    }

    /// Whether to use colour: on a terminal, unless the user does not want any.
    pub(crate) fn colour(&self) -> bool {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        self.terminal && !unwanted && !dumb
    }
}
