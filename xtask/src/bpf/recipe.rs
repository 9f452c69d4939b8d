//! From a source to an object that loaders read.
//!
//! Rust goes through LLVM's own programs, since rustc can't link for eBPF. Paths are cut to what they are from
//! the source's base, and each program runs there, so that objects are the same wherever the tree lies, and still
//! have the source's lines, which the verifier shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::run::{output_of, told};
use super::sources::{Language, Source};
use super::tools::{TARGET, Tools};

/// Atomics with results, and 32-bit registers: since Linux 5.12.
const CPU: &str = "v3";

/// How objects are made.
#[derive(Debug)]
pub(super) struct Recipe<'a> {
    root: &'a Path,
    tools: &'a Tools,
    scratch: &'a Path,
    library: PathBuf,
}

impl<'a> Recipe<'a> {
    /// Compiles the library of Rust programs into `scratch`.
    pub(super) fn new(root: &'a Path, tools: &'a Tools, scratch: &'a Path) -> Result<Self, String> {
        let library = scratch.join("libperfmon_bpf.rlib");
        let recipe = Self { root, tools, scratch, library };
        let mut rustc = recipe.rustc(root, "perfmon_bpf");
        rustc.args(["--crate-type", "rlib", "bpf/perfmon_bpf/lib.rs", "-o"]).arg(&recipe.library);
        output_of(&mut rustc).map_err(|why| format!("bpf/perfmon_bpf/lib.rs: {why}"))?;
        Ok(recipe)
    }

    /// The object of a source.
    pub(super) fn build(&self, source: &Source) -> Result<Vec<u8>, String> {
        let object = self.scratch.join(source.object());
        let made = match source.language {
            Language::Rust => self.rust(source, &object),
            Language::C => self.c(source, &object),
        };
        // DWARF goes, the kernel's type information stays.
        let mut strip = self.llvm("llvm-strip", source);
        strip.arg("--strip-debug").arg(&object);
        made.and_then(|()| output_of(&mut strip))
            .map_err(|why| format!("{}: {why}", source.path))?;
        std::fs::read(&object).map_err(|error| told("read", &object, &error))
    }

    fn rust(&self, source: &Source, object: &Path) -> Result<(), String> {
        let file = |ending: &str| self.scratch.join(format!("{}.{ending}", source.name));
        let (text, code, whole) = (file("ll"), file("bc"), file("opt.bc"));
        let mut library = std::ffi::OsString::from("perfmon_bpf=");
        library.push(&self.library);
        let mut rustc = self.rustc(&source.base, &source.name.replace(['-', '.'], "_"));
        rustc.args(["--crate-type", "lib", "--emit", "llvm-ir", "--extern"]).arg(library);
        output_of(rustc.arg(&source.path).arg("-o").arg(&text))?;
        let ir = std::fs::read_to_string(&text).map_err(|error| told("read", &text, &error))?;
        std::fs::write(&text, without_places_of_core(&ir))
            .map_err(|error| told("write", &text, &error))?;
        output_of(self.llvm("llvm-as", source).arg(&text).arg("-o").arg(&code))?;
        let keep = self.checked_symbols(source, &code)?;
        let mut opt = self.llvm("opt", source);
        opt.arg("-passes=internalize,globaldce,default<O2>");
        opt.arg(format!("-internalize-public-api-list={}", keep.join(",")));
        output_of(opt.arg(&code).arg("-o").arg(&whole))?;
        let mut llc = self.llvm("llc", source);
        llc.args(["-march=bpfel", &format!("-mcpu={CPU}"), "-filetype=obj"]);
        output_of(llc.arg(&whole).arg("-o").arg(object)).map(drop)
    }

    fn c(&self, source: &Source, object: &Path) -> Result<(), String> {
        let mut clang = self.llvm("clang", source);
        clang.args(["-g", "-O2", "-Wall", "-target", "bpf", &format!("-mcpu={CPU}"), "-I"]);
        clang.arg(self.root.join("bpf"));
        for base in [self.root, &source.base] {
            clang.arg(format!("-ffile-prefix-map={}=.", base.display()));
        }
        output_of(clang.args(["-c", &source.path, "-o"]).arg(object)).map(drop)
    }

