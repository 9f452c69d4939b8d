// guest rows: arm64-6.12, x86_64-6.1
use std::io::Write;
use std::sync::Arc;

use perfmon_sys::{BpfMap, BpfRing, Errno, MapSpec, SharedMemory, Together, id_of, map_type};

use crate::helper::skipped;

const NO_PREALLOC: u32 = 1;

/// A map, or word that test `name` did not run.
fn map(name: &str, map_type: u32, max_entries: u32) -> Option<BpfMap> {
    let (key_bytes, value_bytes) = if map_type == map_type::RINGBUF { (0, 0) } else { (4, 8) };
    let flags = if map_type == map_type::HASH { NO_PREALLOC } else { 0 };
    let spec = MapSpec { map_type, key_bytes, value_bytes, max_entries, flags };
    match BpfMap::create(name, spec, None, None) {
        Ok(map) => {
            assert_eq!(map.spec(), spec);
            Some(map)
        }
        Err(errno @ (Errno::PERM | Errno::NOSYS)) => {
            skipped(name, format!("making a map: {errno}"));
            None
        }
        Err(errno) => panic!("{errno}"),
    }
}

/// Check that keys and values of other sizes than the map's never reach the kernel, which would read past them.
#[test]
fn sizes_are_the_maps() {
    let Some(map) = map("sizes_are_the_maps", map_type::HASH, 2) else { return };
    let key = 7u32.to_ne_bytes();
    for length in [0, 7, 9, 64] {
        assert_eq!(map.update(&key, &vec![0; length]), Err(Errno::INVAL), "{length}");
        assert_eq!(map.lookup(&key, &mut vec![0; length]), Err(Errno::INVAL), "{length}");
    }
    for length in [0, 3, 5, 8] {
        let key = vec![0; length];
        assert_eq!(map.update(&key, &[0; 8]), Err(Errno::INVAL), "{length}");
        assert_eq!(map.lookup(&key, &mut [0; 8]), Err(Errno::INVAL), "{length}");
        assert_eq!(map.delete(&key), Err(Errno::INVAL), "{length}");
        assert_eq!(map.next_key(Some(&key), &mut [0; 4]), Err(Errno::INVAL), "{length}");
        assert_eq!(map.next_key(None, &mut vec![0; length]), Err(Errno::INVAL), "{length}");
    }
    assert_eq!(map.lookup(&key, &mut [0; 8]), Err(Errno::NOENT));
    assert_eq!(map.delete(&key), Err(Errno::NOENT));
    assert_eq!(map.update(&key, &5u64.to_ne_bytes()), Ok(()));
    assert_eq!(map.update(&8u32.to_ne_bytes(), &[0; 8]), Ok(()));
    assert_eq!(map.update(&9u32.to_ne_bytes(), &[0; 8]), Err(Errno::TOOBIG));
    let (mut first, mut second) = ([0; 4], [0; 4]);
    assert_eq!(map.next_key(None, &mut first), Ok(()));
    assert_eq!(map.next_key(Some(&first), &mut second), Ok(()));
    assert_eq!(map.next_key(Some(&second), &mut [0; 4]), Err(Errno::NOENT));
    let mut keys = [first, second].map(u32::from_ne_bytes);
    keys.sort_unstable();
    assert_eq!(keys, [7, 8]);
    let mut value = [0; 8];
    assert_eq!((map.lookup(&key, &mut value), value), (Ok(()), 5u64.to_ne_bytes()));
    let same = map.try_clone().unwrap();
    assert_eq!((same.delete(&key), map.lookup(&key, &mut value)), (Ok(()), Err(Errno::NOENT)));
}

/// Check that maps of values per CPU, of which the kernel copies one for each CPU, are refused.
#[test]
fn values_per_cpu_are_refused() {
    let name = "values_per_cpu_are_refused";
    for map_type in [map_type::PERCPU_ARRAY, map_type::PERCPU_HASH, map_type::LRU_PERCPU_HASH] {
        let Some(map) = map(name, map_type, 1) else { return };
        assert_eq!(map.lookup(&[0; 4], &mut [0; 8]), Err(Errno::INVAL));
        assert_eq!(map.update(&[0; 4], &[0; 8]), Err(Errno::INVAL));
    }
}

