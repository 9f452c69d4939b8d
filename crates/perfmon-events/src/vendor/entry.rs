//! From an entry of a file to an event.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::VendorEvent;
use super::json::{Entry, Form, Value};
use super::problems::visible;
use super::terms;

const NO_PMU: &str = "its Unit is no name of a PMU";
/// Longest name of an event, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Longest description that is kept.
const ABOUT_CHARS_MAX: usize = 1000;
/// Longest of the other texts that are kept.
const TEXT_CHARS_MAX: usize = 120;

/// The words of vendor files for nothing.
const NOTHING: [&str; 6] = ["", "0", "na", "null", "none", "tbd"];

/// Units whose PMU has another name than `uncore_` and the unit in small letters.
const PMUS: [(&str, &str); 20] = [
    ("CBO", "uncore_cbox"),
    ("QPI LL", "uncore_qpi"),
    ("SBO", "uncore_sbox"),
    ("iMPH-U", "uncore_arb"),
    ("CPU-M-CF", "cpum_cf"),
    ("CPU-M-SF", "cpum_sf"),
    ("PAI-CRYPTO", "pai_crypto"),
    ("PAI-EXT", "pai_ext"),
    ("UPI LL", "uncore_upi"),
    ("hisi_sicl,cpa", "hisi_sicl,cpa"),
    ("hisi_sccl,ddrc", "hisi_sccl,ddrc"),
    ("hisi_sccl,hha", "hisi_sccl,hha"),
    ("hisi_sccl,l3c", "hisi_sccl,l3c"),
    ("imx8_ddr", "imx8_ddr"),
    ("imx9_ddr", "imx9_ddr"),
    ("L3PMC", "amd_l3"),
    ("DFPMC", "amd_df"),
    ("UMCPMC", "amd_umc"),
    ("ali_drw", "ali_drw"),
    ("arm_cmn", "arm_cmn"),
];

/// What the files of an architecture define, by names in small letters.
#[derive(Debug, Default)]
pub(super) struct Standard {
    pub(super) events: HashMap<String, VendorEvent>,
    /// Formulas, to which files of a CPU refer in the same way.
    pub(super) metrics: HashSet<String>,
}

/// What entries need of their surroundings.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) file: &'a Path,
    /// The PMU of entries that name none.
    pub(super) pmu: &'a str,
    /// To what entries may refer.
    pub(super) standard: &'a Standard,
}

/// Why an entry is no event: what it is called and what is wrong.
pub(super) struct Fault {
    pub(super) name: Option<String>,
    pub(super) why: String,
}

/// The event of an entry; `None` if the entry is a metric, or counts for the kernel's own use.
pub(super) fn event(
    entry: &Entry<'_>,
    form: Form,
    setting: Setting<'_>,
) -> Result<Option<VendorEvent>, Fault> {
    let name = own_name(entry);
    let fault = |why: String| Fault { name: name.map(|name| visible(name, NAME_BYTES_MAX)), why };
    if let Some(what) = entry.no_object {
        return Err(fault(format!("it is {what}, not an object")));
    }
    if let Some(key) = &entry.twice {
        return Err(fault(format!("it has '{key}' twice")));
    }
    let event = if entry.standard.is_some() {
        refer(entry, form, setting)
    } else if is_no_event(entry, form) {
        Ok(None)
    } else {
        define(entry, form, setting).map(Some)
    };
    event.map_err(fault)
}

fn is_no_event(entry: &Entry<'_>, form: Form) -> bool {
    let is_metric = entry.metric.is_some() && entry.name.is_none();
    // Arm's files list signals for trace units, too: they have no code.
    let is_signal = form == Form::Arm && entry.code.is_none();
    is_metric || is_signal || entry.for_driver == Some(Value::Flag(true))
}

fn own_name<'a>(entry: &'a Entry<'_>) -> Option<&'a str> {
    [&entry.name, &entry.standard, &entry.trm_name].into_iter().find_map(|name| match name {
        Some(Value::Text(name)) => Some(name.trim()),
        _ => None,
    })
}

/// An event by its own fields.
fn define(entry: &Entry<'_>, form: Form, setting: Setting<'_>) -> Result<VendorEvent, String> {
    let given = match text("EventName", entry.name.as_ref())? {
        Some(name) => Some(name),
        None => text("trm_name", entry.trm_name.as_ref())?,
    };
    let name = name(given.ok_or("it has no EventName")?)?;
    let pmu = pmu(entry, &name, setting)?;
    let terms = terms::of(entry, form, &name, &pmu)?;
    let (scale, unit) = scale(entry)?;
    Ok(VendorEvent {
        about: about(entry)?.unwrap_or_default(),
        name,
        pmu,
        terms,
        scale,
        unit,
        errata: short("Errata", entry.errata.as_ref())?,
        deprecated: is_deprecated(entry)?,
        counters: short("Counter", entry.counters.as_ref())?,
        file: setting.file.to_owned(),
    })
}