    /// The names that others see: programs, maps, settings, the licence. What is undefined is refused.
    fn checked_symbols(&self, source: &Source, code: &Path) -> Result<Vec<String>, String> {
        let mut nm = self.llvm("llvm-nm", source);
        nm.args(["--undefined-only", "--demangle", "--format=just-symbols"]).arg(code);
        let undefined = output_of(&mut nm)?;
        if !undefined.trim().is_empty() {
            return Err(format!(
                "it calls what the kernel does not have: {}\n\
                 hint: it must not index, slice, divide by what may be zero, unwrap, nor move large values",
                undefined.lines().collect::<Vec<_>>().join(", ")
            ));
        }
        let mut nm = self.llvm("llvm-nm", source);
        nm.args(["--defined-only", "--extern-only", "--format=just-symbols"]).arg(code);
        let keep = plain_names(&output_of(&mut nm)?);
        if keep.is_empty() {
            let hint = "a program is a function with #[unsafe(no_mangle)] and a section";
            return Err(format!("it has no program\nhint: {hint}"));
        }
        Ok(keep)
    }

    fn rustc(&self, base: &Path, crate_name: &str) -> Command {
        let mut rustc = self.tools.rustc();
        run_in(base, &mut rustc);
        rustc.args(["--edition", "2024", "--crate-name", crate_name, "--target", TARGET]);
        for option in [
            "panic=abort",
            "opt-level=3",
            "codegen-units=1",
            "debuginfo=2",
            "symbol-mangling-version=v0",
            &format!("target-cpu={CPU}"),
        ] {
            rustc.args(["-C", option]);
        }
        for base in [self.root, base] {
            rustc.arg(format!("--remap-path-prefix={}=.", base.display()));
        }
        rustc
    }

    fn llvm(&self, name: &str, source: &Source) -> Command {
        let mut command = self.tools.llvm(name);
        run_in(&source.base, &mut command);
        command
    }
}

/// Runs a compiler in `base`; clang trusts `PWD` more than the system, and it may be a link.
fn run_in(base: &Path, command: &mut Command) {
    command.current_dir(base).env("PWD", base);
}

/// The names that the source has given, not the compiler.
fn plain_names(symbols: &str) -> Vec<String> {
    symbols.lines().filter(|name| !name.starts_with("_R")).map(str::to_owned).collect()
}

/// Takes from LLVM's text where the sources of `core` would be: where they are installed, lines of them would get
/// into the object. rustc remaps no paths that are in a library already.
fn without_places_of_core(ir: &str) -> String {
    // What is ours is below ".", so a file with an absolute path is not.
    const STARTS: [(&str, &str); 2] = [("filename: \"/", "/library/"), ("directory: \"/", "")];
    let mut text = String::with_capacity(ir.len());
    for line in ir.split_inclusive('\n') {
        let mut line = line.to_owned();
        let is_file = line.contains(" = !DIFile(");
        for (start, end) in STARTS.into_iter().filter(|_| is_file) {
            let Some(from) = line.find(start).map(|at| at + start.len()) else { continue };
            let place = line[from..].split('"').next().unwrap_or_default();
            let cut = if end.is_empty() { Some(place.len()) } else { place.find(end) };
            if let Some(cut) = cut {
                line.replace_range(from..from + cut, "rust");
            }
        }
        text += &line;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that sources of `core` lose their place, in both forms, and that other files keep it.
    #[test]
    fn core_has_no_place() {
        let line = |file: &str, directory: &str| {
            format!(
                "!7 = !DIFile(filename: \"{file}\", directory: \"{directory}\", checksum: \"0\")\n"
            )
        };
        let [file, cut] = ["library/core/src/ptr.rs", "/rust/library/core/src/ptr.rs"];
        for place in ["/usr/src/rustc-1.96.0", "/opt/rust"] {
            assert_eq!(without_places_of_core(&line(file, place)), line(file, "/rust"));
            assert_eq!(
                without_places_of_core(&line(&format!("{place}/{file}"), "")),
                line(cut, "")
            );
        }
        for (file, directory) in [("./bpf/tests/lab.rs", "."), (file, ""), ("/tmp/a.rs", ".")] {
            assert_eq!(without_places_of_core(&line(file, directory)), line(file, directory));
        }
        let other = "!8 = !DIBasicType(name: \"filename: \"/x/library/y\")\nlast";
        assert_eq!(without_places_of_core(other), other);
    }

    /// Check that mangled names are not kept.
    #[test]
    fn plain_names_are_kept() {
        let symbols = "LICENSE\n_RNvCs_3lab5three\ncount\n";
        assert_eq!(plain_names(symbols), ["LICENSE", "count"]);
    }
}
