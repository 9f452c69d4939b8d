//! `pfmon pmu`: PMU descriptions, and the PMUs that the kernel shows.

mod details;
pub(crate) mod results;

use std::process::ExitCode;

use perfmon::{Names, PmuDescription};

use crate::args::Pmu;
use crate::cmd::names;
use crate::cmd::sysfs::{self, SysfsPmu};
use crate::exit::Failure;
use crate::output::{self, Sink};
use results::{DescriptionRow, KernelPmuRow, PmuResult, SCHEMA};

/// Shows what `args` ask for.
pub(crate) fn run(args: &Pmu) -> Result<ExitCode, Failure> {
    let names = names::names(&args.common)?;
    let pmus = sysfs::pmus(&args.common.sysfs());
    let one = args.name.as_ref().map(|name| find(&names, &pmus, name)).transpose()?;
    let is_wanted = |it: &&PmuDescription| one.is_none_or(|one| std::ptr::eq(*it, one));
    let descriptions: Vec<DescriptionRow> =
        names.descriptions().filter(is_wanted).map(|it| description(&names, &pmus, it)).collect();
    let kernel_pmus: Vec<KernelPmuRow> = pmus
        .iter()
        .map(|pmu| kernel_pmu(&descriptions, pmu))
        .filter(|pmu| one.is_none() || !pmu.descriptions.is_empty())
        .collect();
    let notes = names.problems();
    names::note(notes.iter().cloned());
    let result = PmuResult {
        schema: SCHEMA,
        here: args.common.is_here(),
        cpus: names.cpus().iter().map(ToString::to_string).collect(),
        descriptions,
        kernel_pmus,
        details: one.map(details::of),
        notes,
    };
    output::pmu(&mut Sink::stdout(), args.common.json, &result)?;
    Ok(ExitCode::SUCCESS)
}

/// The description called `name`.
///
/// # Errors
/// There is none; the failure says what may have been meant.
fn find<'n>(
    names: &'n Names,
    pmus: &[SysfsPmu],
    name: &str,
) -> Result<&'n PmuDescription, Failure> {
    if let Some(description) = names.description(name) {
        return Ok(description);
    }
    let mut text = format!("there is no PMU description '{name}'");
    let about: Vec<&str> = names
        .descriptions()
        .filter(|it| pmus.iter().any(|pmu| pmu.name == name && is_about(names, it, pmu)))
        .map(|it| it.identity().name.as_str())
        .collect();
    let near = names.near_descriptions(name);
    if let [_, ..] = about.as_slice() {
        text += &format!("; the kernel's PMU of this name is described by {}", about.join(", "));
    } else if pmus.iter().any(|pmu| pmu.name == name) {
        text += "; the kernel has a PMU of this name, which none describes";
    } else if !near.is_empty() {
        text += &format!("\ndid you mean '{}'?", near.join("' or '"));
    } else {
        text += "; pfmon pmu shows all";
    }
    Err(Failure::new(text))
}

/// Whether `description` is about the PMU `pmu` of the machine.
fn is_about(names: &Names, description: &PmuDescription, pmu: &SysfsPmu) -> bool {
    let identity = description.identity();
    match names.devices_of(description) {
        Some(devices) => devices.contains(&pmu.name.as_str()),
        None if !is_active(names, description) => false,
        // Of registers alone, or of what all machines have.
        None => identity.pmu_type == Some(pmu.pmu_type) || identity.devices.contains(&pmu.name),
    }
}

/// Whether `description` is of this machine. One that names no machine is for whoever asks for it, unless its PMU
/// is one that all machines have.
fn is_active(names: &Names, description: &PmuDescription) -> bool {
    let identity = description.identity();
    match identity.machines.as_slice() {
        [] => identity.pmu_type.is_some(),
        _ => names.cpus().iter().any(|cpu| description.fits(cpu)),
    }
}

fn description(names: &Names, pmus: &[SysfsPmu], it: &PmuDescription) -> DescriptionRow {
    let identity = it.identity();
    let tables = it.tables();
    let devices = pmus.iter().filter(|pmu| is_about(names, it, pmu));
    DescriptionRow {
        name: identity.name.clone(),
        also: identity.also.clone(),
        version: identity.version_text(),
        about: identity.about.clone(),
        active: is_active(names, it),
        devices: devices.map(|pmu| pmu.name.clone()).collect(),
        perf_type: identity.pmu_type,
        events: tables.events.len(),
        pmcs: tables.pmcs.len(),
        pmds: tables.pmds.len(),
        file: it.file().display().to_string(),
        built_in: it.is_built_in(),
    }
}

fn kernel_pmu(descriptions: &[DescriptionRow], pmu: &SysfsPmu) -> KernelPmuRow {
    let about = descriptions.iter().filter(|it| it.devices.contains(&pmu.name));
    KernelPmuRow {
        name: pmu.name.clone(),
        r#type: pmu.pmu_type,
        cpus: pmu.cpus.clone(),
        descriptions: about.map(|it| it.name.clone()).collect(),
    }
}
