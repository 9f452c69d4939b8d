//! What all texts for people share.

pub(super) const RED: &str = "\u{1b}[31m";
pub(super) const YELLOW: &str = "\u{1b}[33m";
pub(super) const BOLD: &str = "\u{1b}[1m";
pub(super) const PLAIN: &str = "\u{1b}[0m";

/// Width of the labels in front of values.
const LABEL: usize = 14;

/// Adds `more` to `text`, without what would move a terminal's cursor.
pub(super) fn push_printable(text: &mut String, more: &str) {
    if more.bytes().any(|byte| !(b' '..0x7f).contains(&byte)) {
        text.extend(more.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
    } else {
        text.push_str(more);
    }
}

/// `text` without what would move a terminal's cursor.
pub(super) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    push_printable(&mut printable, text);
    printable
}

/// A heading.
pub(super) fn heading(text: &mut String, words: &str, colour: bool) {
    let (on, off) = if colour { (BOLD, PLAIN) } else { ("", "") };
    text.push_str(on);
    push_printable(text, words);
    text.push_str(off);
    text.push('\n');
}

/// A label and its values, one a line; nothing without values.
pub(super) fn values<V: AsRef<str>>(
    text: &mut String,
    label: &str,
    values: impl IntoIterator<Item = V>,
) {
    let mut label = label;
    for value in values {
        text.push_str(&format!("  {label:<LABEL$}"));
        push_printable(text, value.as_ref());
        text.truncate(text.trim_end().len());
        text.push('\n');
        label = "";
    }
}

/// Rows in aligned columns. The last column is as wide as it likes.
pub(super) fn columns(text: &mut String, indent: &str, rows: &[Vec<String>]) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    for row in rows {
        text.push_str(indent);
        for (cell, width) in row.iter().zip(&widths) {
            push_printable(text, cell);
            let gap = width.saturating_sub(cell.chars().count()) + 2;
            text.extend(std::iter::repeat_n(' ', gap));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
}

/// Numbers as the kernel writes those of CPUs: `0-3,8`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let next = |a: &u32, b: &u32| a.checked_add(1) == Some(*b);
    let runs = numbers.chunk_by(next).filter_map(|run| Some((run.first()?, run.last()?)));
    let runs: Vec<String> = runs
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    runs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that control characters of names don't reach a terminal, those beyond ASCII included.
    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\u{1b}[2J\u{9b}é\n"), "a\u{fffd}[2J\u{fffd}é\u{fffd}");
        assert_eq!(printable("plain"), "plain");
    }

    /// Check that a label stands in front of the first value only, and columns are aligned.
    #[test]
    fn values_are_aligned() {
        let mut text = String::new();
        values(&mut text, "label", ["one", "two"]);
        values(&mut text, "nothing", [""; 0]);
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["long".to_owned(), String::new()]];
        columns(&mut text, " ", &rows);
        assert_eq!(text, "  label         one\n                two\n a     b\n long\n");
    }

    /// Check that numbers that follow one another are a range.
    #[test]
    fn numbers_are_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[0]), "0");
        assert_eq!(ranges(&[0, 1, 2, 8, 10, 11, u32::MAX]), "0-2,8,10-11,4294967295");
    }
}
