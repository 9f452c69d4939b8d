//! Which events take turns.

use std::time::Duration;

use perfmon::{Event, Leave, Names, PlannedSet, Refusal, SetId, SetsFile};

use crate::args::{SetArgs, Stat};
use crate::cmd::fit::{split, written};
use crate::cmd::prober::Prober;
use crate::exit::Failure;

/// How long a set stays unless it is said.
const DWELL: Duration = Duration::from_millis(10);

/// The events of a measurement.
pub(crate) struct Chosen {
    /// Those that count all the time.
    pub(crate) always: Vec<Event>,
    /// Those that take turns, if any do.
    pub(crate) sets: Vec<PlannedSet>,
    /// What the user must know of the choice.
    pub(crate) notes: Vec<String>,
}

/// Sorts the events of `list`, and those of the options of sets, by whether they take turns.
pub(crate) fn choose(args: &Stat, names: &Names, list: &str) -> Result<Chosen, Failure> {
    let parse = |list: &str| names.parse(list).map_err(Failure::new);
    let options = &args.sets;
    check(options)?;
    let listed = if list.is_empty() { Vec::new() } else { parse(list)? };
    let mut chosen = Chosen { always: listed, sets: Vec::new(), notes: Vec::new() };
    if options.no_multiplex {
        check_fits(options, names, &chosen.always)?;
    } else if options.auto_sets {
        chosen = auto(options, names, chosen.always)?;
    } else if let Some(path) = &options.sets {
        let (always, sets) =
            SetsFile::read(path).and_then(|file| file.resolve(names)).map_err(Failure::new)?;
        chosen.always.extend(always);
        chosen.sets = sets;
    } else {
        let mut items = next_item(&chosen.always);
        for (text, id) in options.set.iter().zip(0..) {
            let (id, text, leave) = (SetId(id), text.clone(), leave(options));
            let mut events = parse(&text)?;
            events.iter_mut().for_each(|event| event.item += items);
            items = next_item(&events).max(items);
            chosen.sets.push(PlannedSet { id, events, text, leave });
        }
        check_counters(options, &chosen.sets)?;
    }
    apply_switch_on(options, names, &mut chosen.sets)?;
    Ok(chosen)
}

/// Refuses options that say nothing without others.
fn check(options: &SetArgs) -> Result<(), Failure> {
    let SetArgs {
        dwell,
        randomise_dwell,
        switch_on,
        estimator,
        max_error,
        residences,
        counters,
        no_multiplex,
        ..
    } = options;
    let needs_sets = [
        ("--dwell", dwell.is_some()),
        ("--randomise-dwell", randomise_dwell.is_some()),
        ("--switch-on", switch_on.is_some()),
        ("--estimator", estimator.is_some()),
        ("--max-error", max_error.is_some()),
        ("--residences", residences.is_some()),
        ("--counters", counters.is_some() && !no_multiplex),
    ];
    let alone = needs_sets.iter().find(|(_, given)| *given && !options.are_used());
    match alone {
        Some((name, _)) => Err(Failure::new(format!(
            "{name} is about event sets; name some with --set, or take --auto-sets"
        ))),
        None if options.switch_on.is_some() && options.randomise_dwell == Some(true) => {
            Err(Failure::new("--switch-on and --randomise-dwell exclude each other"))
        }
        None => Ok(()),
    }
}

/// The number of the list's item behind those of `events`.
fn next_item(events: &[Event]) -> usize {
    events.iter().map(|event| event.item + 1).max().unwrap_or(0)
}

/// When each set is left, but for `--switch-on`.
fn leave(options: &SetArgs) -> Leave {
    let randomised = options.randomise_dwell.unwrap_or(options.auto_sets);
    Leave::After { dwell: options.dwell.unwrap_or(DWELL), randomised }
}

/// Whether `events` fit at once: as the kernel says, or as `--counters` pretends.
fn fits(options: &SetArgs, prober: &Prober, events: &[&Event]) -> Result<bool, Failure> {
    match options.counters {
        Some(counters) => Ok(events.len() <= usize::from(counters)),
        None => prober.together(events),
    }
}

fn check_fits(options: &SetArgs, names: &Names, events: &[Event]) -> Result<(), Failure> {
    let prober = Prober::new();
    let had: Vec<&Event> =
        events.iter().filter(|event| prober.refusal(names, event).is_none()).collect();
    if fits(options, &prober, &had)? {
        return Ok(());
    }
    let how_many = match options.counters {
        Some(counters) => format!("there are {} events and {counters} counters", had.len()),
        None => "the PMU has too few counters, or other tools hold some".into(),
    };
    Err(Failure::new(format!(
        "the events do not fit at once: {how_many}; count fewer, or leave out --no-multiplex and take --auto-sets"
    )))
}

