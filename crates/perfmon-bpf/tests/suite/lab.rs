// guest rows: arm64-6.12, x86_64-6.1
use perfmon_bpf::{BpfRing, Errno, Error, Loader, map_type};

use crate::helper::{lab, load_lab, run, state, value};

/// Check that calls of a subprogram are linked: 3 × (3 × 5 + 1) + 1.
#[test]
fn subprograms_are_called() {
    let Some(loaded) = load_lab("subprograms_are_called", &Loader::new()) else { return };
    assert_eq!(run(&loaded, "calls", &[5]), 49);
    assert_eq!(run(&loaded, "calls", &[0]), 4);
}

/// Check that a program goes on with what is plugged in, and only while it is.
#[test]
fn tail_calls_go_to_what_is_plugged_in() {
    let name = "tail_calls_go_to_what_is_plugged_in";
    let Some(loaded) = load_lab(name, &Loader::new()) else { return };
    let next = loaded.map("NEXT").unwrap();
    assert_eq!(run(&loaded, "goes_on", &[0]), 7);
    next.plug(0, loaded.program("gone_on").unwrap()).unwrap();
    assert_eq!((run(&loaded, "goes_on", &[0]), run(&loaded, "goes_on", &[0])), (11, 11));
    assert_eq!(run(&loaded, "goes_on", &[1]), 7);
    assert_eq!(state(&loaded, 3), 2);
    next.unplug(0).unwrap();
    assert_eq!((run(&loaded, "goes_on", &[0]), state(&loaded, 3)), (7, 2));
    assert_eq!(next.unplug(0).unwrap_err().errno(), Some(Errno::NOENT));
    assert_eq!(
        next.plug(2, loaded.program("gone_on").unwrap()).unwrap_err().errno(),
        Some(Errno::TOOBIG)
    );
}

/// Check sums in a hash of the size that the object declares and of another one.
#[test]
fn maps_have_the_entries_wanted() {
    let name = "maps_have_the_entries_wanted";
    let Some(loaded) = load_lab(name, &Loader::new()) else { return };
    assert_eq!((run(&loaded, "adds", &[1, 10]), run(&loaded, "adds", &[1, 5])), (10, 15));
    assert_eq!(value(&loaded, "NAMED", &1u64.to_ne_bytes()), Ok(15));
    assert_eq!(run(&loaded, "adds", &[1, 15_u64.wrapping_neg()]), 0);
    assert_eq!(value(&loaded, "NAMED", &1u64.to_ne_bytes()), Err(Errno::NOENT));
    let fill = |keys: u64, loaded| (1..=keys).map(|key| run(loaded, "adds", &[key, key])).collect();
    let answers: Vec<u32> = fill(5, &loaded);
    assert_eq!(answers, [1, 2, 3, 4, 1000]);
    let larger = Loader::new().entries("NAMED", 8).load(&lab()).unwrap();
    assert_eq!(larger.map("NAMED").unwrap().spec().max_entries, 8);
    let answers: Vec<u32> = fill(9, &larger);
    assert_eq!(answers, [1, 2, 3, 4, 5, 6, 7, 8, 1000]);
    let counters = loaded.map("COUNTERS").unwrap().spec();
    assert_eq!((counters.map_type, counters.max_entries), (map_type::PERF_EVENT_ARRAY, 64));
}

/// Check that even notes come through the ring buffer in order, and that a ring that is full takes no more.
#[test]
fn notes_come_in_order() {
    const NOTE_BYTES: usize = 24;
    let bytes = rustix::param::page_size();
    let loader = Loader::new().entries("STREAM", u32::try_from(bytes).unwrap());
    let Some(loaded) = load_lab("notes_come_in_order", &loader) else { return };
    let mut ring = BpfRing::map(loaded.map("STREAM").unwrap().raw()).unwrap();
    let word = |note: &[u8], at: usize| u64::from_ne_bytes(note[at..at + 8].try_into().unwrap());
    let mut notes = Vec::new();
    for value in 0..10 {
        assert_eq!(run(&loaded, "notes", &[value]), 1);
    }
    assert_eq!(ring.drain(|note| notes.push((word(note, 0), word(note, 8)))), 5);
    assert_eq!(notes, [(1, 0), (3, 2), (5, 4), (7, 6), (9, 8)]);
    // Many times round the ring.
    let fits = bytes / NOTE_BYTES;
    for _ in 0..20 {
        let taken = (0..fits + 30).filter(|_| run(&loaded, "notes", &[2]) == 1).count();
        assert_eq!((taken, ring.drain(|note| assert_eq!(word(note, 8), 2))), (fits, fits));
    }
    assert_eq!(ring.drain(|_| panic!("nothing is left")), 0);
}