/// An event of the architecture that a file says a CPU has, with what the file adds; `None` if it is a formula.
fn refer(
    entry: &Entry<'_>,
    form: Form,
    setting: Setting<'_>,
) -> Result<Option<VendorEvent>, String> {
    let referred =
        text("ArchStdEvent", entry.standard.as_ref())?.ok_or("its ArchStdEvent is empty")?;
    let lower = referred.to_ascii_lowercase();
    if setting.standard.metrics.contains(&lower) {
        return Ok(None);
    }
    let standard = setting.standard.events.get(&lower);
    let standard = standard.ok_or_else(|| format!("the architecture has no event '{referred}'"))?;
    let name = match text("EventName", entry.name.as_ref())? {
        Some(own) => name(own)?,
        None => standard.name.clone(),
    };
    let pmu = pmu(entry, &name, setting)?;
    let has_code = entry.code.is_some() || entry.config.is_some() || entry.event_id.is_some();
    let terms =
        if has_code { terms::of(entry, form, &name, &pmu)? } else { standard.terms.clone() };
    if terms != standard.terms {
        return Err(format!("its code is not that of the architecture's event '{referred}'"));
    }
    let (scale, unit) = scale(entry)?;
    let brief = text("BriefDescription", entry.brief.as_ref())?;
    let about = match brief {
        None if !standard.about.is_empty() => standard.about.clone(),
        _ => about(entry)?.unwrap_or_default(),
    };
    Ok(Some(VendorEvent {
        name,
        about,
        pmu,
        terms,
        scale: scale.or(standard.scale),
        unit: unit.or_else(|| standard.unit.clone()),
        errata: short("Errata", entry.errata.as_ref())?,
        deprecated: is_deprecated(entry)? || standard.deprecated,
        counters: short("Counter", entry.counters.as_ref())?,
        file: setting.file.to_owned(),
    }))
}

/// The name in a form that an event string can hold.
fn name(given: &str) -> Result<String, String> {
    let name = match given.strip_prefix("OFFCORE_RESPONSE_0") {
        Some(rest) => format!("OFFCORE_RESPONSE{rest}"),
        None => given.to_owned(),
    };
    let name = match name
        .strip_prefix("OFFCORE_RESPONSE:request=")
        .and_then(|rest| rest.split_once(":response="))
    {
        Some((request, response)) => format!("OFFCORE_RESPONSE.{request}.{response}"),
        None => name,
    };
    let is_fine = |char: char| char.is_ascii_graphic() && !",/:{}='\"".contains(char);
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("its name has more than {NAME_BYTES_MAX} bytes"));
    }
    if !name.chars().all(is_fine) {
        return Err("its name can't be part of an event string".to_owned());
    }
    Ok(name)
}

/// The PMU of the entry, as the kernel calls it.
fn pmu(entry: &Entry<'_>, name: &str, setting: Setting<'_>) -> Result<String, String> {
    let Some(unit) = text("Unit", entry.pmu.as_ref())? else { return Ok(setting.pmu.to_owned()) };
    if unit.len() > NAME_BYTES_MAX {
        return Err(NO_PMU.to_owned());
    }
    if unit == "default_core" || unit == "cpu" {
        return Ok("cpu".to_owned());
    }
    let lower = unit.to_ascii_lowercase();
    let counter_type = text("CounterType", entry.counter_type.as_ref())?.unwrap_or_default();
    if counter_type.eq_ignore_ascii_case("FREERUN") {
        let base = if lower.ends_with("imc") { "imc" } else { &lower };
        let controller =
            name.split('_').find_map(|word| word.strip_prefix("MC")).filter(|number| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });
        let number = controller.map(|number| format!("_{number}")).unwrap_or_default();
        return nameable(format!("uncore_{base}_free_running{number}"));
    }
    if unit == "NCU" && name == "UNC_CLOCK.SOCKET" {
        return Ok("uncore_clock".to_owned());
    }
    let special = PMUS.iter().find(|(name, _)| *name == unit).map(|(_, pmu)| (*pmu).to_owned());
    // The kinds of core of a hybrid machine: cpu_core, cpu_atom.
    let core = unit.starts_with("cpu_").then(|| unit.to_owned());
    let pmu = special.or(core).unwrap_or_else(|| format!("uncore_{lower}"));
    nameable(pmu)
}

/// The name of a PMU, if an event string can hold it; a comma is between parts of the name.
fn nameable(pmu: String) -> Result<String, String> {
    let is_fine = |char: char| char.is_ascii_alphanumeric() || "_-.,".contains(char);
    if pmu.chars().all(is_fine) { Ok(pmu) } else { Err(NO_PMU.to_owned()) }
}

