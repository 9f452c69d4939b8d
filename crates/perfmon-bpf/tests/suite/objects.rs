// guest rows: arm64-6.12, x86_64-6.1
use perfmon_bpf::{Layout, Loader, Object};

use crate::helper::{
    ACCOUNT, CORE, LAB, SECTIONS, allowed, count, each_page_fault, lab, touch_fresh_pages,
};

/// Check that offsets are those of the running kernel: what the program reads of its thread is right.
#[test]
fn types_are_relocated_to_the_kernel() {
    let name = "types_are_relocated_to_the_kernel";
    let object = Object::parse("core", CORE).unwrap();
    let Some(loaded) = allowed(name, Loader::new().load(&object)) else { return };
    let event = each_page_fault();
    let _link = loaded.program("core_probe").unwrap().attach_event(&event, 0).unwrap();
    perfmon_sys::enable(&event).unwrap();
    touch_fresh_pages();
    perfmon_sys::disable(&event).unwrap();
    let memory = loaded.map("ANSWERS").unwrap().share_memory(false).unwrap();
    let answer = |number: usize| memory.word(number * 8).unwrap().load();
    assert_eq!(answer(0), count(&event));
    let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let parent = std::os::unix::process::parent_id();
    let expected = [tid, std::process::id(), parent].map(u64::from);
    assert_eq!([1, 2, 3].map(answer), expected);
    // A field that exists, one that does not, and where the first one is.
    let types = perfmon_bpf::kernel_types().unwrap();
    let offset = u64::from(types.offset("task_struct", &["pid"]).unwrap());
    assert_eq!([4, 5, 6].map(answer), [1, 0, offset]);
    let comm = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    let bytes: Vec<u8> = [7, 8].into_iter().flat_map(|n| answer(n).to_ne_bytes()).collect();
    assert_eq!(String::from_utf8_lossy(&bytes).trim_end_matches('\0'), comm.trim_end());
}

/// Check that sections that the parser does not know are loaded, and globals set and shared.
#[test]
fn other_sections_are_loaded() {
    const MMAPABLE: u32 = 1 << 10;
    let object = Object::parse("sections", SECTIONS).unwrap();
    assert_eq!(object.programs(), ["add_up", "many"]);
    assert_eq!(
        (object.section("add_up"), object.section("many")),
        (Some("syscall"), Some("uprobe.multi"))
    );
    let loader = Loader::new().set("start", 100u64).flags(".bss", MMAPABLE).without("many");
    let Some(loaded) = allowed("other_sections_are_loaded", loader.load(&object)) else { return };
    let run = |_| loaded.program("add_up").unwrap().run(None, &[]).unwrap();
    assert_eq!([0; 3].map(run), [101, 102, 103]);
    let bss = loaded.map(".bss").unwrap().share_memory(false).unwrap();
    assert_eq!(bss.word(0).unwrap().load(), 3);
    let all = Loader::new().load(&object).unwrap_err().to_string();
    assert!(all.contains("program many") && all.contains("uprobe.multi"), "{all}");
}

/// Check that the product's programs are ready to be loaded, and that a struct that differs is refused.
#[test]
fn the_products_programs_are_ready() {
    let object = Object::parse("account", ACCOUNT).unwrap();
    Loader::new().prepare(&object).unwrap();
    let layout = |bytes, offset| Layout {
        name: "TaskState",
        bytes,
        members: if offset { &[("last_switch_ns", 8)] } else { &[("last_switch_ns", 0)] },
    };
    let parse = |layout| {
        Object::parse_with("lab", LAB, &[layout]).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(parse(layout(16, true)), Ok(()));
    assert!(
        parse(layout(24, true))
            .unwrap_err()
            .contains("struct TaskState has 16 bytes in it, and 24 here")
    );
    assert!(
        parse(layout(16, false))
            .unwrap_err()
            .contains("TaskState.last_switch_ns is at 8 in it, and at 0 here")
    );
    assert_eq!(lab().name(), "lab");
}
