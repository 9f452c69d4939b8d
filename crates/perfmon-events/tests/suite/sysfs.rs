use crate::{check, check_refused, event};

/// Check that terms go to the bits that the PMU's format names, split fields included.
#[test]
fn terms() {
    for (text, expected) in [
        ("cpu/event=0x3c/", "type 4 config 0x3c"),
        ("cpu/event=60/", "type 4 config 0x3c"),
        ("cpu/event=0xabc/", "type 4 config 0xa000000bc"),
        ("cpu/event=0x3c,umask=0x1/", "type 4 config 0x13c"),
        ("cpu/ event = 0x3c , umask = 0x1 /", "type 4 config 0x13c"),
        ("cpu/edge/", "type 4 config 0x40000"),
        ("cpu/edge=0/", "type 4 config 0x0"),
        ("cpu/ends=0x9/", "type 4 config 0x8000000000000001"),
        ("cpu/ends=0xf/", "type 4 config 0xc000000000000003"),
        ("cpu/ldlat=0xffff/", "type 4 config 0x0 config1 0xffff"),
        ("cpu/whole=0xffffffffffffffff/", "type 4 config 0x0 config2 0xffffffffffffffff"),
        ("cpu/third=0xf/", "type 4 config 0x0 config3 0xf0"),
        (
            "cpu/config=0x1,config1=2,config2=3,config3=4/",
            "type 4 config 0x1 config1 0x2 config2 0x3 config3 0x4",
        ),
        ("cpu/config=0x1,ldlat=7/", "type 4 config 0x1 config1 0x7"),
        ("cpu_atom/config=0x3/", "type 10 config 0x3"),
        ("cpu/event=1/u", "type 4 config 0x1 -k -h"),
        ("cpu/event=1/:u", "type 4 config 0x1 -k -h"),
        ("cpu/event=1/ppDG", "type 4 config 0x1 precise 0x2 -host pinned"),
    ] {
        check(text, expected);
    }
}

/// Check that the names of a PMU's events stand for their terms, and that typed terms go first.
#[test]
fn aliases() {
    for (text, expected) in [
        ("cpu/cpu-cycles/", "type 4 config 0x3c"),
        ("cpu/cpu-cycles,umask=1/", "type 4 config 0x13c"),
        ("cpu/edges/", "type 4 config 0x4010e"),
        ("cpu/mem-loads/", "type 4 config 0x1cd config1 0x3"),
        ("cpu/mem-loads,ldlat=30/", "type 4 config 0x1cd config1 0x1e"),
        ("cpu/ldlat=30,mem-loads/p", "type 4 config 0x1cd config1 0x1e precise 0x1"),
        ("cpu/chip,umask=7/", "type 4 config 0x702"),
    ] {
        check(text, expected);
    }
}

/// Check that scale, unit and CPUs of a PMU come with its events.
#[test]
fn units_and_cpus() {
    for (text, scale, unit, cpus) in [
        ("uncore_imc_0/cas_count_read/", 6.103515625e-5, "MiB", Some(vec![0, 18])),
        ("uncore_imc_0/clockticks/", 1.0, "events", Some(vec![0, 18])),
        ("uncore_imc_0/event=4/", 1.0, "events", Some(vec![0, 18])),
        ("power/energy-pkg/", 2.3283064365386963e-10, "Joules", Some(vec![0])),
        ("power/no-scale/", 1.0, "Joules", Some(vec![0])),
        ("power/no-unit/", 0.5, "events", Some(vec![0])),
        ("cpu_atom/config=1/", 1.0, "events", Some(vec![4, 5, 6, 7])),
        ("cpu/event=1/", 1.0, "events", None),
    ] {
        let event = event(text);
        assert!(event.encoding.is_ok(), "{text}");
        assert_eq!((event.scale, &*event.unit, event.cpus), (scale, unit, cpus), "{text}");
    }
}

/// Check that what the PMU does not have, or can't hold, is that event's refusal.
#[test]
fn refusals() {
    for (text, expected) in [
        ("cpuu/event=1/", "there is no PMU 'cpuu' on this machine; did you mean 'cpu'?"),
        ("elsewhere/event=1/", "there is no PMU 'elsewhere' on this machine; ls "),
        ("cpu/evnet=1/", "the PMU 'cpu' has no term 'evnet'; did you mean 'event'?"),
        ("cpu/cpu-cycle/", "the PMU 'cpu' has no term 'cpu-cycle'; did you mean 'cpu-cycles'?"),
        ("power/watts=1/", "it has: event, bad-scale, energy-pkg, no-scale, no-unit"),
        ("cpu_atom/event=1/", "it has none but config, config1, …"),
        ("cpu/event=0x1000/", "term 'event' is at most 0xfff, not 0x1000"),
        ("cpu/edge=2/", "term 'edge' is at most 0x1, not 0x2"),
        ("cpu/event=1,event=1/", "term 'event' shares bits of config with another term"),
        ("cpu/config=1,umask=0/", "term 'umask' shares bits of config with another term"),
        ("cpu/ldlat=1,frontend=1/", "term 'frontend' shares bits of config1 with another term"),
        ("cpu/cpu-cycles,ends=0/", "term 'ends' shares bits of config with another term"),
        ("cpu/cpu-cycles,mem-loads/", "two events of PMU 'cpu' in one"),
        (
            "cpu/chip/",
            "event 'chip' of PMU 'cpu' needs a value for 'umask'; write cpu/chip,umask=VALUE/",
        ),
        ("cpu/damaged/", "is defined as 'event=zero': unknown form"),
        (
            "cpu/backwards=1/",
            "the format of term 'backwards' of PMU 'cpu' is unknown: 'config:7-0'",
        ),
        ("cpu/too_high=1/", "is unknown: 'config:60-64'"),
        ("cpu/twice=1/", "is unknown: 'config:0-3,2-5'"),
        ("cpu/elsewhere=1/", "is unknown: 'attr:0-3'"),
        ("cpu/event=1,name=mine/", "the term 'name' says nothing about what is counted"),
        ("cpu/event=1,period=1000/", "the term 'period' says nothing about what is counted"),
        ("power/bad-scale/", "the scale of event 'bad-scale' is no number: 'half'"),
        ("power/energy-pkg.scale/", "the PMU 'power' has no term 'energy-pkg.scale'"),
        ("no_number/config=1/", "the type of PMU 'no_number' is no number: 'ten'"),
        ("bad_mask/config=1/", "cpumask of PMU 'bad_mask' names no CPUs: '3-1'"),
        ("software/config=3/u", "write the event's name alone"),
        ("tracepoint/config=314/", "write GROUP:NAME"),
        ("uprobe/retprobe=1/", "write uprobe:PATH:SYMBOL"),
    ] {
        check_refused(text, expected);
    }
}

/// Check that one event's refusal leaves the others of the list alone.
#[test]
fn batch() {
    let events = crate::names().parse("cpu/event=1/,nowhere/event=1/,cs").unwrap();
    let good: Vec<bool> = events.iter().map(|event| event.encoding.is_ok()).collect();
    assert_eq!(good, [true, false, true]);
}