/// Check that a map found by its descriptor has its sizes, and that what is none is refused.
#[test]
fn other_descriptors_are_no_maps() {
    let name = "other_descriptors_are_no_maps";
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert_eq!(BpfMap::from_fd(file.into()).unwrap_err(), Errno::INVAL);
    let Some(map) = map(name, map_type::ARRAY, 3) else { return };
    let fd = std::os::fd::AsFd::as_fd(&map).try_clone_to_owned().unwrap();
    let again = BpfMap::from_fd(fd).unwrap();
    assert_eq!((again.spec(), id_of(&again)), (map.spec(), id_of(&map)));
}

/// Check that a ring is a ring buffer, of its whole size.
#[test]
fn rings_are_ring_buffers() {
    let name = "rings_are_ring_buffers";
    let Some(array) = map(name, map_type::ARRAY, 4096) else { return };
    assert_eq!(BpfRing::map(&array).unwrap_err(), Errno::INVAL);
    let bytes = u32::try_from(rustix::param::page_size()).unwrap();
    let ring = map(name, map_type::RINGBUF, bytes).unwrap();
    assert_eq!(BpfRing::map(&ring).unwrap().drain(|_| panic!("nobody wrote")), 0);
}

/// Check that words lie inside of the memory and are aligned, and that nothing is written to what is read only.
#[test]
fn words_lie_inside() {
    let path = std::env::temp_dir().join(format!("perfmon-words-{}", std::process::id()));
    let bytes = rustix::param::page_size();
    let mut file =
        std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all(&vec![0; bytes]).unwrap();
    std::fs::remove_file(&path).unwrap();
    let memory = SharedMemory::map(&file, 0, bytes, true).unwrap();
    let read_only = SharedMemory::map(&file, 0, bytes, false).unwrap();
    assert_eq!(memory.length(), bytes);
    for outside in [bytes, bytes - 7, bytes - 4, bytes + 8, 4, 1, usize::MAX, usize::MAX - 7] {
        assert!(memory.word(outside).is_none(), "{outside}");
    }
    memory.word(bytes - 8).unwrap().store(u64::MAX - 1);
    assert_eq!(read_only.word(bytes - 8).unwrap().load(), u64::MAX - 1);
    read_only.word(bytes - 8).unwrap().store(3);
    assert_eq!(memory.word(bytes - 8).unwrap().load_relaxed(), u64::MAX - 1);
    assert!(SharedMemory::map(&file, 1, bytes, false).is_err());
    assert!(SharedMemory::map(&file, 0, 0, false).is_err());
}

/// Check that words are read together, or not at all while their sequence is odd or changes, and lie inside.
#[test]
fn words_are_read_together() {
    let bytes = rustix::param::page_size();
    let file = std::fs::File::from(
        rustix::fs::memfd_create("together", rustix::fs::MemfdFlags::CLOEXEC).unwrap(),
    );
    file.set_len(bytes as u64).unwrap();
    let memory = Arc::new(SharedMemory::map(&file, 0, bytes, true).unwrap());
    for outside in [bytes, bytes - 16, 4, usize::MAX - 7] {
        assert!(Together::<3>::at(&memory, outside).is_none(), "{outside}");
    }
    let last = bytes - 24;
    let together = Together::<3>::at(&memory, last).unwrap();
    let set = |number: usize, value| memory.word(last + 8 * number).unwrap().store(value);
    [(0, 4), (1, 10), (2, 20)].into_iter().for_each(|(number, value)| set(number, value));
    assert_eq!(together.read(1, || 7), Some(([4, 10, 20], 7)));
    set(0, 5);
    assert_eq!(together.read(10, || ()), None);
    set(0, 6);
    let mut rounds = 0;
    let read = together.read(10, || {
        rounds += 1;
        if rounds < 3 {
            set(0, 6 + 2 * rounds);
        }
        rounds
    });
    assert_eq!(read, Some(([10, 10, 20], 3)));
    let mut sequence = 10;
    let never = together.read(10, || {
        sequence += 2;
        set(0, sequence);
    });
    assert_eq!((never, sequence), (None, 30));
}
