//! The file as TOML has it, before anything is checked.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// A value, with where it is in the file.
pub(super) type At<T> = Spanned<T>;
pub(super) type Named<T> = BTreeMap<At<String>, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) format: At<u64>,
    pub(super) name: At<String>,
    pub(super) version: At<String>,
    pub(super) about: At<String>,
    #[serde(default)]
    pub(super) also: Vec<At<String>>,
    pub(super) source: At<Vec<At<String>>>,
    #[serde(default)]
    pub(super) architectural: bool,
    #[serde(default)]
    pub(super) machine: Vec<Machine>,
    pub(super) perf: At<Perf>,
    #[serde(default)]
    pub(super) layout: Named<Named<Field>>,
    #[serde(default)]
    pub(super) pmc: Vec<At<Pmc>>,
    #[serde(default)]
    pub(super) pmd: Vec<At<Pmd>>,
    #[serde(default)]
    pub(super) modifier: Named<Modifier>,
    #[serde(default)]
    pub(super) event: Named<Event>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    pub(super) arch: Option<At<String>>,
    pub(super) vendor: Option<At<String>>,
    pub(super) family: Option<u32>,
    #[serde(default)]
    pub(super) models: Vec<At<String>>,
    #[serde(default)]
    pub(super) steppings: Vec<At<String>>,
    pub(super) implementer: Option<u32>,
    #[serde(default)]
    pub(super) parts: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Perf {
    #[serde(default)]
    pub(super) devices: Vec<At<String>>,
    #[serde(rename = "type")]
    pub(super) pmu_type: Option<u32>,
    pub(super) layout: Option<At<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    pub(super) bits: Option<At<String>>,
    pub(super) perf: At<String>,
}

/// A number or a range in quotes.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Range {
    One(u64),
    Many(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pmc {
    pub(super) index: At<Range>,
    pub(super) name: At<String>,
    pub(super) address: Option<At<u64>>,
    #[serde(default = "one")]
    pub(super) stride: u64,
    #[serde(default)]
    pub(super) default: Word,
    #[serde(default)]
    pub(super) reserved: Word,
    pub(super) layout: Option<At<String>>,
    #[serde(default)]
    pub(super) thread_only: bool,
    #[serde(default)]
    pub(super) system_only: bool,
    pub(super) unsupported: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pmd {
    pub(super) index: At<Range>,
    pub(super) name: At<String>,
    pub(super) address: Option<At<u64>>,
    #[serde(default = "one")]
    pub(super) stride: u64,
    pub(super) width: At<u64>,
    pub(super) pmcs: Option<At<Range>>,
    #[serde(default)]
    pub(super) read_only: bool,
    #[serde(default)]
    pub(super) thread_only: bool,
    #[serde(default)]
    pub(super) system_only: bool,
    pub(super) fixed: Option<At<Vec<At<String>>>>,
    #[serde(default)]
    pub(super) shift: u8,
    #[serde(default)]
    pub(super) shift_step: u8,
    pub(super) unsupported: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Modifier {
    pub(super) field: At<String>,
    pub(super) about: At<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    pub(super) set: Named<At<Word>>,
    pub(super) about: At<String>,
    #[serde(default)]
    pub(super) also: Vec<At<String>>,
    #[serde(default)]
    pub(super) mask: Named<Mask>,
    pub(super) counters: Option<At<Range>>,
    pub(super) errata: Option<String>,
    pub(super) source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mask {
    pub(super) set: Named<At<Word>>,
    pub(super) about: At<String>,
    #[serde(default)]
    pub(super) default: bool,
    #[serde(default)]
    pub(super) alone: bool,
    #[serde(default)]
    pub(super) preset: Named<At<Word>>,
    pub(super) counters: Option<At<Range>>,
}

/// A 64-bit word: TOML's integers reach to 2^63 in some readers, so a word may also be a string such as
/// `"0xffff_ffff_0000_0000"`.
#[derive(Clone, Copy, Default)]
pub(super) struct Word(pub(super) u64);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Word;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number from 0 to 2^64 - 1")
            }
            fn visit_u64<E>(self, word: u64) -> Result<Word, E> {
                Ok(Word(word))
            }
            fn visit_i64<E: serde::de::Error>(self, word: i64) -> Result<Word, E> {
                u64::try_from(word).map(Word).map_err(|_| E::custom("a number below 0"))
            }
            fn visit_u128<E: serde::de::Error>(self, word: u128) -> Result<Word, E> {
                u64::try_from(word).map(Word).map_err(|_| E::custom("a number above 2^64 - 1"))
            }
            fn visit_i128<E: serde::de::Error>(self, word: i128) -> Result<Word, E> {
                u64::try_from(word)
                    .map(Word)
                    .map_err(|_| E::custom("a number that no 64 bits hold"))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Word, E> {
                let digits = text.replace('_', "");
                let hex =
                    digits.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                hex.map(Word).ok_or_else(|| E::custom("expected a string such as \"0xff\""))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

fn one() -> u64 {
    1
}
