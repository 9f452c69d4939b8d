/// A small pseudo-random generator: the same seed gives the same numbers, everywhere and for ever.
///
/// # References
/// - Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators" (2014)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator that `seed` stands for.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the numbers are those of the published algorithm.
    #[test]
    fn known_answers() {
        let mut prng = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([prng.next_u64(), prng.next_u64()], expected);
    }
}
