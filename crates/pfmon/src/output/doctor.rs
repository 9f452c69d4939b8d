//! The text of `doctor`.

use super::text::{columns, heading};
use crate::cmd::doctor::results::{AbilityRow, DoctorResult};

/// A table for each area: what is available, and for what is not why, and what to change.
pub(crate) fn text(result: &DoctorResult, colour: bool) -> String {
    let DoctorResult { kernel, machine, uid, capabilities, .. } = result;
    let capabilities = match capabilities.as_slice() {
        [] => "no capability that matters".to_owned(),
        some => some.join(", "),
    };
    let mut text = String::new();
    let title = format!("Linux {kernel} on {machine}; user {uid} with {capabilities}");
    heading(&mut text, &title, colour);
    for rows in result.abilities.chunk_by(|left, right| left.area == right.area) {
        text.push('\n');
        heading(&mut text, rows.first().map_or("", |row| row.area), colour);
        let before = std::iter::once(None).chain(rows.iter().map(|row| row.hint.as_deref()));
        let rows: Vec<Vec<String>> =
            rows.iter().zip(before).flat_map(|(row, before)| lines(row, before)).collect();
        columns(&mut text, "  ", &rows);
    }
    text
}

/// A row's lines; a hint is not said again if the row before has it.
fn lines(row: &AbilityRow, hint_before: Option<&str>) -> Vec<Vec<String>> {
    let line = |name: &str, state: &str, said: &str| [name, state, said].map(str::to_owned).into();
    let state = if row.available { "yes" } else { "no" };
    let mut lines = vec![line(row.name, state, row.serves)];
    let hint = row.hint.as_deref().filter(|hint| hint_before != Some(hint));
    let hint = hint.map(|hint| format!("to change it: {hint}"));
    let more = [row.detail.as_ref(), row.why.as_ref(), hint.as_ref()];
    lines.extend(more.into_iter().flatten().map(|said| line("", "", &format!("  {said}"))));
    lines
}
