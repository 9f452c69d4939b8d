//! `cargo xtask vm`: the tests in emulated machines, with a hardware PMU, without, and on other kernels.
//!
//! QEMU emulates the whole machine, without privilege. What a guest consists of comes from Debian's packages
//! (`cache`), the tests from the workspace (`build`); each runs all its tests in one boot (`image`, `guest`).

mod build;
mod cache;
pub(crate) mod declared;
mod guest;
mod host;
mod image;
mod options;
mod packages;
mod report;
mod rows;
mod run;
mod source;
mod summary;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use build::{Build, NoBuild};
use cache::{Cache, Kernel};
use declared::TestFile;
pub(crate) use options::{Options, USAGE};
use rows::{Arch, Row};
use run::{Scratch, make_directory, write};
use summary::{RowOutcome, Summary};

use crate::tree::Tree;

/// The test file that runs first in each guest: if it fails, the others mean nothing.
const SENTINEL: &str = "vmtest/tests/guest/sentinel.rs";
/// For so long at most a test file runs in a guest, in the guest's time: for what hangs, not for what is slow.
const FILE_LIMIT_S: u32 = 900;

/// Runs what `options` ask for; true if all passed.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let tree = Tree::load(root)?;
    let (files, findings) = declared::find(&tree);
    if let Some(finding) = findings.first() {
        return Err(finding.to_string());
    }
    if !files.iter().any(|file| file.path == SENTINEL) {
        return Err(format!("{SENTINEL} is missing, or has no line of its guests"));
    }
    if options.list {
        summary::list(&files);
        return Ok(true);
    }
    let begin = Instant::now();
    let cache = Cache::open()?;
    let mut grounds: HashMap<Arch, Result<Ground, String>> = HashMap::new();
    for arch in options.rows.iter().map(|row| row.arch) {
        if grounds.contains_key(&arch) {
            continue;
        }
        let ground = match Ground::lay(root, arch, &cache, &files, options) {
            Ok(ground) => Ok(ground),
            Err(NoBuild::Skipped(why)) => Err(why),
            Err(NoBuild::Failed(why)) => return Err(why),
        };
        grounds.insert(arch, ground);
    }
    let mut outcomes = Vec::new();
    let mut jobs = Vec::new();
    for &row in &options.rows {
        let ground = grounds[&row.arch].as_ref().map_err(Clone::clone);
        match ground.and_then(|ground| Job::new(row, ground, &cache, &files)) {
            Ok(job) => jobs.push(job),
            Err(why) => outcomes.push(RowOutcome::skipped(row, why)),
        }
    }
    outcomes.iter().for_each(RowOutcome::tell);
    let built = begin.elapsed();
    outcomes.extend(run_all(&jobs, &cache, options));
    if options.command.is_some() {
        return Ok(outcomes.iter().all(RowOutcome::ran_its_command));
    }
    let summary = Summary {
        files: &files,
        outcomes: &outcomes,
        is_part: options.is_part(),
        only: options.only.as_deref(),
    };
    let is_fine = summary.print();
    eprintln!(
        "xtask: built in {:.0} s, all in {:.0} s",
        built.as_secs_f64(),
        begin.elapsed().as_secs_f64()
    );
    Ok(is_fine)
}

/// What all guests of one architecture share.
#[derive(Debug)]
struct Ground {
    /// The workspace that was built.
    workspace: PathBuf,
    build: Build,
    initramfs: PathBuf,
    /// Keeps the initramfs.
    _scratch: Scratch,
}

impl Ground {
    fn lay(
        root: &Path,
        arch: Arch,
        cache: &Cache,
        files: &[TestFile],
        options: &Options,
    ) -> Result<Self, NoBuild> {
        host::prepare(arch, options.install).map_err(NoBuild::Skipped)?;
        let busybox = cache.busybox(arch).map_err(NoBuild::Skipped)?;
        let workspace = match arch {
            Arch::X86_64 => root.to_path_buf(),
            Arch::Arm64 => source::copy(root, cache).map_err(NoBuild::Failed)?,
        };
        let mut build = build::build(&workspace, arch, cache)?;
        let is_used = |source: &Path| {
            files.iter().any(|file| {
                source == workspace.join(&file.root) && file.rows.iter().any(|row| row.arch == arch)
            })
        };
        build.tests.retain(|test| is_used(&test.source));
        let name = format!("shared-{}", arch.debian());
        let scratch = Scratch::new(cache.directory(), &name).map_err(NoBuild::Failed)?;
        let initramfs = scratch.path().join("initramfs");
        image::make_shared(arch, &build, &workspace, &busybox, &initramfs)
            .map_err(NoBuild::Failed)?;
        Ok(Self { workspace, build, initramfs, _scratch: scratch })
    }
}

/// One guest to be run.
#[derive(Debug)]
struct Job<'a> {
    row: &'static Row,
    ground: &'a Ground,
    kernel: Kernel,
    perf: Option<PathBuf>,
    plan: Vec<(&'a TestFile, PlanLine)>,
}

