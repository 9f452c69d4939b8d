use perfmon_events::Names;

use crate::names;

/// Check where the list can't be read, and what is expected there.
#[test]
fn positions() {
    for (list, position, expected) in [
        ("", 0, "an event"),
        ("  ", 2, "an event"),
        (",", 0, "an event"),
        ("cs,", 3, "an event"),
        ("cs, ,r1", 4, "an event"),
        ("cs r1", 0, "an event"),
        ("nothing", 0, "an event"),
        ("cs,cylces:u", 3, "an event"),
        (":u", 0, "an event"),
        ("{}", 1, "an event"),
        ("{cs", 3, "',' or '}'"),
        ("{cs,", 4, "an event"),
        ("{cs,{r1}}", 4, "an event: groups don't nest"),
        ("{cs}}", 4, "',' or the end of the list"),
        ("{cs}r1", 4, "',' or the end of the list"),
        ("cs}", 2, "',' or the end of the list"),
        ("cs{r1}", 2, "',' or the end of the list"),
        ("r11111111111111111", 1, "a number below 2^64"),
        ("mem:", 4, "a number (decimal, or hexadecimal after 0x)"),
        ("mem:x", 4, "a number (decimal, or hexadecimal after 0x)"),
        ("mem:0x", 4, "a number (decimal, or hexadecimal after 0x)"),
        ("mem:+1", 4, "a number (decimal, or hexadecimal after 0x)"),
        ("mem:0x1ffffffffffffffff", 4, "a number below 2^64"),
        ("mem:0x10/", 9, "a number (decimal, or hexadecimal after 0x)"),
        ("mem:0x10/9", 9, "a length of 1 to 8 bytes"),
        ("mem:0x10/0", 9, "a length of 1 to 8 bytes"),
        ("mem:0x10:rwr", 11, "an access (r, w and x, each once)"),
        ("mem:0x10:wu", 10, "an access (r, w and x, each once)"),
        ("uprobe:", 7, "a file's path"),
        ("uprobe:/a", 9, "':SYMBOL' or ':OFFSET' behind the path"),
        ("uprobe:/a:", 10, "a symbol, or an offset in the file"),
        ("uprobe:/a:+4", 10, "a symbol, or an offset in the file"),
        ("uprobe:/a:b+c", 12, "a number (decimal, or hexadecimal after 0x)"),
        ("uprobe:/a:0xg", 10, "a number (decimal, or hexadecimal after 0x)"),
        ("sched:", 6, "a tracepoint's name"),
        ("../x/", 0, "a PMU's name"),
        (".x:y", 0, "a tracepoint's group"),
        ("a:.b", 2, "a tracepoint's name"),
        ("sch*d:x", 3, "a tracepoint's group of letters, digits, '_', '-' and '.'"),
        ("/x/", 0, "a PMU's name"),
        ("cpu/event=1", 11, "the closing '/' of a PMU's terms"),
        ("cpu//", 4, "a term"),
        ("cpu/event=1,/", 12, "a term"),
        ("cpu/event=/", 10, "a number (decimal, or hexadecimal after 0x)"),
        ("cpu/event=one/", 10, "a number (decimal, or hexadecimal after 0x)"),
        ("cpu/é=1/", 4, "a term of letters, digits, '_', '-' and '.'"),
    ] {
        let error = names().parse(list).expect_err(list);
        assert_eq!((error.position(), error.expected()), (position, expected), "{list}");
    }
}

/// Check that a letter which is no modifier, or comes too often, is pointed at.
#[test]
fn modifiers() {
    for (list, position) in [
        ("cs:", 3),
        ("cs:x", 3),
        ("cs:uy", 4),
        ("cs:uu", 4),
        ("cs:pppp", 6),
        ("cs:u:k", 4),
        ("{cs}:", 5),
        ("{cs}:q", 5),
        ("sched:sched_switch:z", 19),
        ("cpu/event=1/z", 12),
        ("cpu/event=1/:z", 13),
        ("mem:0x10:", 9),
        ("mem:0x10:w:z", 11),
        ("uprobe:/a:b:z", 12),
    ] {
        let error = names().parse(list).expect_err(list);
        assert_eq!(error.position(), position, "{list}");
        assert!(error.expected().starts_with("a modifier (one of u k h"), "{list}");
    }
}

/// Check that misspelt names lead to those that were meant.
#[test]
fn near_matches() {
    for (list, expected) in [
        ("cylces", &["cycles"][..]),
        ("cylces:u", &["cycles"]),
        ("page-fault", &["page-faults"]),
        ("L1-dcache-lod-misses", &["L1-dcache-load-misses"]),
        ("L1-cache-loads", &["L1-dcache-loads", "L1-icache-loads"]),
        ("quite-something-else", &[]),
    ] {
        assert_eq!(names().parse(list).expect_err(list).near_matches(), expected, "{list}");
    }
}

/// Check the whole text of errors: caret under the place, in characters; long lists cut on both sides.
#[test]
fn texts() {
    let text = |list: &str| Names::system().parse(list).unwrap_err().to_string();
    assert_eq!(text(""), "expected an event, found nothing\n  \n  ^");
    assert_eq!(
        text("cs,\tpage-fault"),
        "expected an event, found 'page-fault'\n  cs, page-fault\n      ^\ndid you mean 'page-faults'?"
    );
    assert_eq!(
        text("{cs,r1:é},r2"),
        "expected a modifier (one of u k h I G H p D e, each once, p up to three times), found 'é'\n  \
         {cs,r1:é},r2\n         ^"
    );
    assert_eq!(
        text("cpu/é=1/,é"),
        "expected a term of letters, digits, '_', '-' and '.', found 'é'\n  cpu/é=1/,é\n      ^"
    );
    assert_eq!(
        text("a:é,cs"),
        "expected a tracepoint's name of letters, digits, '_', '-' and '.', found 'é'\n  a:é,cs\n    ^"
    );
    let long = format!("{}{}", "cs,".repeat(100), "?".repeat(100));
    let expected = format!(
        "expected an event, found '{}'\n  {}{}\n  {}^",
        "?".repeat(40),
        "cs,".repeat(20),
        "?".repeat(60),
        " ".repeat(60)
    );
    assert_eq!(text(&long), expected);
}

/// Check that the length of a list is bounded.
#[test]
fn length() {
    let longest = format!("{},r1", "cs,".repeat(21_844));
    let list = format!("{}{}", "cs,".repeat(21_844), "r111");
    assert_eq!(list.len(), 65_536);
    assert_eq!(names().parse(&list).unwrap().len(), 21_845);
    let error = names().parse(&format!("{longest}11")).unwrap_err();
    assert_eq!((error.position(), error.expected()), (0, "at most 65536 bytes"));
}
