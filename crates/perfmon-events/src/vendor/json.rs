//! Entries of a file, one after the other, and of each only what is used. An entry of any shape is read; only what
//! is no JSON ends the file.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Fields that are one term of the PMU's format, as `jevents.py` pairs them.
pub(super) const TERMS: [(&str, &str); 12] = [
    ("AnyThread", "any"),
    ("PortMask", "ch_mask"),
    ("CounterMask", "cmask"),
    ("EdgeDetect", "edge"),
    ("FCMask", "fc_mask"),
    ("Invert", "inv"),
    ("NodeType", "type"),
    ("RdWrMask", "rdwrmask"),
    ("EnAllCores", "enallcores"),
    ("EnAllSlices", "enallslices"),
    ("SliceId", "sliceid"),
    ("ThreadMask", "threadmask"),
];

/// What a list of events is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The file is a list: the kernel's, and older ones of Intel.
    List,
    /// `Events` of an object: Intel's.
    Intel,
    /// `events` of an object: Arm's.
    Arm,
}

/// The value of a field.
#[derive(Debug, PartialEq)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    Flag(bool),
    /// What no field can be, and what it is.
    Wrong(&'static str),
}

/// What an entry says, of that which is used.
#[derive(Debug, Default)]
pub(super) struct Entry<'a> {
    /// What the entry is, if it is no object.
    pub(super) no_object: Option<&'static str>,
    /// A field that is there twice.
    pub(super) twice: Option<String>,
    pub(super) name: Option<Value<'a>>,
    pub(super) trm_name: Option<Value<'a>>,
    pub(super) metric: Option<Value<'a>>,
    pub(super) standard: Option<Value<'a>>,
    pub(super) for_driver: Option<Value<'a>>,
    pub(super) code: Option<Value<'a>>,
    pub(super) code_above: Option<Value<'a>>,
    pub(super) config: Option<Value<'a>>,
    pub(super) event_id: Option<Value<'a>>,
    pub(super) umask: Option<Value<'a>>,
    pub(super) umask_above: Option<Value<'a>>,
    pub(super) terms: [Option<Value<'a>>; TERMS.len()],
    pub(super) filter: Option<Value<'a>>,
    pub(super) filter_value: Option<Value<'a>>,
    pub(super) msr: Option<Value<'a>>,
    pub(super) msr_value: Option<Value<'a>>,
    pub(super) pmu: Option<Value<'a>>,
    pub(super) counters: Option<Value<'a>>,
    pub(super) counter_type: Option<Value<'a>>,
    pub(super) brief: Option<Value<'a>>,
    pub(super) public: Option<Value<'a>>,
    pub(super) description: Option<Value<'a>>,
    pub(super) scale: Option<Value<'a>>,
    pub(super) errata: Option<Value<'a>>,
    pub(super) deprecated: Option<Value<'a>>,
}

impl<'a> Entry<'a> {
    /// Where the field called `key` goes; `None` if it is not used.
    fn field(&mut self, key: &str) -> Option<&mut Option<Value<'a>>> {
        Some(match key {
            "EventName" | "name" => &mut self.name,
            "trm_name" => &mut self.trm_name,
            "MetricName" => &mut self.metric,
            "ArchStdEvent" => &mut self.standard,
            "for_driver" => &mut self.for_driver,
            "EventCode" | "code" => &mut self.code,
            "ExtSel" => &mut self.code_above,
            "ConfigCode" => &mut self.config,
            "EventidCode" => &mut self.event_id,
            "UMask" => &mut self.umask,
            "UMaskExt" => &mut self.umask_above,
            "Filter" => &mut self.filter,
            "FILTER_VALUE" => &mut self.filter_value,
            "MSRIndex" => &mut self.msr,
            "MSRValue" => &mut self.msr_value,
            "Unit" => &mut self.pmu,
            "Counter" => &mut self.counters,
            "CounterType" => &mut self.counter_type,
            "BriefDescription" => &mut self.brief,
            "PublicDescription" => &mut self.public,
            "Description" | "description" => &mut self.description,
            "ScaleUnit" => &mut self.scale,
            "Errata" => &mut self.errata,
            "Deprecated" => &mut self.deprecated,
            _ => {
                let place = TERMS.iter().position(|(name, _)| *name == key)?;
                self.terms.get_mut(place)?
            }
        })
    }
}

/// Gives `sink` each entry of a file, until it says why to stop. `None` if the file has no list of events.
pub(super) fn read(
    bytes: &[u8],
    sink: &mut dyn FnMut(Form, Entry<'_>) -> Result<(), String>,
) -> Result<Option<Form>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let form = File { sink }.deserialize(&mut json)?;
    json.end()?;
    Ok(form)
}

/// The bytes of a file without the mark with which some programs begin UTF-8.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

type Sink<'s> = &'s mut dyn FnMut(Form, Entry<'_>) -> Result<(), String>;

/// A whole file.
struct File<'s> {
    sink: Sink<'s>,
}

impl<'de> DeserializeSeed<'de> for File<'_> {
    type Value = Option<Form>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = Option<Form>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        List { form: Form::List, sink: self.sink }.visit_seq(list)?;
        Ok(Some(Form::List))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Text(key)) = object.next_key_seed(AnyText)? {
            let form = match key.as_ref() {
                "Events" => Form::Intel,
                "events" => Form::Arm,
                _ => {
                    object.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            object.next_value_seed(List { form, sink: &mut *self.sink })?;
            found = Some(form);
        }
        Ok(found)
    }
}

/// A list of entries.
struct List<'s> {
    form: Form,
    sink: Sink<'s>,
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(entry) = list.next_element_seed(AnyEntry)? {
            (self.sink)(self.form, entry).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// An entry of whatever shape.
struct AnyEntry;

impl<'de> DeserializeSeed<'de> for AnyEntry {
    type Value = Entry<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl AnyEntry {
    fn is<'a, E>(what: &'static str) -> Result<Entry<'a>, E> {
        Ok(Entry { no_object: Some(what), ..Entry::default() })
    }
}

impl<'de> Visitor<'de> for AnyEntry {
    type Value = Entry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut entry = Entry::default();
        while let Some(Text(key)) = object.next_key_seed(AnyText)? {
            let Some(field) = entry.field(&key) else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            let is_there = field.is_some();
            *field = object.next_value_seed(AnyValue)?;
            if is_there {
                entry.twice = Some(key.into_owned());
            }
        }
        Ok(entry)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Self::is("a list")
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Self::is("a text")
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Self::is("a number")
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Self::is("a number")
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Self::is("a number")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Self::is("true or false")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Self::is("null")
    }
}

/// The value of a field, of whatever shape; `None` if it is null.
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Option<Value<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Option<Value<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Value::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Value::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(Value::Number(number)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Some(Value::Wrong("a negative number")))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Some(Value::Wrong("a number of more than 64 bits, or a fraction")))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Some(Value::Flag(flag)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(Value::Wrong("a list")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(Value::Wrong("an object")))
    }
}

/// A text, copied only if it has to be.
struct Text<'a>(Cow<'a, str>);

struct AnyText;

impl<'de> DeserializeSeed<'de> for AnyText {
    type Value = Text<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for AnyText {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}
