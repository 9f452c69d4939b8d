//! `pfmon list`: which events there are, and which of them open here.

mod found;
pub(crate) mod results;
mod search;
mod tries;

use std::process::ExitCode;

use perfmon::{Names, Wanted};

use crate::args::{List, Try};
use crate::cmd::names::{self, NOT_TRIED};
use crate::exit::Failure;
use crate::output::{self, Sink};
use found::Found;
use results::{ListResult, SCHEMA};
use search::Search;

/// Lists as `args` say, and gives the exit status.
pub(crate) fn run(args: &List) -> Result<ExitCode, Failure> {
    let names = names::names(&args.common)?;
    let mut search = Search::new(&args.words, args.regex)?;
    let wanted =
        Wanted { sources: args.source.clone(), pmu: args.of.clone(), other_machines: args.all };
    let mut found = Found::default();
    let mut notes = names.catalog(&wanted, &mut |entry| {
        if search.finds(&entry) {
            found.add(&entry);
        }
    });
    found.sort();
    notes.extend(names.problems());
    names::note(notes.iter().cloned());
    let here = args.common.is_here();
    let tried = tries::all(&names, &found, if here { args.tried } else { Try::None });
    if !here {
        notes.push(NOT_TRIED.into());
    }
    let nothing = found.events.is_empty();
    let result = ListResult {
        schema: SCHEMA,
        here,
        cpus: names.cpus().iter().map(ToString::to_string).collect(),
        events: results::rows(&found, &tried),
        notes,
        left_out: tried.left_out,
    };
    let about = |pmu: &str| names.description(pmu).map(|it| it.identity().about.as_str());
    if args.common.json || !nothing {
        output::list(&mut Sink::stdout(), args, &result, &about)?;
    }
    if nothing {
        Err(Failure::not_found(nothing_found(args, &names)))
    } else {
        Ok(ExitCode::SUCCESS)
    }
}

/// What was searched for in vain, and what may have been meant.
fn nothing_found(args: &List, names: &Names) -> String {
    let mut text = "no event".to_owned();
    if let Some(pmu) = &args.of {
        text += &format!(" of '{pmu}'");
    }
    let words: Vec<String> = args.words.iter().map(|word| format!("'{word}'")).collect();
    if !words.is_empty() {
        text += &format!(" matches {}", words.join(" and "));
    }
    let near = args.words.iter().filter_map(|word| names.parse(word).err());
    let near = near.flat_map(|error| error.near_matches().to_vec());
    let pmu = args.of.iter().filter(|pmu| names.description(pmu).is_none());
    let pmus: Vec<String> = pmu.flat_map(|pmu| names.near_descriptions(pmu)).collect();
    let near: Vec<String> = if pmus.is_empty() { near.collect() } else { pmus };
    match near.as_slice() {
        [] => text,
        near => text + &format!("\ndid you mean '{}'?", near.join("' or '")),
    }
}
