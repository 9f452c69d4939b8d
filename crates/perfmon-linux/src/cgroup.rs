//! Where a cgroup's directory is.

use std::path::{Path, PathBuf};

use perfmon_core::Refusal;

use crate::proc_file;

/// The directory of the cgroup `name`: a directory of a cgroup file system as it is, else a path below the
/// hierarchy that perf events use (the perf_event controller's where it is mounted, else version 2).
///
/// # Errors
/// There is no such hierarchy, or no such cgroup in it.
///
/// # References
/// - cgroups(7), perf_event_open(2) `PERF_FLAG_PID_CGROUP`
pub fn directory(name: &str) -> Result<PathBuf, Refusal> {
    let mounts = proc_file::read("/proc/self/mounts").unwrap_or_default();
    let root = hierarchy(&mounts).ok_or_else(|| {
        Refusal::new("no cgroup hierarchy that perf events can use is mounted")
            .hint("mount -t cgroup2 none /sys/fs/cgroup/unified")
    })?;
    let given = Path::new(name);
    let path = if given.starts_with(&root) {
        given.into()
    } else {
        root.join(name.trim_start_matches('/'))
    };
    if path.is_dir() {
        Ok(path)
    } else {
        Err(Refusal::new(format!("there is no cgroup {}", path.display()))
            .hint("name a cgroup by its path below the hierarchy's mount"))
    }
}

/// The mount point of the hierarchy that perf events use.
fn hierarchy(mounts: &str) -> Option<PathBuf> {
    let of_type = |kind: &str, option: Option<&str>| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (_, path, found) = (fields.next()?, fields.next()?, fields.next()?);
            let mut options = fields.next()?.split(',');
            let fits = found == kind && option.is_none_or(|option| options.any(|o| o == option));
            fits.then(|| PathBuf::from(path))
        })
    };
    of_type("cgroup", Some("perf_event")).or_else(|| of_type("cgroup2", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the perf_event controller's hierarchy goes before version 2.
    #[test]
    fn hierarchy_of_perf_events() {
        let v2 = "none /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let v1 = "c /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\nc /cg/perf cgroup rw,perf_event 0 0\n";
        assert_eq!(hierarchy(v2), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(hierarchy(&format!("{v2}{v1}")), Some("/cg/perf".into()));
        assert_eq!(hierarchy("c /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"), None);
        assert_eq!(hierarchy("broken\n"), None);
    }
}
