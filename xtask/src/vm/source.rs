//! A copy of the workspace that keeps its place and its files' times from run to run, whatever the checkout: so Cargo
//! builds for arm64 only what has changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::run::{files_below, make_directory, told};
use crate::tree::tracked;

/// Brings the copy up to date with the workspace at `root`.
pub(super) fn copy(root: &Path, cache: &Cache) -> Result<PathBuf, String> {
    let target = cache.directory().join("source");
    bring_up_to_date(root, &tracked(root)?, &target)?;
    Ok(target)
}

/// Makes `target` hold the files of `root` with these paths, and no others; a file that is the same is not touched.
fn bring_up_to_date(root: &Path, paths: &[String], target: &Path) -> Result<(), String> {
    let mut kept = BTreeSet::new();
    for path in paths {
        let (from, to) = (root.join(path), target.join(path));
        // Deleted, but not yet for git.
        let Ok(bytes) = std::fs::read(&from) else { continue };
        if std::fs::read(&to).ok().as_ref() != Some(&bytes) {
            make_directory(to.parent().unwrap_or(target))?;
            std::fs::write(&to, bytes).map_err(|error| told("write", &to, &error))?;
        }
        kept.insert(to);
    }
    for old in files_below(target, &|path| !kept.contains(path)) {
        std::fs::remove_file(&old).map_err(|error| told("remove", &old, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::run::Scratch;
    use super::*;

    /// Check that changed, new and old files are brought up to date, and that an equal one keeps its time.
    #[test]
    fn copies_follow_the_workspace() {
        let scratch = Scratch::new(&std::env::temp_dir(), "xtask-source").unwrap();
        let (root, target) = (scratch.path().join("root"), scratch.path().join("target"));
        std::fs::create_dir_all(root.join("a")).unwrap();
        let paths = ["same", "a/changed"].map(str::to_owned);
        for path in &paths {
            std::fs::write(root.join(path), "1").unwrap();
        }
        bring_up_to_date(&root, &paths, &target).unwrap();
        let time = |path: &str| target.join(path).metadata().unwrap().modified().unwrap();
        let before = time("same");
        std::fs::write(root.join("a/changed"), "2").unwrap();
        std::fs::write(root.join("new"), "3").unwrap();
        std::fs::write(target.join("a/old"), "4").unwrap();
        let paths = ["same", "a/changed", "new", "deleted"].map(str::to_owned);
        bring_up_to_date(&root, &paths, &target).unwrap();
        assert_eq!(time("same"), before);
        let read = |path: &str| std::fs::read_to_string(target.join(path)).ok();
        assert_eq!(read("a/changed").as_deref(), Some("2"));
        assert_eq!(read("new").as_deref(), Some("3"));
        assert_eq!((read("a/old"), read("deleted")), (None, None));
    }
}
