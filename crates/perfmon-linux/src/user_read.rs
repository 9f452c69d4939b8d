//! On arm64 user mode may read a counter only if its event asked for that.

use std::path::Path;

use perfmon_core::Encoding;
use perfmon_data::pmu_type;

use crate::proc_file;

/// `rdpmc` of the core PMUs' format, a bit of `config1`.
const RDPMC: u64 = 1 << 1;

/// The PMUs whose events have to ask for reads in user mode, and may.
///
/// # References
/// - `Documentation/arch/arm64/perf.rst`, "Perf Userspace PMU Hardware Counter Access"
#[derive(Debug, Default)]
pub(crate) struct UserRead {
    pmu_types: Vec<u32>,
}

impl UserRead {
    /// For events of the calling thread: nobody else can read them so.
    pub(crate) fn here() -> Self {
        let is_allowed = || proc_file::read_number("/proc/sys/kernel/perf_user_access") == Some(1);
        if cfg!(target_arch = "aarch64") && is_allowed() {
            Self::of(Path::new("/sys/bus/event_source/devices"))
        } else {
            Self::default()
        }
    }

    fn of(devices: &Path) -> Self {
        let Ok(entries) = std::fs::read_dir(devices) else { return Self::default() };
        let has_rdpmc = |device: &Path| {
            std::fs::read_to_string(device.join("format/rdpmc"))
                .is_ok_and(|place| place.trim() == "config1:1")
        };
        let mut pmu_types: Vec<u32> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|device| has_rdpmc(device))
            .filter_map(|device| {
                std::fs::read_to_string(device.join("type")).ok()?.trim().parse().ok()
            })
            .collect();
        if !pmu_types.is_empty() {
            // The generic events are those PMUs', too.
            pmu_types.extend([pmu_type::HARDWARE, pmu_type::HW_CACHE, pmu_type::RAW]);
        }
        Self { pmu_types }
    }

    /// The event, asking to be read; `None` if it need not or can't.
    pub(crate) fn asking(&self, encoding: &Encoding) -> Option<Encoding> {
        let asks = encoding.config1 & RDPMC != 0;
        (!asks && self.pmu_types.contains(&encoding.pmu_type))
            .then(|| Encoding { config1: encoding.config1 | RDPMC, ..encoding.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that only events of a core PMU that can be read ask for it, and none twice.
    #[test]
    fn events_of_readable_pmus_ask() {
        let devices =
            std::env::temp_dir().join(format!("perfmon-user-read-{}", std::process::id()));
        for (name, rdpmc) in [("armv8_pmuv3_0", Some("config1:1\n")), ("arm_spe_0", None)] {
            let format = devices.join(name).join("format");
            std::fs::create_dir_all(&format).unwrap();
            let number = if rdpmc.is_some() { "10\n" } else { "11\n" };
            std::fs::write(devices.join(name).join("type"), number).unwrap();
            if let Some(place) = rdpmc {
                std::fs::write(format.join("rdpmc"), place).unwrap();
            }
        }
        let user_read = UserRead::of(&devices);
        std::fs::remove_dir_all(&devices).unwrap();
        let of_type = |pmu_type| Encoding { pmu_type, config1: 1, ..Encoding::default() };
        for (pmu_type, asks) in [(10, true), (pmu_type::HARDWARE, true), (11, false), (1, false)] {
            let asking = user_read.asking(&of_type(pmu_type));
            assert_eq!(asking.map(|it| it.config1), asks.then_some(0b11), "type {pmu_type}");
        }
        let asked = Encoding { config1: RDPMC, ..of_type(10) };
        assert_eq!(user_read.asking(&asked), None);
        assert_eq!(UserRead::of(Path::new("/nonexistent")).asking(&of_type(0)), None);
    }
}
