use std::path::PathBuf;

use perfmon_core::{Encoding, Privilege};
use perfmon_events::{Event, Names};

use crate::{check_refused, names};

/// The tree of a kernel that has kprobes; removed when dropped.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("perfmon-{}-{name}", std::process::id()));
        let device = root.join("bus/event_source/devices/kprobe");
        std::fs::create_dir_all(device.join("format")).unwrap();
        std::fs::write(device.join("type"), "6\n").unwrap();
        std::fs::write(device.join("format/retprobe"), "config:0\n").unwrap();
        Self(root)
    }

    fn event(&self, text: &str) -> Event {
        Names::with_roots(&self.0, &self.0).parse(text).unwrap().remove(0)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Check that a probe's encoding holds the PMU, the function and the offset in it.
#[test]
fn encoding() {
    let tree = Tree::new("kprobes-encoding");
    let expected = Encoding { pmu_type: 6, path: Some(c"do_exit".into()), ..Encoding::default() };
    let encoding = |text: &str| Encoding::clone(&tree.event(text).encoding.unwrap());
    assert_eq!(encoding("kprobe:do_exit"), expected);
    assert_eq!(encoding("kretprobe:do_exit"), Encoding { config: 1, ..expected.clone() });
    assert_eq!(encoding("kprobe:do_exit+0x10"), Encoding { config2: 16, ..expected.clone() });
    let privilege = Privilege { exclude_user: true, exclude_hv: true, ..Privilege::default() };
    assert_eq!(encoding("kprobe:do_exit:k"), Encoding { privilege, ..expected });
}

/// Check that what would always read 0, or is no place for a probe, is refused.
#[test]
fn refused() {
    let tree = Tree::new("kprobes-refused");
    let refusal = |text: &str| tree.event(text).encoding.unwrap_err();
    let blind = "this probe lies in the kernel: without 'k' it always reads 0";
    assert_eq!(refusal("kprobe:do_exit:u").why(), blind);
    let middle = "a return probe belongs on the first instruction of a function";
    assert_eq!(refusal("kretprobe:do_exit+4").why(), middle);
    assert_eq!(
        refusal("kprobe:do_exit:G").why(),
        "this event ignores 'G': it would count on the host"
    );
    // The fixture's kernel has none.
    check_refused("kprobe:do_exit", "probes of the kernel need CONFIG_KPROBE_EVENTS");
    check_refused("kprobe/config=1/", "write kprobe:FUNCTION");
}

/// Check that a probe without a function is an error.
#[test]
fn errors() {
    for (text, expected) in [("kprobe:", "a symbol"), ("kprobe:0x1000", "a function of the kernel")]
    {
        let error = names().parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
