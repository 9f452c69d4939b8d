use std::collections::BTreeSet;

use crate::machine::Hosted;

/// Which counters of a context run in time slice `slice`, by their places; pinned ones that find no
/// room are put in error.
///
/// This is the kernel's way with groups: pinned ones first, then the others in turn, until one does
/// not fit.
pub(crate) fn schedule(
    hosted: &mut Hosted,
    slice: u64,
    counters: usize,
    starving: &BTreeSet<u64>,
) -> Vec<usize> {
    let mut free = counters;
    let mut running = Vec::new();
    let (pinned, flexible): (Vec<_>, Vec<_>) = enabled_groups(hosted)
        .into_iter()
        .partition(|group| group.iter().any(|&place| hosted.counters[place].pinned));
    let starves = |hosted: &Hosted, group: &[usize]| {
        group.iter().any(|&place| starving.contains(&hosted.counters[place].config))
    };
    for group in pinned {
        if group.len() > free || starves(hosted, &group) {
            group.iter().for_each(|&place| hosted.counters[place].in_error = true);
        } else {
            free -= group.len();
            running.extend(group);
        }
    }
    let first = usize::try_from(slice % flexible.len().max(1) as u64).unwrap_or(0);
    for group in flexible.iter().cycle().skip(first).take(flexible.len()) {
        if starves(hosted, group) {
            continue;
        }
        if group.len() > free {
            break;
        }
        free -= group.len();
        running.extend(group);
    }
    running
}

/// The places of the counters of started sets, group by group.
fn enabled_groups(hosted: &Hosted) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (place, counter) in hosted.counters.iter().enumerate() {
        if !hosted.is_enabled(counter) {
            continue;
        }
        let mate = groups.iter_mut().find(|group| {
            group.first().is_some_and(|&first| counter.is_grouped_with(&hosted.counters[first]))
        });
        match mate {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}
