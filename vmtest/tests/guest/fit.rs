// guest rows: exact
//! How many events the kernel counts together.

use std::process::Command;

use serde_json::Value;

use crate::helper::{Guest, program, repeated};

/// The sizes of the groups that `pfmon fit` finds for `list`.
fn groups_of(list: &str) -> Vec<usize> {
    let mut fit = Command::new(program("pfmon"));
    let output = fit.args(["fit", "--json", list]).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let groups = result["groups"].as_array().unwrap().iter();
    groups.map(|group| group.as_array().unwrap().len()).collect()
}

/// Check that as many events fit as there are counters, and cycles beside them.
#[test]
fn six_events_fit() {
    let Some(guest) = Guest::exact("six_events_fit") else { return };
    let instructions = |count| repeated("instructions:u", count);
    assert_eq!(groups_of(&instructions(guest.counters)), [6]);
    let with_cycles = format!("{},cycles:u", instructions(guest.counters));
    assert_eq!(groups_of(&with_cycles), [7]);
    let mut groups = groups_of(&instructions(guest.counters + 1));
    groups.sort_unstable();
    assert_eq!((groups.len(), groups.iter().sum::<usize>()), (2, 7));
}
