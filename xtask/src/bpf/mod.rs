//! `cargo xtask bpf`: kernel-side code to objects.
//!
//! The objects are committed, so that nobody needs the compilers to build or test the rest. `--check` makes
//! sure that they are what their sources say.

mod objects;
mod options;
mod recipe;
mod run;
mod sources;
mod tools;

use std::path::Path;

pub(crate) use options::{Options, USAGE};

use objects::{Objects, VERSIONS};
use options::Task;
use recipe::Recipe;
use run::{Scratch, told};
use tools::Tools;

/// Where the objects are, from the workspace's root.
const OBJECTS: &str = "bpf/objects";

/// Does what `options` ask for; false if the committed objects are not what the sources say.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, String> {
    // Compilers see the real path, and it must be cut off what they write.
    let root = &root.canonicalize().map_err(|error| told("find", root, &error))?;
    let tools = match Tools::find(options.install) {
        Ok(tools) => tools,
        Err(why) if options.task == Task::Check && !is_ci() => {
            println!("bpf: skipped: {why}");
            return Ok(true);
        }
        Err(why) => return Err(why),
    };
    let scratch = Scratch::new("perfmon-bpf")?;
    let recipe = Recipe::new(root, &tools, scratch.path())?;
    match &options.task {
        Task::One { source, object } => {
            let bytes = recipe.build(&sources::one(root, source)?)?;
            std::fs::write(object, bytes).map_err(|error| told("write", object, &error))?;
            Ok(true)
        }
        Task::All => {
            let built = build_all(root, &recipe, &tools)?;
            built.put(&root.join(OBJECTS))?;
            println!("bpf: {} objects in {OBJECTS}", built.len());
            Ok(true)
        }
        Task::Check => check(root, &build_all(root, &recipe, &tools)?),
    }
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Builds what the tree has; tells of all that fails.
fn build_all(root: &Path, recipe: &Recipe<'_>, tools: &Tools) -> Result<Objects, String> {
    let mut objects = Objects::new(tools.versions()?);
    let mut failures = Vec::new();
    for source in sources::find(root)? {
        match recipe.build(&source) {
            Ok(bytes) => objects.add(source.object(), bytes),
            Err(why) => failures.push(why),
        }
    }
    if failures.is_empty() { Ok(objects) } else { Err(failures.join("\n\n")) }
}

/// Holds the committed objects against those that were built now.
fn check(root: &Path, built: &Objects) -> Result<bool, String> {
    let directory = root.join(OBJECTS);
    let committed = Objects::read(&directory)?;
    if committed.versions().is_some_and(|versions| Some(versions) != built.versions()) {
        println!(
            "bpf: the compilers are not those of {OBJECTS}/{VERSIONS}, so bytes can't be compared:\n\
             recorded:\n{}here:\n{}the objects built here take the place of the committed ones",
            committed.versions().unwrap_or_default(),
            built.versions().unwrap_or_default()
        );
        built.put(&directory)?;
        return Ok(true);
    }
    let findings = committed.compare(built);
    for finding in &findings {
        println!("{OBJECTS}/{finding}");
    }
    if findings.is_empty() {
        println!("bpf: {} objects, each as its source says", built.len());
    } else {
        println!("bpf: run cargo xtask bpf, and commit {OBJECTS}");
    }
    Ok(findings.is_empty())
}
