//! Which files are programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::run::told;

/// Where programs lie, from the workspace's root. Files in directories below are parts of them.
const DIRECTORIES: [&str; 3] = ["bpf/programs", "bpf/examples", "bpf/tests"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    C,
}

/// A file that becomes an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// Where compilers run; debug information names files from here.
    pub(super) base: PathBuf,
    /// From there.
    pub(super) path: String,
    pub(super) name: String,
    pub(super) language: Language,
}

impl Source {
    fn new(base: &Path, path: &str) -> Option<Self> {
        let file = path.rsplit('/').next().unwrap_or(path);
        let (name, language) = match file.strip_suffix(".rs") {
            Some(name) => (name, Language::Rust),
            None => {
                let name = file.strip_suffix(".c")?;
                (name.strip_suffix(".bpf").unwrap_or(name), Language::C)
            }
        };
        if name.is_empty() {
            return None;
        }
        let (base, path, name) = (base.to_owned(), path.to_owned(), name.to_owned());
        Some(Self { base, path, name, language })
    }

    /// The object's file name.
    pub(super) fn object(&self) -> String {
        format!("{}.bpf.o", self.name)
    }
}

/// The programs of the tree.
pub(super) fn find(root: &Path) -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    for directory in DIRECTORIES {
        let place = root.join(directory);
        if !place.exists() {
            continue;
        }
        let entries = std::fs::read_dir(&place).map_err(|error| told("list", &place, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| told("list", &place, &error))?;
            if entry.path().is_file() {
                paths.push(format!("{directory}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    among(root, paths)
}

/// The programs among `paths`, by the names of their objects.
fn among(root: &Path, paths: Vec<String>) -> Result<Vec<Source>, String> {
    let mut found: BTreeMap<String, Source> = BTreeMap::new();
    for path in paths {
        let is_program = path.ends_with(".rs") || path.ends_with(".bpf.c");
        let Some(source) = Source::new(root, &path).filter(|_| is_program) else { continue };
        if let Some(other) = found.get(&source.name) {
            return Err(format!(
                "{} and {path} would both become {}: rename one",
                other.path,
                source.object()
            ));
        }
        found.insert(source.name.clone(), source);
    }
    Ok(found.into_values().collect())
}

/// A program by its file, wherever it lies; one of the tree is the same as when all are built.
pub(super) fn one(root: &Path, file: &Path) -> Result<Source, String> {
    let real = file.canonicalize().map_err(|error| told("find", file, &error))?;
    let base = if real.starts_with(root) { root } else { real.parent().unwrap_or(root) };
    let path = real.strip_prefix(base).ok().and_then(Path::to_str);
    path.and_then(|path| Source::new(base, path))
        .ok_or_else(|| format!("{} is no program: its name must end in .rs or .c", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &[&str]) -> Result<Vec<String>, String> {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let sources = among(Path::new("/tree"), paths)?;
        Ok(sources
            .iter()
            .map(|it| format!("{:?} {} {}", it.language, it.path, it.object()))
            .collect())
    }

    /// Check that programs are found by their endings, sorted by name, and other files are left alone.
    #[test]
    fn programs_are_found() {
        let paths = [
            "bpf/tests/b.bpf.c",
            "bpf/programs/c.rs",
            "bpf/examples/a.rs",
            "bpf/tests/d.c",
            "bpf/tests/e.h",
        ];
        let expected = [
            "Rust bpf/examples/a.rs a.bpf.o",
            "C bpf/tests/b.bpf.c b.bpf.o",
            "Rust bpf/programs/c.rs c.bpf.o",
        ];
        assert_eq!(found(&paths).unwrap(), expected);
    }

    /// Check that two sources of one object are refused by name.
    #[test]
    fn names_are_unique() {
        let twice = found(&["bpf/programs/a.rs", "bpf/examples/a.bpf.c"]).unwrap_err();
        let expected =
            "bpf/programs/a.rs and bpf/examples/a.bpf.c would both become a.bpf.o: rename one";
        assert_eq!(twice, expected);
    }

    /// Check that directories that are missing are no error, and that those below are not searched.
    #[test]
    fn missing_directories_are_fine() {
        let scratch = super::super::run::Scratch::new("xtask-sources").unwrap();
        assert_eq!(find(scratch.path()).unwrap(), []);
        std::fs::create_dir_all(scratch.path().join("bpf/tests/part")).unwrap();
        for file in ["bpf/tests/a.rs", "bpf/tests/part/b.rs"] {
            std::fs::write(scratch.path().join(file), "").unwrap();
        }
        let found = find(scratch.path()).unwrap();
        assert_eq!(found.iter().map(Source::object).collect::<Vec<_>>(), ["a.bpf.o"]);
    }

    /// Check that a file elsewhere is built where it lies, and that one with another ending is refused.
    #[test]
    fn one_file_is_found() {
        let scratch = super::super::run::Scratch::new("xtask-one").unwrap();
        let at = |name: &str| scratch.path().join(name);
        for name in ["my-own.rs", "b.txt"] {
            std::fs::write(at(name), "").unwrap();
        }
        let source = one(Path::new("/tree"), &at("my-own.rs")).unwrap();
        assert_eq!((source.path.as_str(), source.object().as_str()), ("my-own.rs", "my-own.bpf.o"));
        assert_eq!(source.base, scratch.path().canonicalize().unwrap());
        let root = source.base.parent().unwrap();
        let inside = one(root, &at("my-own.rs")).unwrap();
        assert_eq!((inside.base.as_path(), inside.name.as_str()), (root, "my-own"));
        assert!(inside.path.ends_with("/my-own.rs"));
        let refused = |name: &str| one(root, &at(name)).unwrap_err();
        assert!(refused("b.txt").ends_with("its name must end in .rs or .c"));
        assert!(refused("none.rs").starts_with("cannot find "));
    }
}
