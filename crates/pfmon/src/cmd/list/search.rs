//! Which events the words of the command line mean.

use perfmon::Entry;
use regex_lite::{Regex, RegexBuilder};

use crate::exit::Failure;

/// What an event must have to be shown: all of it.
pub(crate) struct Search {
    /// In small letters.
    words: Vec<String>,
    patterns: Vec<Regex>,
    /// All texts of an entry in small letters, kept to be filled again.
    texts: String,
}

/// Between two texts; no word holds it.
const BETWEEN: char = '\n';

impl Search {
    /// Searches for `words`, or takes them as regular expressions.
    ///
    /// # Errors
    /// A word that is no regular expression.
    pub(crate) fn new(words: &[String], are_patterns: bool) -> Result<Self, Failure> {
        let mut search = Self { words: Vec::new(), patterns: Vec::new(), texts: String::new() };
        if !are_patterns {
            search.words = words.iter().map(|word| word.to_ascii_lowercase()).collect();
            return Ok(search);
        }
        for word in words {
            let pattern = RegexBuilder::new(word).case_insensitive(true).build();
            search.patterns.push(pattern.map_err(|error| {
                Failure::new(format!("'{word}' is no regular expression: {error}"))
            })?);
        }
        Ok(search)
    }

    /// Whether `entry` has all that is searched for.
    pub(crate) fn finds(&mut self, entry: &Entry<'_>) -> bool {
        if !self.words.is_empty() {
            self.texts.clear();
            for text in texts(entry) {
                self.texts.push_str(text);
                self.texts.push(BETWEEN);
            }
            self.texts.make_ascii_lowercase();
        }
        self.words.iter().all(|word| self.texts.contains(word.as_str()))
            && self.patterns.iter().all(|it| texts(entry).any(|text| it.is_match(text)))
    }
}

/// All that is searched of an event. A name that begins with a description is there without it, too, so that `^`
/// finds it.
fn texts<'e>(entry: &'e Entry<'_>) -> impl Iterator<Item = &'e str> {
    let own = entry.name.split_once("::").map(|(_, own)| own);
    let also = entry.also.iter().map(|name| &**name);
    let masks = entry.masks.iter().flat_map(|(name, about)| [&**name, &**about]);
    [&*entry.name]
        .into_iter()
        .chain(own)
        .chain(also)
        .chain([&*entry.pmu, &*entry.about])
        .chain(masks)
}
