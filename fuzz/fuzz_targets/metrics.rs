//! Groups of events with metrics: the first byte chooses perfmon's format or LIKWID's. Every metric of a group that
//! can be read has a value, or says why not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use perfmon_events::metrics::{Group, MetricValue, Operand};

fuzz_target!(|input: (bool, &str)| {
    let (is_likwid, text) = input;
    let group = match is_likwid {
        true => Group::from_likwid(text, "fuzzed.txt"),
        false => Group::from_toml(text, "fuzzed.toml"),
    };
    let group = match group {
        Ok(group) => group,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let _ = group.event_list();
    let values: [fn(&str) -> Operand; 4] = [
        |_| Operand::Exact(0.0),
        |variable| Operand::Exact(variable.len() as f64 * 1e300),
        |_| Operand::Estimated(-1.5),
        |_| Operand::Missing("not counted".to_owned()),
    ];
    for metric in &group.metrics {
        for value in values {
            for across_groups in [false, true] {
                match metric.evaluate(&value, across_groups) {
                    MetricValue::Exact(value) | MetricValue::Estimated(value) => {
                        assert!(value.is_finite(), "{}: {value}", metric.name);
                    }
                    MetricValue::Undefined(why) | MetricValue::Missing(why) => {
                        assert!(!why.is_empty());
                    }
                    MetricValue::Refused(refusal) => assert!(!refusal.to_string().is_empty()),
                }
            }
        }
    }
});
