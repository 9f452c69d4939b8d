//! Names that may have been meant by a name that does not exist.

/// Longest name that is compared, in bytes: the work grows with its square.
const COMPARED_BYTES: usize = 64;
/// Most names that are proposed.
const PROPOSED: usize = 3;

/// The names nearest to `word`, in order, all at the same distance from it.
pub(crate) fn matches<N: AsRef<str>>(
    word: &str,
    names: impl IntoIterator<Item = N>,
) -> Vec<String> {
    let tolerated = (word.len() / 3).max(1);
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|name| {
            let name = name.as_ref();
            let distance = distance(word.as_bytes(), name.as_bytes())?;
            (distance <= tolerated).then(|| (distance, name.to_owned()))
        })
        .collect();
    near.sort();
    let least = near.first().map(|(distance, _)| *distance);
    near.retain(|(distance, _)| Some(*distance) == least);
    near.truncate(PROPOSED);
    near.into_iter().map(|(_, name)| name).collect()
}

/// "did you mean 'a' or 'b'?", unless there is nothing to propose.
pub(crate) fn question(near: &[String]) -> Option<String> {
    let quoted: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

/// Insertions, deletions, replacements and swaps of neighbours between two names, without regard to
/// case; `None` for names too long to compare.
fn distance(left: &[u8], right: &[u8]) -> Option<usize> {
    if left.len().max(right.len()) > COMPARED_BYTES {
        return None;
    }
    let mut two_up = vec![0; right.len() + 1];
    let mut up: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let replaced = up[column] + usize::from(!a.eq_ignore_ascii_case(b));
            let mut best = replaced.min(up[column + 1] + 1).min(current[column] + 1);
            let is_swap = row > 0
                && column > 0
                && a.eq_ignore_ascii_case(&right[column - 1])
                && b.eq_ignore_ascii_case(&left[row - 1]);
            if is_swap {
                best = best.min(two_up[column - 1] + 1);
            }
            current.push(best);
        }
        two_up = std::mem::replace(&mut up, current);
    }
    up.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that distances are those of the optimal string alignment.
    #[test]
    fn distances() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("cylces", "cycles", 1),
            ("Cycles", "cycles", 0),
            ("cycle", "cycles", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(
                distance(left.as_bytes(), right.as_bytes()),
                Some(expected),
                "{left} {right}"
            );
        }
        assert_eq!(distance(&[b'a'; 65], b"a"), None);
    }
}
