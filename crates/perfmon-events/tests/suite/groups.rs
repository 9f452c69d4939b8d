use perfmon_core::Group;

use crate::{names, show};

/// Check that braces number their groups from 0 and everything else is free.
#[test]
fn numbers() {
    let events = names().parse("cs,{cycles,instructions},r1, { r2 } ,r3").unwrap();
    let groups: Vec<Group> = events.iter().map(|event| event.group).collect();
    let (first, second) = (Group::Together(0), Group::Together(1));
    assert_eq!(groups, [Group::Free, first, first, Group::Free, second, Group::Free]);
}

/// Check that a group's modifiers go to each member, and to the end of its text.
#[test]
fn modifiers() {
    let list =
        "{cycles,r1:k, cpu/event=1/,cpu/event=2/p,mem:0x10,mem:0x10:w,sched:sched_switch:k}:kp";
    let events = names().parse(list).unwrap();
    let texts: Vec<&str> = events.iter().map(|event| event.text.as_str()).collect();
    let expected = [
        "cycles:kp",
        "r1:kp",
        "cpu/event=1/kp",
        "cpu/event=2/pkp",
        "mem:0x10:kp",
        "mem:0x10:w:kp",
        "sched:sched_switch:kp",
    ];
    assert_eq!(texts, expected);
    for (event, precise) in events.iter().zip([1, 1, 1, 2, 1, 1, 1]) {
        let expected = format!("precise {precise:#x} -u -h");
        assert!(show(event).contains(&expected), "{}", show(event));
    }
    assert!(names().parse("{cycles:p,instructions}:pp").is_ok());
    let error = names().parse("{instructions,cycles:pp}:ukpp").unwrap_err();
    assert_eq!(error.position(), 25);
    assert_eq!(error.expected(), "at most three 'p', with those of each member");
}

/// Check that each text of a group gives the same encoding when it is read again.
#[test]
fn texts_are_events() {
    let events = names().parse("{cycles:u,cpu/event=1/:G,r7:pp,mem:0x8/8:w}:kp").unwrap();
    for event in events {
        let again = crate::event(&event.text);
        assert_eq!(show(&again), show(&event));
        assert_eq!(again.text, event.text);
    }
}

/// Check that a group is pinned and exclusive by its first event, as the kernel has it.
#[test]
fn leader() {
    let events = names().parse("{cycles,instructions}:De,{r1:D,r2}").unwrap();
    let shown: Vec<String> = events.iter().map(show).collect();
    let expected = [
        "type 0 config 0x0 pinned exclusive",
        "type 0 config 0x1",
        "type 4 config 0x1 pinned",
        "type 4 config 0x2",
    ];
    assert_eq!(shown, expected);
    let events = names().parse("{r1,r2:D,r3:e}").unwrap();
    assert!(events[0].encoding.is_ok());
    for event in &events[1..] {
        assert!(show(event).contains("only the first event of a group"), "{}", show(event));
    }
}
