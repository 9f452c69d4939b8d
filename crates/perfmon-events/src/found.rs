use std::borrow::Cow;
use std::sync::Arc;

use perfmon_core::{Encoding, Privilege, Refusal};

use crate::blind::{self, Subject};
use crate::explain::Detail;
use crate::modifiers::Modifiers;
use crate::names::Device;

/// Unit of events that are counted one by one.
pub(crate) const EVENTS: &str = "events";

/// What looking a name up gives.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Without what modifiers decide.
    pub(crate) encoding: Encoding,
    /// One count is so many units.
    pub(crate) scale: f64,
    pub(crate) unit: Cow<'static, str>,
    /// The PMU, if sysfs names it.
    pub(crate) device: Option<Arc<Device>>,
    /// Which rows of the blind table may apply.
    pub(crate) subject: Option<Subject>,
    /// What an explanation shows beside; only if one is asked for.
    pub(crate) detail: Option<Box<Detail>>,
}

impl Found {
    pub(crate) fn new(encoding: Encoding, subject: impl Into<Option<Subject>>) -> Self {
        Self {
            encoding,
            scale: 1.0,
            unit: Cow::Borrowed(EVENTS),
            device: None,
            subject: subject.into(),
            detail: None,
        }
    }

    /// An event of the kernel's PMU of this type.
    pub(crate) fn of_kernel(pmu_type: u32, config: u64) -> Self {
        let subject = Subject::of(pmu_type, config);
        let mut found = Self::new(Encoding { pmu_type, config, ..Encoding::default() }, subject);
        if subject == Some(Subject::Clock) {
            found.unit = Cow::Borrowed("ns");
        }
        found
    }

    /// Puts modifiers into the encoding, and refuses what would not be true. Of a group, only the first
    /// event may claim leadership.
    pub(crate) fn encode(
        self,
        modifiers: Modifiers,
        claims_leadership: bool,
    ) -> Result<Encoding, Refusal> {
        modifiers.require_offered()?;
        if claims_leadership {
            let why = "only the first event of a group can be pinned or exclusive, for all of them";
            return Err(Refusal::new(why).hint("put 'D' and 'e' behind the group"));
        }
        let mut privilege = modifiers.privilege();
        if let Some(subject) = self.subject {
            blind::check(subject, &privilege)?;
        }
        if self.subject == Some(Subject::Clock) {
            // The kernel lets an ordinary user open only what excludes the kernel, and the clocks count
            // the same with it.
            privilege = Privilege::USER;
        }
        Ok(Encoding {
            privilege,
            pinned: modifiers.pinned,
            exclusive: modifiers.exclusive,
            precise_ip: modifiers.precise_ip,
            ..self.encoding
        })
    }
}
