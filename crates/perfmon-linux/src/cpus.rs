//! Lists of CPUs.

use perfmon_core::Refusal;

use crate::proc_file;

/// Highest CPU number that is taken; the kernel's own limit is 8192.
const CPU_MAX: u32 = 65_535;

/// The CPUs that are online, in increasing order.
///
/// # Errors
/// `/sys/devices/system/cpu/online` can't be read.
pub fn online() -> Result<Vec<u32>, Refusal> {
    let path = "/sys/devices/system/cpu/online";
    let text = proc_file::read(path)
        .ok_or_else(|| Refusal::new(format!("can't read {path}")).hint("mount sysfs at /sys"))?;
    parse_list(text.trim())
}

/// One more than the highest number that a CPU may have.
///
/// # Errors
/// `/sys/devices/system/cpu/possible` can't be read.
pub(crate) fn possible() -> Result<u32, Refusal> {
    let path = "/sys/devices/system/cpu/possible";
    let text = proc_file::read(path)
        .ok_or_else(|| Refusal::new(format!("can't read {path}")).hint("mount sysfs at /sys"))?;
    Ok(parse_list(text.trim())?.last().map_or(1, |last| last + 1))
}

/// The CPUs of a list such as `0-3,8`, in increasing order, each once.
///
/// # Errors
/// The list is not of that form.
///
/// # References
/// - cpuset(7), "List format"
pub fn parse_list(list: &str) -> Result<Vec<u32>, Refusal> {
    let bad = |item: &str| {
        Refusal::new(format!("'{item}' is no CPU or range of CPUs"))
            .hint("write a list such as 0-3,8")
    };
    let number = |text: &str, item| {
        text.parse().ok().filter(|&cpu: &u32| cpu <= CPU_MAX).ok_or_else(|| bad(item))
    };
    let mut cpus = Vec::new();
    for item in list.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (number(first, item)?, number(last, item)?);
        if first > last {
            return Err(bad(item));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lists are read as cpuset(7) writes them, and that nonsense is refused by name.
    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_list("0-3,8").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("5,1,5,0-1").unwrap(), [0, 1, 5]);
        for bad in ["", "a", "3-1", "0-", "-1", "1,,2", "0-4294967295", "70000"] {
            assert!(parse_list(bad).is_err(), "{bad}");
        }
    }
}
