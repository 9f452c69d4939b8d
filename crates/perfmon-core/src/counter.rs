/// How many bits of a hardware counter are usable, 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(u8);

impl Width {
    /// The kernel's own counts: 64 bits.
    pub const FULL: Self = Self(64);

    /// A width of `bits`; `None` unless 1 to 64.
    pub const fn new(bits: u8) -> Option<Self> {
        if bits >= 1 && bits <= 64 { Some(Self(bits)) } else { None }
    }

    /// The width in bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The mask of the usable bits (perfmon2's `ovfl_mask`).
    #[doc(alias = "ovfl_mask")]
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.0)
    }
}

/// A 64-bit virtual counter over a raw one of any [`Width`] that can't be written: perfmon2's PMD.
///
/// The raw counter may start anywhere. Its wraps are folded in, provided that it counts less than its
/// whole range from one look ([`advance`](Self::advance)) to the next: a full turn looks like none.
/// An interrupt every half range, as Linux drivers have it, is enough; one at each wrap is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualCounter {
    value: u64,
    raw: u64,
    width: Width,
}

impl VirtualCounter {
    /// A counter at 0 over a raw counter of `width` that stands at 0.
    pub const fn new(width: Width) -> Self {
        Self { value: 0, raw: 0, width }
    }

    /// Sets the value; a period of *p* events is written as `-p`.
    pub const fn write(&mut self, value: u64) {
        self.value = value;
    }

    /// Says that counting goes on from the raw value `raw`, without counting the way to it.
    pub const fn rebase(&mut self, raw: u64) {
        self.raw = raw & self.width.mask();
    }

    /// The value if the raw counter stands at `raw`.
    pub const fn peek(&self, raw: u64) -> u64 {
        self.value.wrapping_add(self.delta(raw))
    }

    /// Folds in that the raw counter stands at `raw` now; true if the 64-bit value wrapped.
    pub const fn advance(&mut self, raw: u64) -> bool {
        let (value, wrapped) = self.value.overflowing_add(self.delta(raw));
        self.value = value;
        self.raw = raw & self.width.mask();
        wrapped
    }

    /// The value at the last look.
    pub const fn value(&self) -> u64 {
        self.value
    }

    const fn delta(&self, raw: u64) -> u64 {
        raw.wrapping_sub(self.raw) & self.width.mask()
    }
}
