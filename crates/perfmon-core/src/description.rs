use crate::{MAX_PMCS, MAX_PMDS, PmcIndex, PmdIndex, RegisterSet, Width};

/// Which logical registers a PMU has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    name: String,
    pmcs: RegisterSet,
    pmds: Vec<Option<PmdDescription>>,
}

/// One logical data register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmdDescription {
    /// How many bits its raw counter has.
    pub width: Width,
    /// The PMC that controls it.
    pub pmc: PmcIndex,
    /// Whether it can be written.
    pub read_only: bool,
}

impl Description {
    /// A PMU called `name` with these registers; PMDs numbered 320 and up are left out.
    pub fn new(
        name: impl Into<String>,
        pmcs: RegisterSet,
        pmds: impl IntoIterator<Item = (PmdIndex, PmdDescription)>,
    ) -> Self {
        let mut places = vec![None; usize::from(MAX_PMDS)];
        for (index, pmd) in pmds {
            if let Some(place) = places.get_mut(usize::from(index.0)) {
                *place = Some(pmd);
            }
        }
        Self { name: name.into(), pmcs, pmds: places }
    }

    /// A PMU called `name` of `count` counters (320 at most) of `width`, PMD *i* controlled by PMC *i*.
    pub fn uniform(name: impl Into<String>, count: u16, width: Width) -> Self {
        let indices = 0..count.min(MAX_PMCS).min(MAX_PMDS);
        let pmd = |index| Some(PmdDescription { width, pmc: PmcIndex(index), read_only: false });
        Self {
            name: name.into(),
            pmcs: indices.clone().collect(),
            pmds: indices.map(pmd).collect(),
        }
    }

    /// perf events: any number of events (up to 320 a set), 64-bit values.
    pub fn perf_events() -> Self {
        Self::uniform("perf_events", MAX_PMDS, Width::FULL)
    }

    /// The PMU's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether PMC `index` exists.
    pub fn has_pmc(&self, index: PmcIndex) -> bool {
        self.pmcs.contains(index.0)
    }

    /// PMD `index`, if it exists.
    pub fn pmd(&self, index: PmdIndex) -> Option<&PmdDescription> {
        self.pmds.get(usize::from(index.0))?.as_ref()
    }

    /// The PMCs that exist.
    pub fn pmcs(&self) -> RegisterSet {
        self.pmcs
    }

    /// The PMDs that exist.
    pub fn pmds(&self) -> RegisterSet {
        let exists = |index: &u16| self.pmd(PmdIndex(*index)).is_some();
        (0..MAX_PMDS).filter(exists).collect()
    }
}
