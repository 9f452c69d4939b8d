// guest rows: arm64-6.12, x86_64-6.1
use perfmon_bpf::{Abilities, Loader};

use crate::helper::load_lab;

/// Check that what the lab needs is said to be there where it loads, and for the rest why not.
#[test]
fn what_loads_is_available() {
    let name = "what_loads_is_available";
    if load_lab(name, &Loader::new()).is_none() {
        return;
    }
    for needed in ["type information", "programs", "programs on events", "task storage"] {
        assert_eq!(Abilities::here().get(needed).unwrap().available, Ok(()), "{needed}");
    }
    for lacking in Abilities::here().iter().filter_map(|it| it.available.as_ref().err()) {
        assert!(!lacking.why.is_empty());
    }
    assert!(Abilities::here().get("magic").is_none());
}

/// Check that everything has a name of its own and says what it is for, and that a second look is the same.
#[test]
fn abilities_are_named() {
    let mut names: Vec<_> = Abilities::here().iter().map(|ability| ability.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Abilities::here().iter().count());
    assert!(Abilities::here().iter().all(|ability| !ability.serves.is_empty()));
    assert!(std::ptr::eq(Abilities::here(), Abilities::here()));
}
