use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::finding::Finding;
use crate::manifest::Manifest;

/// The text files of a workspace, by path from its root, and what they parse to.
#[derive(Default)]
pub(crate) struct Tree {
    texts: BTreeMap<String, String>,
    others: Vec<String>,
    sources: BTreeMap<String, syn::File>,
    manifests: BTreeMap<String, Manifest>,
    broken: Vec<Finding>,
}

impl Tree {
    /// Reads what git tracks below `root`, and what it would track: all but the ignored files.
    pub(crate) fn load(root: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        let mut others = Vec::new();
        for path in tracked(root)? {
            match std::fs::read(root.join(&path)).map(String::from_utf8) {
                Ok(Ok(text)) => files.push((path, text)),
                Ok(Err(_not_text)) => others.push(path),
                // Deleted, but not yet for git.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // A link to a directory, or a submodule.
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => others.push(path),
                Err(error) => return Err(format!("cannot read {path}: {error}")),
            }
        }
        Ok(Self { others, ..Self::new(files) })
    }

    fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.parse(&path, &text);
            tree.texts.insert(path, text);
        }
        tree
    }

    fn parse(&mut self, path: &str, text: &str) {
        if path.ends_with(".rs") {
            match syn::parse_file(text) {
                Ok(file) => _ = self.sources.insert(path.to_owned(), file),
                Err(error) => {
                    let line = error.span().start().line;
                    self.broken.push(Finding::new(path, line, format!("does not parse: {error}")));
                }
            }
        } else if path == "Cargo.toml" || path.ends_with("/Cargo.toml") {
            match Manifest::parse(text) {
                Ok(manifest) => _ = self.manifests.insert(path.to_owned(), manifest),
                Err(what) => self.broken.push(Finding::new(path, 1, what)),
            }
        }
    }

    /// How many text files there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The text files with their paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// The Rust files that parse.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &syn::File)> {
        self.sources.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The manifests that parse.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&str, &Manifest)> {
        self.manifests.iter().map(|(path, manifest)| (path.as_str(), manifest))
    }

    /// What does not parse.
    pub(crate) fn broken(&self) -> &[Finding] {
        &self.broken
    }

    /// Whether a file or a directory has this path.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let is_or_is_in = |file: &String| {
            file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.is_empty() || self.texts.keys().chain(&self.others).any(is_or_is_in)
    }
}

/// The workspace crate at `crates/NAME/…` that a path lies in.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once('/').map(|(name, _)| name)
}

/// Whether a path is tests and nothing else.
pub(crate) fn is_tests(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"))
}

/// What git tracks below `root`, and what it would track.
pub(crate) fn tracked(root: &Path) -> Result<Vec<String>, String> {
    // The checkout may belong to another user; we only list it.
    let safe = format!("safe.directory={}", root.display());
    let output = Command::new("git")
        .current_dir(root)
        .args(["-c", &safe, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .map_err(|error| format!("cannot run git to list the files: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git cannot list the files of {}: {}", root.display(), why.trim_end()));
    }
    let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
impl Tree {
    /// A tree of these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self::new(files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a file that does not parse is a finding with its line, and not skipped.
    #[test]
    fn broken_files_are_found() {
        let tree = Tree::of(&[("a.rs", "fn a() {}\nfn ("), ("b/Cargo.toml", "[package\n")]);
        let found: Vec<String> = tree.broken().iter().map(ToString::to_string).collect();
        assert!(found[0].starts_with("a.rs:2: does not parse: "), "{found:?}");
        assert!(found[1].starts_with("b/Cargo.toml:1: "), "{found:?}");
    }

    /// Check that files and the directories above them are there, and that half a name is not.
    #[test]
    fn contains_files_and_directories() {
        let tree = Tree::of(&[("docs/notes/one.md", "")]);
        assert!(tree.contains("docs/notes/one.md") && tree.contains("docs/notes/"));
        assert!(tree.contains("docs") && tree.contains(""));
        assert!(!tree.contains("docs/no") && !tree.contains("docs/notes/one"));
    }
}