/// Check that settings change what programs do, and that a wrong size or name is refused by name.
#[test]
fn settings_are_of_the_right_name_and_size() {
    let object = lab();
    let refused = |loader: Loader<'_>| loader.prepare(&object).unwrap_err().to_string();
    let text = refused(Loader::new().set("CAPACITY", 1u32));
    assert!(text.contains("CAPACITY") && text.contains('8') && text.contains('4'), "{text}");
    let text = refused(Loader::new().set("CAPACITIES", 1u64));
    assert!(text.contains("CAPACITIES"), "{text}");
    for loader in [
        Loader::new().entries("NO_MAP", 1),
        Loader::new().flags("NO_MAP", 1),
        Loader::new().without("NO_MAP"),
    ] {
        let error = loader.prepare(&object).unwrap_err();
        assert!(matches!(&error, Error::Missing { name, .. } if name == "NO_MAP"), "{error}");
    }
    assert!(Loader::new().set("CAPACITY", 1u64).prepare(&object).is_ok());
}

/// Check that two loads share a map, and that one of other sizes is refused with both.
#[test]
fn maps_are_shared() {
    let Some(first) = load_lab("maps_are_shared", &Loader::new()) else { return };
    let object = lab();
    let second = Loader::new().share("STATE", first.map("STATE").unwrap()).load(&object).unwrap();
    let id = |loaded: &perfmon_bpf::Loaded, map: &str| {
        perfmon_sys::id_of(loaded.map(map).unwrap()).unwrap()
    };
    assert_eq!(id(&first, "STATE"), id(&second, "STATE"));
    assert_ne!(id(&first, "NAMED"), id(&second, "NAMED"));
    second.map("NEXT").unwrap().plug(1, second.program("gone_on").unwrap()).unwrap();
    assert_eq!(run(&second, "goes_on", &[1]), 11);
    assert_eq!((state(&first, 3), state(&second, 3)), (1, 1));
    let third = Loader::new().share_all(&first).load(&object).unwrap();
    assert_eq!(id(&first, "NAMED"), id(&third, "NAMED"));
    let named = first.map("NAMED").unwrap();
    let error = Loader::new().share("STATE", named).load(&object).unwrap_err();
    let text = error.to_string();
    assert!(matches!(&error, Error::Mismatch { map, .. } if map == "STATE"), "{text}");
    assert!(text.contains("value_bytes: 64") && text.contains("value_bytes: 8"), "{text}");
}

/// Check that a program can be left out, and that what is not there is said with what is.
#[test]
fn what_is_missing_is_named() {
    let name = "what_is_missing_is_named";
    let Some(loaded) = load_lab(name, &Loader::new().without("on_switch")) else { return };
    assert_eq!(loaded.programs().count(), lab().programs().len() - 1);
    let text = loaded.program("on_switch").unwrap_err().to_string();
    assert!(text.starts_with("lab has no program on_switch; it has adds, calls, "), "{text}");
    let text = loaded.map("NOTHING").unwrap_err().to_string();
    assert!(text.starts_with("lab has no map NOTHING; it has .rodata"), "{text}");
    assert!(text.contains(", ANSWERS, COUNTERS, NAMED, "), "{text}");
}

/// Check that an element that both sides map reads as the map does, and that no word lies outside.
#[test]
fn memory_is_shared() {
    let Some(loaded) = load_lab("memory_is_shared", &Loader::new()) else { return };
    let map = loaded.map("STATE").unwrap();
    let (memory, read_only) = (map.share_memory(true).unwrap(), map.share_memory(false).unwrap());
    memory.word(3 * 64).unwrap().store(41);
    loaded.map("NEXT").unwrap().plug(0, loaded.program("gone_on").unwrap()).unwrap();
    assert_eq!(run(&loaded, "goes_on", &[0]), 11);
    assert_eq!((read_only.word(3 * 64).unwrap().load(), state(&loaded, 3)), (42, 42));
    read_only.word(3 * 64).unwrap().store(0);
    assert_eq!(state(&loaded, 3), 42);
    assert!(memory.word(memory.length()).is_none());
    assert!(memory.word(memory.length() - 4).is_none() && memory.word(4).is_none());
    assert!(loaded.map("NAMED").unwrap().share_memory(false).is_err());
}
