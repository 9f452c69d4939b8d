use std::collections::BTreeSet;

use perfmon_core::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(crate::config())]

    /// Check that a virtual counter of any width is the sum of what was counted, modulo 2⁶⁴, and says
    /// when it wraps.
    #[test]
    fn virtual_counter_is_a_sum(
        bits in 1u8..=64,
        start: u64,
        raw_start: u64,
        steps in proptest::collection::vec(any::<u64>(), 0..50),
    ) {
        let width = Width::new(bits).unwrap();
        let mut counter = VirtualCounter::new(width);
        counter.write(start);
        counter.rebase(raw_start);
        let (mut sum, mut raw) = (u128::from(start), raw_start & width.mask());
        for step in steps {
            let step = step & width.mask();
            raw = raw.wrapping_add(step) & width.mask();
            let wraps = (sum >> 64) != ((sum + u128::from(step)) >> 64);
            sum += u128::from(step);
            let low = u64::try_from(sum & u128::from(u64::MAX)).unwrap();
            prop_assert_eq!(counter.peek(raw), low);
            prop_assert_eq!(counter.advance(raw), wraps);
            prop_assert_eq!(counter.value(), low);
        }
    }

    /// Check that a sum of tallies adds values and times, and is exact only if all its parts are.
    #[test]
    fn tally_is_a_sum(
        parts in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 40, 0u64..1 << 40), 0..20)
    ) {
        let mut sum = Tally::zero();
        let (mut value, mut enabled_sum, mut running_sum) = (0u128, 0u64, 0u64);
        let (mut all_exact, mut all_counted) = (true, true);
        for (part, &(counted, time_1, time_2)) in parts.iter().enumerate() {
            let (enabled_ns, running_ns) = (time_1.max(time_2), time_1.min(time_2));
            let reading = Reading { value: counted, enabled_ns, running_ns, in_error: false };
            sum.add(&Tally::from_reading(&reading), &part);
            all_exact &= running_ns == enabled_ns;
            all_counted &= running_ns > 0 || enabled_ns == 0;
            (enabled_sum, running_sum) = (enabled_sum + enabled_ns, running_sum + running_ns);
            let (counted, enabled, running) =
                (u128::from(counted), u128::from(enabled_ns), u128::from(running_ns));
            let scaled = (counted * enabled + running / 2).checked_div(running);
            value += scaled.unwrap_or(counted).min(u128::from(u64::MAX));
        }
        let value = u64::try_from(value).unwrap_or(u64::MAX);
        prop_assert_eq!((sum.enabled_ns, sum.running_ns), (enabled_sum, running_sum));
        prop_assert_eq!(sum.count.value(), all_counted.then_some(value));
        prop_assert_eq!(sum.count.exact().is_some(), all_exact);
    }

    /// Check that a set of registers is a set of numbers below 320.
    #[test]
    fn register_set_is_a_set(
        first: BTreeSet<u16>,
        second in proptest::collection::btree_set(0u16..400, 0..50),
    ) {
        let [a, b]: [RegisterSet; 2] = [&first, &second].map(|set| set.iter().copied().collect());
        let union: Vec<u16> = first.union(&second).copied().filter(|&i| i < MAX_PMDS).collect();
        prop_assert_eq!(a.union(&b).iter().collect::<Vec<_>>(), union);
        prop_assert_eq!(RegisterSet::from_words(a.words()), a);
        prop_assert!(second.iter().all(|&i| b.contains(i) == (i < MAX_PMDS)));
        prop_assert_eq!(a.is_empty(), first.iter().all(|&i| i >= MAX_PMDS));
    }
}
