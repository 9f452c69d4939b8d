//! Turns the PMU descriptions of `pmu/` into tables that need no parsing at run time.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the crate documents and uses it whole"
)]
#[path = "src/description/mod.rs"]
mod description;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pmu");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=src/description");

    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let text = fs::read_to_string(&file)?;
        let name =
            file.file_name().and_then(|name| name.to_str()).ok_or("a file without a name")?;
        let (identity, tables) =
            description::parse(&text, &format!("pmu/{name}")).map_err(|error| error.to_string())?;
        let stem = identity.name.clone();
        fs::write(out.join(format!("{stem}.identity")), postcard::to_allocvec(&identity)?)?;
        fs::write(out.join(format!("{stem}.tables")), postcard::to_allocvec(&tables)?)?;
        let include =
            |part: &str| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{stem}.{part}\"))");
        writeln!(
            list,
            "    BuiltIn {{ file: \"pmu/{name}\", identity: {}, tables: {}, has_events: {} }},",
            include("identity"),
            include("tables"),
            !tables.events.is_empty()
        )?;
    }
    list.push(']');
    fs::write(out.join("descriptions.rs"), list)?;
    Ok(())
}
