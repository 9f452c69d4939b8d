use proptest::prelude::*;

use crate::{names, show};

/// Pieces of the grammar, from which text is made that gets further than noise.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "cycles",
        "task-clock",
        "r1a8",
        "r",
        "mem:",
        "0x1000",
        "0x",
        "99999999999999999999",
        "/",
        ":",
        ",",
        "{",
        "}",
        "=",
        " ",
        "\t",
        "u",
        "k",
        "ppp",
        "rwx",
        "sched",
        "sched_switch",
        "cpu",
        "event",
        "config1",
        "mem-loads",
        "uprobe:",
        "uretprobe:",
        "kprobe:",
        "kretprobe:",
        "/bin/sh",
        "main",
        "+",
        "..",
        "é",
        "\0",
        "💥",
        "-",
        "*",
    ])
}

/// A valid event without its modifiers.
fn valid_event() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["cycles", "page-faults", "LLC-load-misses", "ref-cycles"])
            .prop_map(str::to_owned),
        any::<u64>().prop_map(|config| format!("r{config:x}")),
        (0..0x1000_u64, 0..0x100_u64)
            .prop_map(|(event, umask)| format!("cpu/event={event:#x},umask={umask}/")),
        (any::<u64>(), 1..=8_u64, prop::sample::select(vec!["", ":r", ":w", ":rw"]))
            .prop_map(|(address, length, access)| format!("mem:{address:#x}/{length}{access}")),
        Just("sched:sched_switch".to_owned()),
    ]
}

/// Modifiers that no event of [`valid_event`] is refused with.
fn valid_modifiers() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "k", "uk", "ukh", "p", "kp", "H", "GH"])
}

fn with_modifiers(event: &str, modifiers: &str) -> String {
    match modifiers {
        "" => event.to_owned(),
        _ => format!("{event}:{modifiers}"),
    }
}

proptest! {
    /// Check that no text panics, and that errors point into the text.
    #[test]
    fn noise(list in any::<String>()) {
        if let Err(error) = names().parse(&list) {
            prop_assert!(error.position() <= list.len());
            prop_assert!(list.is_char_boundary(error.position()));
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// Check the same for text that looks like events.
    #[test]
    fn almost_events(pieces in prop::collection::vec(piece(), 0..12)) {
        let list = pieces.concat();
        match names().parse(&list) {
            Ok(events) => prop_assert!(!events.is_empty()),
            Err(error) => {
                prop_assert!(error.position() <= list.len());
                prop_assert!(list.is_char_boundary(error.position()));
            }
        }
    }

    /// Check that valid events are had, keep their text, and mean the same when the text is read again.
    #[test]
    fn round_trip(
        members in prop::collection::vec((valid_event(), valid_modifiers()), 1..5),
        added in valid_modifiers(),
        space in prop::sample::select(vec!["", " ", "\t "]),
    ) {
        let texts: Vec<String> =
            members.iter().map(|(event, modifiers)| with_modifiers(event, modifiers)).collect();
        let free = texts.join(&format!("{space},{space}"));
        let events = names().parse(&free).unwrap();
        let kept: Vec<&String> = events.iter().map(|event| &event.text).collect();
        prop_assert_eq!(kept, texts.iter().collect::<Vec<_>>());
        for event in &events {
            prop_assert!(event.encoding.is_ok(), "{}", show(event));
        }

        let group = with_modifiers(&format!("{{{free}}}"), added);
        for event in names().parse(&group).unwrap() {
            let again = crate::event(&event.text);
            prop_assert_eq!(show(&again), show(&event));
            prop_assert_eq!(again.text, event.text);
        }
    }
}
