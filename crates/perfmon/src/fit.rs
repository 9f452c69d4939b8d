use std::collections::HashMap;

/// How events split into groups that can be counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The groups, each with the places of its events in increasing order.
    pub groups: Vec<Vec<usize>>,
    /// No split into fewer groups was left untried. A search that takes too many questions ends early.
    pub is_smallest: bool,
}

/// Most events that are searched through; the sets are words of this many bits.
const EVENTS_MAX: usize = 128;
/// Most questions: each opens some events.
const QUESTIONS_MAX: usize = 4000;
/// Most steps of the search.
const STEPS_MAX: usize = 1_000_000;

/// The smallest split of `count` events into groups of which `together` says that they fit. It is asked about
/// sets of places in increasing order, and taken at its word: what fits, fits without one of its members, too.
///
/// An event that does not even fit alone is a group of its own.
///
/// # Errors
/// Those of `together`.
pub fn fit<E>(
    count: usize,
    together: &mut dyn FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Fit, E> {
    if count == 0 {
        return Ok(Fit { groups: Vec::new(), is_smallest: true });
    }
    if count > EVENTS_MAX {
        return many(count, together);
    }
    let mut search = Search { together, known: HashMap::new(), misfits: Vec::new(), steps: 0 };
    let all = u128::MAX >> (EVENTS_MAX - count);
    if search.fits(all)? == Some(true) {
        return Ok(Fit { groups: vec![places(all)], is_smallest: true });
    }
    let mut best = search.first_fit(count)?;
    let mut is_smallest = true;
    while best.len() > 2 {
        let mut groups = Vec::new();
        match search.split(count, 0, best.len() - 1, &mut groups)? {
            Some(true) => best = groups,
            Some(false) => break,
            None => {
                is_smallest = false;
                break;
            }
        }
    }
    Ok(Fit { groups: best.into_iter().map(places).collect(), is_smallest })
}

/// Too many events for a search: each goes into the first group that it fits into.
fn many<E>(count: usize, together: &mut dyn FnMut(&[usize]) -> Result<bool, E>) -> Result<Fit, E> {
    let all: Vec<usize> = (0..count).collect();
    if together(&all)? {
        return Ok(Fit { groups: vec![all], is_smallest: true });
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut questions = 0;
    'events: for event in 0..count {
        for group in &mut groups {
            if questions == QUESTIONS_MAX {
                break;
            }
            questions += 1;
            group.push(event);
            if together(group)? {
                continue 'events;
            }
            group.pop();
        }
        groups.push(vec![event]);
    }
    let is_smallest = groups.len() == 2;
    Ok(Fit { groups, is_smallest })
}

struct Search<'f, E> {
    together: &'f mut dyn FnMut(&[usize]) -> Result<bool, E>,
    known: HashMap<u128, bool>,
    /// Sets that do not fit: none that holds one of them does.
    misfits: Vec<u128>,
    steps: usize,
}

impl<E> Search<'_, E> {
    /// Whether the events of `set` fit; `None` after too many questions.
    fn fits(&mut self, set: u128) -> Result<Option<bool>, E> {
        if let Some(&known) = self.known.get(&set) {
            return Ok(Some(known));
        }
        if set.count_ones() > 1 && self.misfits.iter().any(|misfit| set & misfit == *misfit) {
            return Ok(Some(false));
        }
        if self.known.len() >= QUESTIONS_MAX {
            return Ok(None);
        }
        // What does not fit alone is a group all the same.
        let fits = set.count_ones() == 1 || (self.together)(&places(set))?;
        if !fits {
            self.misfits.push(set);
        }
        self.known.insert(set, fits);
        Ok(Some(fits))
    }

    /// Each event into the first group that it fits into.
    fn first_fit(&mut self, count: usize) -> Result<Vec<u128>, E> {
        let mut groups: Vec<u128> = Vec::new();
        'events: for event in 0..count {
            for group in &mut groups {
                let with = *group | 1 << event;
                if self.fits(with)? == Some(true) {
                    *group = with;
                    continue 'events;
                }
            }
            groups.push(1 << event);
        }
        Ok(groups)
    }

    /// Puts the events from `next` on into at most `most` groups. `None`: given up.
    fn split(
        &mut self,
        count: usize,
        next: usize,
        most: usize,
        groups: &mut Vec<u128>,
    ) -> Result<Option<bool>, E> {
        if next == count {
            return Ok(Some(true));
        }
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Ok(None);
        }
        for place in 0..groups.len() {
            let before = groups[place];
            match self.fits(before | 1 << next)? {
                None => return Ok(None),
                Some(false) => continue,
                Some(true) => groups[place] = before | 1 << next,
            }
            match self.split(count, next + 1, most, groups)? {
                Some(false) => groups[place] = before,
                done => return Ok(done),
            }
        }
        if groups.len() < most {
            groups.push(1 << next);
            match self.split(count, next + 1, most, groups)? {
                Some(false) => _ = groups.pop(),
                done => return Ok(done),
            }
        }
        Ok(Some(false))
    }
}