/// Splits `listed` into sets, unless all fit at once.
fn auto(options: &SetArgs, names: &Names, listed: Vec<Event>) -> Result<Chosen, Failure> {
    let prober = Prober::new();
    let mut refusals: Vec<Option<Refusal>> =
        listed.iter().map(|event| prober.refusal(names, event)).collect();
    let together = |places: &[usize]| {
        let events: Vec<&Event> = places.iter().filter_map(|at| listed.get(*at)).collect();
        fits(options, &prober, &events)
    };
    // What takes no counter counts all the time.
    let takes_turns = |event: &Event| {
        options.counters.is_some()
            || event.encoding.as_ref().is_ok_and(|it| !perfmon::is_software(it))
    };
    let mut kept = refusals.clone();
    for (event, refusal) in listed.iter().zip(&mut kept) {
        if !takes_turns(event) {
            *refusal = Some(Refusal::new("it takes no turn"));
        }
    }
    let before = kept.clone();
    let split = split::split(&listed, &mut kept, true, &together)?;
    for ((refusal, kept), before) in refusals.iter_mut().zip(kept).zip(before) {
        if before.is_none() {
            *refusal = kept;
        }
    }
    if split.groups.len() < 2 {
        let notes = vec!["all events fit at once: no sets".to_owned()];
        return Ok(Chosen { always: with_refusals(listed, refusals), sets: Vec::new(), notes });
    }
    let mut notes = Vec::new();
    if !split.is_smallest {
        notes.push("a split into fewer sets may exist: the search for it was too long".to_owned());
    }
    let text = |group: &Vec<usize>| written(&listed, std::slice::from_ref(group));
    let texts: Vec<String> = split.groups.iter().map(text).collect();
    let mut events: Vec<Option<Event>> =
        with_refusals(listed, refusals).into_iter().map(Some).collect();
    let mut take = |place: &usize| events.get_mut(*place).and_then(Option::take);
    let sets = split.groups.iter().zip(texts).zip(0..).map(|((group, text), id)| PlannedSet {
        id: SetId(id),
        text,
        events: group.iter().filter_map(&mut take).collect(),
        leave: leave(options),
    });
    let sets = sets.collect();
    Ok(Chosen { always: events.into_iter().flatten().collect(), sets, notes })
}

/// The events, those that can't be had with the reason.
fn with_refusals(mut events: Vec<Event>, refusals: Vec<Option<Refusal>>) -> Vec<Event> {
    for (event, refusal) in events.iter_mut().zip(refusals) {
        if let Some(refusal) = refusal {
            event.encoding = Err(refusal);
        }
    }
    events
}

/// Holds sets that were written to the counters that there are said to be.
fn check_counters(options: &SetArgs, sets: &[PlannedSet]) -> Result<(), Failure> {
    let Some(counters) = options.counters else { return Ok(()) };
    match sets.iter().find(|set| set.events.len() > usize::from(counters)) {
        Some(set) => Err(Failure::new(format!(
            "set {} ({}) has {} events, and there are {counters} counters; split it",
            set.id.0,
            set.text,
            set.events.len()
        ))),
        None => Ok(()),
    }
}

/// Lets the event of `--switch-on` end the turn of each set; it joins those that lack it.
fn apply_switch_on(
    options: &SetArgs,
    names: &Names,
    sets: &mut [PlannedSet],
) -> Result<(), Failure> {
    let Some(switch_on) = &options.switch_on else { return Ok(()) };
    let event = names.parse(&switch_on.event).map_err(Failure::new)?;
    let [event] = event.as_slice() else {
        return Err(Failure::new(format!(
            "--switch-on takes one event, and '{}' is several",
            switch_on.event
        )));
    };
    if let Err(refusal) = &event.encoding {
        return Err(Failure::new(format!("--switch-on {}: {refusal}", switch_on.event)));
    }
    for set in sets {
        let same = |other: &Event| other.encoding.as_ref().ok() == event.encoding.as_ref().ok();
        let place = set.events.iter().position(same).unwrap_or_else(|| {
            let item = next_item(&set.events);
            set.events.push(Event { item, ..event.clone() });
            set.events.len() - 1
        });
        set.leave = Leave::Overflow { event: place, period: switch_on.period };
    }
    Ok(())
}