/// How a guest runs one test file.
#[derive(Debug)]
struct PlanLine {
    binary: PathBuf,
    module: String,
    package: PathBuf,
}

impl<'a> Job<'a> {
    fn new(
        row: &'static Row,
        ground: &'a Ground,
        cache: &Cache,
        files: &'a [TestFile],
    ) -> Result<Self, String> {
        let kernel = cache.kernel(row.arch, row.suite)?;
        let perf = row.has_perf.then(|| cache.perf(row.suite)).transpose()?;
        let mut own: Vec<&TestFile> =
            files.iter().filter(|file| file.rows.contains(&row)).collect();
        own.sort_by_key(|file| file.path != SENTINEL);
        let mut plan = Vec::new();
        for file in own {
            let source = ground.workspace.join(&file.root);
            let test = ground.build.tests.iter().find(|test| test.source == source);
            let test = test.ok_or_else(|| format!("Cargo built no test of {}", file.root))?;
            let line = PlanLine {
                binary: test.path.clone(),
                module: file.module.clone().unwrap_or_else(|| "-".to_owned()),
                package: test.package.clone(),
            };
            plan.push((file, line));
        }
        Ok(Self { row, ground, kernel, perf, plan })
    }

    fn run(&self, cache: &Cache, options: &Options) -> Result<RowOutcome<'a>, String> {
        let scratch = Scratch::new(cache.directory(), self.row.name)?;
        let root = scratch.path().join("root");
        make_directory(&root.join("run"))?;
        write(&root.join("run/environment"), &self.environment(options))?;
        write(&root.join("run/plan"), &plan(options))?;
        let lines = self.plan.iter().enumerate().map(|(number, (_, line))| {
            let PlanLine { binary, module, package } = line;
            format!("{number} {} {module} {}\n", binary.display(), package.display())
        });
        write(&root.join("run/files"), &lines.collect::<String>())?;
        if let Some(perf) = &self.perf {
            for file in run::files_below(perf, &|_| true) {
                let inside = file.strip_prefix(perf).unwrap_or(&file);
                cache::copy(&file, &root.join(inside))?;
            }
        }
        let initramfs = scratch.path().join("initramfs");
        image::make_own(&self.ground.initramfs, &root, &initramfs)?;
        let limit = Duration::from_secs(options.limit_s);
        let output = guest::run(self.row, &self.kernel, &initramfs, &scratch, limit)?;
        let files = self.plan.iter().map(|(file, _)| *file).collect();
        Ok(RowOutcome::ran(self.row, self.kernel.package.clone(), files, output))
    }

    /// What the tests are told of their guest.
    fn environment(&self, options: &Options) -> String {
        let row = self.row;
        let counters = row.pmu.map_or(0, |pmu| pmu.general_counters);
        let bits = row.pmu.map_or(0, |pmu| pmu.counter_bits);
        let mut directories: Vec<_> =
            self.ground.build.programs.iter().filter_map(|program| program.parent()).collect();
        directories.dedup();
        let directories: Vec<_> =
            directories.iter().map(|directory| directory.to_string_lossy()).collect();
        let variables = [
            ("RESULTS", guest::results_device(row.arch).to_owned()),
            ("PATH", format!("{}:$PATH", directories.join(":"))),
            ("ONLY", options.only.clone().unwrap_or_default()),
            ("LIMIT_S", FILE_LIMIT_S.to_string()),
            ("PERFMON_GUEST", row.name.to_owned()),
            ("PERFMON_GUEST_KERNEL", row.kernel.to_owned()),
            ("PERFMON_GUEST_CPUS", row.cpus.to_string()),
            ("PERFMON_GUEST_COUNTERS", counters.to_string()),
            ("PERFMON_GUEST_COUNTER_BITS", bits.to_string()),
            ("PERFMON_GUEST_EXACT", u8::from(row.is_exact()).to_string()),
        ];
        let lines = variables.iter().map(|(name, value)| format!("export {name}=\"{value}\"\n"));
        lines.collect()
    }
}

/// What a guest runs.
fn plan(options: &Options) -> String {
    match &options.command {
        None => include_str!("suite.sh").to_owned(),
        Some(words) => {
            let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
            format!("{}\necho \"@@ status $?\"\n", quoted.collect::<Vec<_>>().join(" "))
        }
    }
}

/// Runs guests, as many at a time as there are CPUs, and tells of each as it ends.
fn run_all<'a>(jobs: &[Job<'a>], cache: &Cache, options: &Options) -> Vec<RowOutcome<'a>> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let queue = Mutex::new(jobs.iter());
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.next());
            let Some(job) = next else { break };
            let outcome =
                job.run(cache, options).unwrap_or_else(|why| RowOutcome::skipped(job.row, why));
            outcome.tell();
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes.push(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_default();
    outcomes.sort_by_key(|outcome| jobs.iter().position(|job| job.row == outcome.row));
    outcomes
}