fn about(entry: &Entry<'_>) -> Result<Option<String>, String> {
    let brief = text("BriefDescription", entry.brief.as_ref())?;
    let public = text("PublicDescription", entry.public.as_ref())?;
    let other = text("Description", entry.description.as_ref())?;
    let about = brief.or(other).or(public).map(|about| visible(about, ABOUT_CHARS_MAX));
    let filter = text("Filter", entry.filter.as_ref())?.filter(|filter| terms::is_left_out(filter));
    Ok(match (about, filter) {
        (about, None) => about,
        (about, Some(filter)) => {
            let about = about.unwrap_or_default();
            Some(format!("{about} (without its filter {})", visible(filter, TEXT_CHARS_MAX)))
        }
    })
}

/// `64Bytes` as the number and the unit.
fn scale(entry: &Entry<'_>) -> Result<(Option<f64>, Option<String>), String> {
    let Some(given) = text("ScaleUnit", entry.scale.as_ref())? else { return Ok((None, None)) };
    let (number, unit) = given.split_at(number_bytes(given));
    let scale: f64 = number.parse().unwrap_or(f64::NAN);
    if !scale.is_finite() {
        return Err(format!("its ScaleUnit does not begin with a number: '{given}'"));
    }
    let unit = visible(unit, TEXT_CHARS_MAX);
    Ok((Some(scale), Some(unit).filter(|unit| !unit.is_empty())))
}

/// How many bytes at the start of `text` are a decimal number, as strtod(3) reads it.
fn number_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits =
        |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits(sign);
    let mut end = sign + whole;
    if bytes.get(end) == Some(&b'.') && whole + digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if end > sign && matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end
}

fn is_deprecated(entry: &Entry<'_>) -> Result<bool, String> {
    match &entry.deprecated {
        Some(Value::Flag(flag)) => Ok(*flag),
        other => Ok(number("Deprecated", other.as_ref())?.is_some_and(|number| number != 0)),
    }
}

fn short(field: &str, value: Option<&Value<'_>>) -> Result<Option<String>, String> {
    Ok(match value {
        Some(Value::Number(number)) => Some(number.to_string()),
        // Counter 0 is one, errata 0 are none.
        Some(Value::Text(zero)) if zero == "0" && field == "Counter" => Some("0".to_owned()),
        value => text(field, value)?.map(|text| visible(text, TEXT_CHARS_MAX)),
    })
}

/// The text of a field; `None` if the field is not there or says that there is nothing.
pub(super) fn text<'a>(
    field: &str,
    value: Option<&'a Value<'_>>,
) -> Result<Option<&'a str>, String> {
    let wrong = |what: &str| Err(format!("{field} is {what}, not a text"));
    match value {
        None => Ok(None),
        Some(Value::Text(text)) => {
            let text = text.trim();
            let is_nothing = NOTHING.iter().any(|nothing| text.eq_ignore_ascii_case(nothing));
            Ok(Some(text).filter(|_| !is_nothing))
        }
        Some(Value::Number(0)) => Ok(None),
        Some(Value::Number(_)) => wrong("a number"),
        Some(Value::Flag(_)) => wrong("true or false"),
        Some(Value::Wrong(what)) => wrong(what),
    }
}

/// The number of a field; `None` if the field is not there or says that there is nothing.
pub(super) fn number(field: &str, value: Option<&Value<'_>>) -> Result<Option<u64>, String> {
    number_of(field, value, |text| text)
}

/// The first number of a field that may hold several, with commas between them.
pub(super) fn first_number(field: &str, value: Option<&Value<'_>>) -> Result<Option<u64>, String> {
    number_of(field, value, |text| text.split(',').next().unwrap_or(text).trim())
}

fn number_of(
    field: &str,
    value: Option<&Value<'_>>,
    part: fn(&str) -> &str,
) -> Result<Option<u64>, String> {
    let wrong = |what: &str| Err(format!("{field} is {what}, not a number of at most 64 bits"));
    match value {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(*number)),
        Some(Value::Text(text)) if text.trim() == "0" => Ok(Some(0)),
        Some(Value::Text(_)) => match self::text(field, value)? {
            None => Ok(None),
            Some(text) => parse(part(text))
                .map_or_else(|| wrong(&format!("'{text}'")), |number| Ok(Some(number))),
        },
        Some(Value::Flag(_)) => wrong("true or false"),
        Some(Value::Wrong(what)) => wrong(what),
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    // from_str_radix takes a sign.
    let is_digits = digits.chars().all(|char| char.is_digit(radix));
    is_digits.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}
