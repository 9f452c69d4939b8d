/// Bits of a 64-bit word: ranges, the lowest bits of a value first, as in `0-7,32-35`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Bits(Vec<(u8, u8)>);

impl Bits {
    /// All bits.
    pub fn all() -> Self {
        Self(vec![(0, 63)])
    }

    /// Reads ranges such as `0-7,32-35`; `None` if a range is no range, or shares bits with another.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bits = Self::default();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let range: (u8, u8) = (number(first)?, number(last)?);
            if range.0 > range.1 || range.1 > 63 || bits.mask() & mask(range) != 0 {
                return None;
            }
            bits.0.push(range);
        }
        Some(bits)
    }

    /// The word in which just these bits are 1.
    pub fn mask(&self) -> u64 {
        self.0.iter().fold(0, |bits, &range| bits | mask(range))
    }

    /// The greatest value that the bits can hold.
    pub fn greatest(&self) -> u64 {
        u64::MAX.checked_shr(64 - self.mask().count_ones()).unwrap_or(0)
    }

    /// `value` spread over the bits; `None` if it has more.
    pub fn spread(&self, mut value: u64) -> Option<u64> {
        let mut bits = 0;
        for &range in &self.0 {
            let (first, last) = range;
            bits |= value << first & mask(range);
            value = value.checked_shr(u32::from(last - first) + 1).unwrap_or(0);
        }
        (value == 0).then_some(bits)
    }

    /// The value whose spread the word holds.
    pub fn gather(&self, word: u64) -> u64 {
        let (mut value, mut place) = (0, 0);
        for &range in &self.0 {
            value |= (word & mask(range)) >> range.0 << place;
            place += u32::from(range.1 - range.0) + 1;
        }
        value
    }

    /// The bits `places` higher; `None` if a bit leaves the word.
    pub fn shifted(&self, places: u8) -> Option<Self> {
        let shift = |bit: u8| bit.checked_add(places).filter(|bit| *bit < 64);
        let ranges = self.0.iter().map(|&(first, last)| Some((shift(first)?, shift(last)?)));
        ranges.collect::<Option<_>>().map(Self)
    }
}

impl std::fmt::Display for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// Digits only: no sign.
fn number(digits: &str) -> Option<u8> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Bits `first` to `last` of a word; both are at most 63, and in order.
fn mask((first, last): (u8, u8)) -> u64 {
    u64::MAX >> (63 - (last - first)) << first
}
