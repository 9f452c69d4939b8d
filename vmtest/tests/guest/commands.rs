// guest rows: exact
//! Instructions of commands, through `pfmon stat`.

use crate::helper::{
    assert_instructions, counts_instructions, exact_counts, number, of_loop, pfmon, program,
};

const MILLION: u64 = 1_000_000;
/// So many iterations take long enough for the first thread to sleep until they are done: waiting takes other
/// instructions than finding the work done.
const WAITED_FOR: u64 = 4_000_000;

/// The counts of `perfmon-known` with `work`, counted with `args`.
fn known(args: &[&str], work: &[&str]) -> Vec<u64> {
    let program = program("perfmon-known");
    exact_counts(&pfmon("stat", &[args, &["--", &program], work].concat()))
}

/// Check that a command's loop is counted, alone and in a group, and twice alike.
#[test]
fn a_command_is_counted() {
    if !counts_instructions("a_command_is_counted") {
        return;
    }
    for events in
        ["instructions:u", "{instructions:u,cycles:u}", "cycles:u,{instructions:u,page-faults:u}"]
    {
        let place = usize::from(events.starts_with("cycles"));
        let count = |iterations| known(&["-e", events], &["spin", &number(iterations)])[place];
        let short = count(1);
        for _ in 0..2 {
            assert_instructions(count(1 + MILLION), short + of_loop(MILLION));
        }
    }
}

/// Check that descendants are counted with the command, and left out on request.
#[test]
fn descendants_are_counted() {
    if !counts_instructions("descendants_are_counted") {
        return;
    }
    let count = |args: &[&str], work: &str, iterations| {
        let args = [&["-e", "instructions:u"], args].concat();
        known(&args, &[work, "3", &number(iterations)])[0]
    };
    for (work, loops) in [("processes", 3), ("threads", 1 + 2 + 3)] {
        let short = count(&[], work, WAITED_FOR);
        let long = count(&[], work, WAITED_FOR + MILLION);
        assert_instructions(long, short + loops * of_loop(MILLION));
        let alone = count(&["--no-inherit"], work, WAITED_FOR);
        assert_instructions(count(&["--no-inherit"], work, WAITED_FOR + MILLION), alone);
    }
}

/// Check that each thread's row has its own loop, or, on kernels whose threads leave no record, that the rest has all.
#[test]
fn threads_have_rows() {
    if !counts_instructions("threads_have_rows") {
        return;
    }
    let count = |iterations| {
        known(&["--per-thread", "-e", "instructions:u"], &["threads", "3", &number(iterations)])
    };
    let (short, long) = (count(WAITED_FOR), count(WAITED_FOR + MILLION));
    let grown: Vec<u64> = short.iter().zip(&long).map(|(short, long)| long - short).collect();
    match grown[..] {
        [rest] => assert_instructions(rest, 6 * of_loop(MILLION)),
        [first, one, two, three] => {
            assert_instructions(first, 0);
            for (loops, grown) in (1..).zip([one, two, three]) {
                assert_instructions(grown, loops * of_loop(MILLION));
            }
        }
        _ => panic!("{short:?} {long:?}"),
    }
}

/// Check that repeated runs are alike.
#[test]
fn repeats_are_alike() {
    const NAME: &str = "repeats_are_alike";
    if !counts_instructions(NAME) {
        return;
    }
    let known = program("perfmon-known");
    let args = ["-r", "5", "-e", "instructions:u", "--", &known, "spin", &number(MILLION)];
    let repeats = &pfmon("stat", &args)["events"][0]["repeats"];
    let number = |name: &str| repeats[name].as_f64().unwrap();
    let least = u32::try_from(of_loop(MILLION)).unwrap();
    assert!(number("min") >= f64::from(least), "{repeats}");
    if crate::helper::Guest::exact(NAME).is_some() {
        assert_eq!((number("min"), number("stddev")), (number("max"), 0.0), "{repeats}");
    }
}
