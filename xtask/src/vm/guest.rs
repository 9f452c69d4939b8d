//! Runs one guest under QEMU.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::cache::Kernel;
use super::rows::{Arch, Row};
use super::run::{Scratch, told};

/// A guest of whatever row has this much.
const MEMORY_MIB: u32 = 1536;
/// How often to look whether QEMU has ended.
const POLL: Duration = Duration::from_millis(50);

/// What came out of a guest.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) results: String,
    /// What its kernel printed.
    pub(super) console: String,
    pub(super) took: Duration,
    /// Why it did not come to its own end.
    pub(super) trouble: Option<String>,
}

/// The device through which results leave, as the guest sees it.
pub(super) fn results_device(arch: Arch) -> &'static str {
    match arch {
        // On the PCI bus: the machine's own port is the console, of another kind.
        Arch::Arm64 => "/dev/ttyS0",
        Arch::X86_64 => "/dev/ttyS1",
    }
}

/// Boots `row` with `initramfs`, and waits until it ends, for `limit` at most.
pub(super) fn run(
    row: &Row,
    kernel: &Kernel,
    initramfs: &Path,
    scratch: &Scratch,
    limit: Duration,
) -> Result<Output, String> {
    let file = |name: &str| scratch.path().join(name);
    let make =
        |name: &str| File::create(file(name)).map_err(|error| told("make", &file(name), &error));
    make("console")?;
    make("results")?;
    let mut command = machine(row, scratch.path());
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(initramfs);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(make("qemu")?);

    let begin = Instant::now();
    let mut child =
        command.spawn().map_err(|error| format!("cannot run {}: {error}", row.arch.qemu()))?;
    let status = wait(&mut child, limit)
        .map_err(|error| format!("cannot wait for {}: {error}", row.arch.qemu()))?;
    let text = |name: &str| {
        let bytes = std::fs::read(file(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    };
    let trouble = match status {
        None => Some(format!("it did not end within {} s", limit.as_secs())),
        Some(status) if status.success() => None,
        Some(status) => {
            Some(format!("{} failed ({status}): {}", row.arch.qemu(), text("qemu").trim()))
        }
    };
    let (results, console) = (text("results"), text("console"));
    Ok(Output { results, console, took: begin.elapsed(), trouble })
}

/// The emulated machine of `row`, whose ports write to files in `directory`.
fn machine(row: &Row, directory: &Path) -> Command {
    let mut command = Command::new(row.arch.qemu());
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-accel", "tcg"]);
    command.args(["-display", "none", "-monitor", "none", "-nic", "none"]);
    command.args(["-cpu", row.cpu, "-smp", &row.cpus.to_string(), "-m", &MEMORY_MIB.to_string()]);
    for name in ["console", "results"] {
        let path = directory.join(name);
        command.args(["-chardev", &format!("file,id={name},path={}", path.display())]);
    }
    command.args(["-serial", "chardev:console"]);
    let console = match row.arch {
        Arch::Arm64 => {
            command.args(["-M", "virt", "-device", "pci-serial,chardev=results"]);
            // An instruction takes 2 ns of the guest's time: only so are there instructions to be counted. A
            // guest that idles jumps ahead.
            command.args(["-icount", "shift=1,sleep=off"]);
            "ttyAMA0"
        }
        Arch::X86_64 => {
            command.args(["-M", "pc", "-serial", "chardev:results"]);
            "ttyS0"
        }
    };
    // Addresses that differ from run to run make programs execute other instructions.
    command.args(["-append", &format!("console={console} quiet panic=-1 norandmaps")]);
    command
}

/// How `child` ended; `None` if it had to be killed after `limit`.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}