fn places(set: u128) -> Vec<usize> {
    (0..EVENTS_MAX).filter(|place| set >> place & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lists too long for a search are asked about, too, and how many questions that takes at most.
    #[test]
    fn many_events_are_asked_about() {
        let answer = |room: usize| {
            let mut questions = 0;
            let mut together = |set: &[usize]| {
                questions += 1;
                Ok::<_, ()>(set.len() <= room)
            };
            let fit = fit(300, &mut together).unwrap();
            let mut places = fit.groups.concat();
            places.sort_unstable();
            assert_eq!(places, (0..300).collect::<Vec<_>>());
            assert!(fit.groups.iter().all(|group| group.len() <= room));
            (fit.groups.len(), fit.is_smallest, questions)
        };
        assert_eq!(answer(300), (1, true, 1));
        assert_eq!(answer(299), (2, true, 300));
        assert_eq!(answer(100), (3, false, 1 + 99 + (1 + 99 * 2) + (2 + 99 * 3)));
        let (groups, is_smallest, questions) = answer(4);
        assert!(groups < 300 && !is_smallest, "{groups}");
        assert_eq!(questions, 1 + QUESTIONS_MAX);
    }

    /// The groups of `count` events under `fits`, and whether they are the fewest.
    fn groups(count: usize, fits: impl Fn(&[usize]) -> bool) -> (Vec<Vec<usize>>, bool) {
        let fit = fit::<()>(count, &mut |set| Ok(fits(set))).unwrap();
        (fit.groups, fit.is_smallest)
    }

    /// Check that what fits stays together, and that a PMU of three counters takes three at a time.
    #[test]
    fn counters_of_one_kind() {
        assert_eq!(groups(0, |_| true), (vec![], true));
        assert_eq!(groups(4, |_| true), (vec![vec![0, 1, 2, 3]], true));
        let (seven, smallest) = groups(7, |set| set.len() <= 3);
        assert_eq!((seven.len(), smallest), (3, true));
        assert_eq!(seven.concat().len(), 7);
    }

    /// Check that a better split than first-fit is found: two counters, and events that must have one of them.
    #[test]
    fn first_fit_is_not_the_smallest() {
        // Weights in a group of capacity 10, in an order that first-fit takes three groups for.
        let weights = [4, 4, 4, 6, 1, 1];
        let fits = |set: &[usize]| set.iter().map(|place| weights[*place]).sum::<i32>() <= 10;
        let order = [4, 5, 0, 1, 2, 3];
        let (found, smallest) =
            groups(6, |set| fits(&set.iter().map(|place| order[*place]).collect::<Vec<_>>()));
        assert_eq!((found.len(), smallest), (2, true));
    }

    /// Check that an event that fits nowhere is a group of its own.
    #[test]
    fn misfit_is_alone() {
        let (found, smallest) = groups(3, |set| !set.contains(&1));
        assert_eq!((found, smallest), (vec![vec![0, 2], vec![1]], true));
    }

    /// Check that the search ends, and says that it gave up, when it would take too long.
    #[test]
    fn long_search_gives_up() {
        let mut seed = 1_u64;
        let mut weight = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            20 + seed % 13
        };
        let weights: Vec<u64> = (0..100).map(|_| weight()).collect();
        let (found, smallest) =
            groups(100, |set| set.iter().map(|place| weights[*place]).sum::<u64>() <= 97);
        assert!(!smallest);
        assert_eq!(found.concat().len(), 100);
    }

    /// Check that a failed question ends the search.
    #[test]
    fn failure_is_passed_on() {
        assert_eq!(fit(2, &mut |_| Err("no")), Err("no"));
    }
}
