//! Objects by name, and what made them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::run::told;

/// The file beside the objects that says which compilers made them.
pub(super) const VERSIONS: &str = "VERSIONS";

/// A directory of objects: those that are committed, or those that were built.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Objects {
    versions: Option<String>,
    bytes: BTreeMap<String, Vec<u8>>,
}

impl Objects {
    /// None yet, to be made by these compilers.
    pub(super) fn new(versions: String) -> Self {
        Self { versions: Some(versions), bytes: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, name: String, bytes: Vec<u8>) {
        self.bytes.insert(name, bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The compilers as text, if they are known.
    pub(super) fn versions(&self) -> Option<&str> {
        self.versions.as_deref()
    }

    /// What `directory` has; nothing, if it is not there.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let mut objects = Self::default();
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(objects),
            Err(error) => return Err(told("list", directory, &error)),
        };
        for entry in entries {
            let path = entry.map_err(|error| told("list", directory, &error))?.path();
            let bytes = std::fs::read(&path).map_err(|error| told("read", &path, &error))?;
            match path.file_name().map(|name| name.to_string_lossy()) {
                Some(name) if name == VERSIONS => {
                    objects.versions = Some(String::from_utf8_lossy(&bytes).into_owned());
                }
                Some(name) => objects.add(name.into_owned(), bytes),
                None => {}
            }
        }
        Ok(objects)
    }

    /// How these differ from those that were built now, one line each, by name.
    pub(super) fn compare(&self, built: &Self) -> Vec<String> {
        let mut findings = Vec::new();
        if self.versions.is_none() {
            findings.push(format!("{VERSIONS}: missing"));
        }
        for (name, bytes) in &built.bytes {
            match self.bytes.get(name) {
                None => findings.push(format!("{name}: missing")),
                Some(own) if own != bytes => {
                    findings.push(format!("{name}: differs from what its source becomes"));
                }
                Some(_) => {}
            }
        }
        let left_over = self.bytes.keys().filter(|name| !built.bytes.contains_key(*name));
        findings.extend(left_over.map(|name| format!("{name}: left over, it has no source")));
        findings.sort();
        findings
    }

    /// Makes `directory` hold these and no others. What is the same already keeps its time.
    pub(super) fn put(&self, directory: &Path) -> Result<(), String> {
        std::fs::create_dir_all(directory).map_err(|error| told("make", directory, &error))?;
        let old = Self::read(directory)?;
        for (name, bytes) in &self.bytes {
            if old.bytes.get(name) != Some(bytes) {
                let path = directory.join(name);
                std::fs::write(&path, bytes).map_err(|error| told("write", &path, &error))?;
            }
        }
        for name in old.bytes.keys().filter(|name| !self.bytes.contains_key(*name)) {
            let path = directory.join(name);
            std::fs::remove_file(&path).map_err(|error| told("remove", &path, &error))?;
        }
        if let Some(versions) = &self.versions
            && old.versions != self.versions
        {
            let path = directory.join(VERSIONS);
            std::fs::write(&path, versions).map_err(|error| told("write", &path, &error))?;
        }
        Ok(())
    }
}

/// The text that says which compilers made objects: a line each, sorted.
pub(super) fn versions_text(named: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> =
        named.iter().map(|(name, version)| format!("{name}: {}\n", version.trim())).collect();
    lines.sort();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::super::run::Scratch;
    use super::*;

    fn objects(versions: Option<&str>, named: &[(&str, &str)]) -> Objects {
        let bytes =
            named.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.as_bytes().to_vec()));
        Objects { versions: versions.map(str::to_owned), bytes: bytes.collect() }
    }

    /// Check that equal objects have no findings, and that one bit is one.
    #[test]
    fn one_byte_differs() {
        let built = objects(Some("1"), &[("a", "xyz"), ("b", "")]);
        assert_eq!(built.compare(&built), [""; 0]);
        let other = objects(Some("1"), &[("a", "xyZ"), ("b", "")]);
        assert_eq!(other.compare(&built), ["a: differs from what its source becomes"]);
    }

    /// Check that what is missing and what is left over is named, in order.
    #[test]
    fn missing_and_left_over_are_found() {
        let built = objects(Some("1"), &[("b", ""), ("c", "")]);
        let committed = objects(None, &[("a", ""), ("c", "")]);
        let expected = ["VERSIONS: missing", "a: left over, it has no source", "b: missing"];
        assert_eq!(committed.compare(&built), expected);
    }

    /// Check that what was put is read, that old objects go, and that equal ones are not written again.
    #[test]
    fn objects_are_put_and_read() {
        let scratch = Scratch::new("xtask-objects").unwrap();
        let directory = scratch.path().join("objects");
        assert_eq!(Objects::read(&directory).unwrap(), Objects::default());
        let first = objects(Some("1"), &[("a", "same"), ("b", "old"), ("c", "gone")]);
        first.put(&directory).unwrap();
        let time = || directory.join("a").metadata().unwrap().modified().unwrap();
        let before = time();
        let second = objects(Some("2"), &[("a", "same"), ("b", "new")]);
        second.put(&directory).unwrap();
        assert_eq!(Objects::read(&directory).unwrap(), second);
        assert_eq!(time(), before);
    }

    /// Check that the versions' text has a line each, sorted whatever the order.
    #[test]
    fn versions_are_sorted() {
        let text = "clang: 22.1\nrustc: 1.96\n";
        assert_eq!(versions_text(&[("rustc", "1.96\n"), ("clang", " 22.1")]), text);
        assert_eq!(versions_text(&[("clang", "22.1"), ("rustc", "1.96")]), text);
    }
}
