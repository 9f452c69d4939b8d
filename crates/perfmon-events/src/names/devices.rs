//! The PMUs of a machine, and which descriptions are about them.

use std::path::Path;
use std::sync::Arc;

use super::Names;
use crate::machine::{self, CpuId};
use crate::registry::PmuDescription;
use crate::{read, sysfs};

/// A PMU of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) pmu_type: u32,
    pub(crate) cpus: Option<Vec<u32>>,
    /// It counts in threads, too: it is a CPU's own, not one beside them.
    pub(crate) is_core: bool,
    /// There is no other one of its kind.
    pub(crate) is_only: bool,
}

/// A description of this machine's CPU, with the PMUs that it is about.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) description: Arc<PmuDescription>,
    pub(crate) devices: Vec<Arc<Device>>,
}

impl Active {
    pub(crate) fn is_architectural(&self) -> bool {
        self.description.identity().architectural
    }
}

impl Names {
    /// Where sysfs has its PMUs.
    pub(crate) fn devices(&self) -> &Path {
        &self.devices
    }

    /// The PMUs of this machine that `description` is about, by their names in sysfs; `None` if it does
    /// not describe this machine's CPU.
    pub fn devices_of(&self, description: &PmuDescription) -> Option<Vec<&str>> {
        let active = self.active().iter().find(|it| std::ptr::eq(&*it.description, description))?;
        Some(active.devices.iter().map(|device| device.name.as_str()).collect())
    }

    /// The distinct CPUs of the machine: one, or one a core type where the machine tells.
    pub fn cpus(&self) -> &[CpuId] {
        self.cpus.get_or_init(|| machine::cpus(&self.proc, &self.sysfs))
    }

    /// The descriptions of this machine's CPU that have events.
    pub(crate) fn active(&self) -> &[Active] {
        self.active.get_or_init(|| {
            let fits = |it: &&Arc<PmuDescription>| {
                !it.identity().machines.is_empty() && self.cpus().iter().any(|cpu| it.fits(cpu))
            };
            let descriptions = self.registry().descriptions.iter().filter(fits);
            let active = descriptions.map(|description| {
                let patterns = &description.identity().devices;
                let is_own = |device: &Arc<Device>| {
                    self.cpu_of(device).is_none_or(|cpu| description.fits(&cpu))
                };
                let devices = patterns.iter().map(|pattern| {
                    let devices = self.devices_like(pattern).into_iter();
                    devices.filter(is_own).collect::<Vec<_>>()
                });
                let devices = devices.into_iter().find(|found| !found.is_empty());
                Active { description: description.clone(), devices: devices.unwrap_or_default() }
            });
            active.filter(|it| it.description.has_events()).collect()
        })
    }

    /// The PMUs whose names fit `pattern`.
    fn devices_like(&self, pattern: &str) -> Vec<Arc<Device>> {
        let names = match pattern.contains('*') {
            true => sysfs::instances(self.devices(), pattern),
            false => vec![pattern.to_owned()],
        };
        names.iter().filter_map(|name| self.device(name)).map(Arc::new).collect()
    }

    fn device(&self, name: &str) -> Option<Device> {
        sysfs::Pmu::open(self.devices(), name).ok()?.device().ok()
    }

    /// The PMUs that count what CPUs do: one for each type of core.
    pub(crate) fn core_pmus(&self) -> &[Arc<Device>] {
        self.core_pmus.get_or_init(|| {
            if let Some(cpu) = self.device("cpu") {
                return vec![Arc::new(cpu)];
            }
            let devices = self.devices();
            let is_core = |name: &&String| devices.join(name).join("cpus").is_file();
            let names = read::names_in(devices);
            let mut core: Vec<Device> =
                names.iter().filter(is_core).filter_map(|name| self.device(name)).collect();
            let is_only = core.len() == 1;
            core.iter_mut().for_each(|device| device.is_only = is_only);
            core.into_iter().map(Arc::new).collect()
        })
    }

    /// The core PMUs that count what CPUs like `cpu` do.
    pub(crate) fn core_pmus_of(&self, cpu: &CpuId) -> impl Iterator<Item = &Arc<Device>> {
        self.core_pmus().iter().filter(|pmu| self.cpu_of(pmu).is_none_or(|own| own == *cpu))
    }

    /// Which CPU a core PMU is of, where each CPU tells.
    fn cpu_of(&self, pmu: &Device) -> Option<CpuId> {
        machine::cpu(&self.sysfs, *pmu.cpus.as_ref()?.first()?)
    }
}
