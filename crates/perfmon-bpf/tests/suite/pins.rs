// guest rows: arm64-6.12, x86_64-6.1
use std::path::{Path, PathBuf};

use perfmon_bpf::{Errno, Loader, Map, Object};

use crate::helper::{
    PLACES, allowed, each_page_fault, load_lab, run, skipped, state, touch_fresh_pages, value,
};

/// A BPF file system of the test's own, at a temporary place.
struct Files(PathBuf);

impl Files {
    fn mount(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped(name, "not root: mounting a file system needs privilege");
            return None;
        }
        let at = std::env::temp_dir().join(format!("perfmon-{name}-{}", std::process::id()));
        std::fs::create_dir(&at).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "bpf", "bpf"])
            .arg(&at)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            skipped(name, "no BPF file system can be mounted");
            std::fs::remove_dir(&at).unwrap();
            return None;
        }
        Some(Self(at))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Check that a pinned map outlives its object, with its content and sizes.
#[test]
fn pinned_maps_stay() {
    let name = "pinned_maps_stay";
    let Some(files) = Files::mount(name) else { return };
    let Some(loaded) = load_lab(name, &Loader::new()) else { return };
    loaded.map("NEXT").unwrap().plug(0, loaded.program("gone_on").unwrap()).unwrap();
    assert_eq!(run(&loaded, "goes_on", &[0]), 11);
    let map = loaded.map("STATE").unwrap();
    map.pin(&files.at("state")).unwrap();
    assert_eq!(map.pin(&files.at("state")).unwrap_err().errno(), Some(Errno::EXIST));
    let (id, spec) = (perfmon_sys::id_of(map).unwrap(), map.spec());
    drop(loaded);
    let map = Map::pinned(&files.at("state")).unwrap();
    assert_eq!((perfmon_sys::id_of(&map).unwrap(), map.spec()), (id, spec));
    let again = load_lab(name, &Loader::new().share("STATE", &map)).unwrap();
    assert_eq!(state(&again, 3), 1);
    assert_eq!(Map::pinned(&files.at("nothing")).unwrap_err().errno(), Some(Errno::NOENT));
    assert!(map.pin(Path::new("/proc/perfmon")).is_err());
    // A program is no map.
    again.program("calls").unwrap().pin(&files.at("calls")).unwrap();
    assert_eq!(Map::pinned(&files.at("calls")).unwrap_err().errno(), Some(Errno::INVAL));
}

/// Check that a program runs by its pinned link alone.
#[test]
fn pinned_links_stay() {
    let name = "pinned_links_stay";
    let Some(files) = Files::mount(name) else { return };
    let object = Object::parse("places", PLACES).unwrap();
    let Some(loaded) = allowed(name, Loader::new().load(&object)) else { return };
    let event = each_page_fault();
    let link = loaded.program("on_sample").unwrap().attach_event(&event, 3).unwrap();
    link.pin(&files.at("link")).unwrap();
    drop(link);
    perfmon_sys::enable(&event).unwrap();
    touch_fresh_pages();
    perfmon_sys::disable(&event).unwrap();
    assert_eq!(value(&loaded, "RUNS", &3u64.to_ne_bytes()), Ok(crate::helper::count(&event)));
}
