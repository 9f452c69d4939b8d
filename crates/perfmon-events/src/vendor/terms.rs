//! What an entry says of registers, as terms of the PMU's format. The pairs and the special cases are those of
//! Linux's `jevents.py` and Intel's `create_perf_json.py`.

use super::entry::{first_number, number, text};
use super::json::{Entry, Form, TERMS};

/// Events of fixed counters, whose codes in vendor files mean something else to the kernel.
const FIXED: [(&str, &[(&str, u64)]); 6] = [
    ("INST_RETIRED.ANY", &[("event", 0xc0)]),
    ("INST_RETIRED.ANY_P", &[("event", 0xc0)]),
    ("CPU_CLK_UNHALTED.REF", &[("event", 0), ("umask", 3)]),
    ("CPU_CLK_UNHALTED.THREAD", &[("event", 0x3c)]),
    ("CPU_CLK_UNHALTED.CORE", &[("event", 0x3c)]),
    ("CPU_CLK_UNHALTED.THREAD_ANY", &[("event", 0x3c), ("any", 1)]),
];

/// The code by which uncore PMUs know their fixed and free-running counters.
const FIXED_CODE: u64 = 0xff;

/// Filters that the user may set, in words that are no terms: the event counts without them.
const LEFT_OUT: [&str; 8] =
    ["cbofilter", "chafilter", "pcufilter", "qpimask", "uboxfilter", "fc, chnl", "chnl", "ctrctrl"];

/// Terms and their values.
pub(super) type Terms = Vec<(String, u64)>;

/// The terms of an entry for the event `name` of the PMU `pmu`.
pub(super) fn of(entry: &Entry<'_>, form: Form, name: &str, pmu: &str) -> Result<Terms, String> {
    if let Some((_, terms)) = FIXED.iter().find(|(fixed, _)| name.eq_ignore_ascii_case(fixed)) {
        return Ok(terms.iter().map(|&(term, value)| (term.to_owned(), value)).collect());
    }
    let config = number("ConfigCode", entry.config.as_ref())?;
    let event_id = number("EventidCode", entry.event_id.as_ref())?;
    let mut terms = match (config, event_id) {
        (Some(config), _) => vec![("config".to_owned(), config)],
        (None, Some(event_id)) => vec![("eventid".to_owned(), event_id)],
        (None, None) => code(entry, form, name, pmu)?,
    };
    for ((field, term), value) in TERMS.iter().zip(&entry.terms) {
        let value = number(field, value.as_ref())?.filter(|value| *value != 0);
        terms.extend(value.map(|value| ((*term).to_owned(), value)));
    }
    // A filter's term goes before a field's.
    let filter = filter(entry)?;
    terms.retain(|(term, _)| !filter.iter().any(|(other, _)| other == term));
    terms.extend(filter);
    terms.extend(msr(entry)?);
    Ok(terms)
}

/// The event's code and unit mask.
fn code(entry: &Entry<'_>, form: Form, name: &str, pmu: &str) -> Result<Terms, String> {
    let counter_type = text("CounterType", entry.counter_type.as_ref())?.unwrap_or_default();
    if counter_type.eq_ignore_ascii_case("FREERUN") {
        return Ok(terms(FIXED_CODE, free_running(name, pmu)?));
    }
    if text("Counter", entry.counters.as_ref())?
        .is_some_and(|text| text.eq_ignore_ascii_case("FIXED"))
    {
        return Ok(terms(FIXED_CODE, 0));
    }
    let code = match first_number("EventCode", entry.code.as_ref())? {
        Some(code) => code,
        // The kernel's files leave out what is 0.
        None if form == Form::List => 0,
        None => return Err("it has no EventCode".to_owned()),
    };
    let above = number("ExtSel", entry.code_above.as_ref())?.unwrap_or(0);
    let code = code | shifted("ExtSel", above)?;
    let mask = umask(entry)?;
    // The PCU's field for what is occupied is the upper part of what the files call a mask.
    if pmu == "uncore_pcu" && code == 0x80 && mask & !0xc0 == 0 && mask != 0 {
        return Ok(vec![("event".to_owned(), code), ("occ_sel".to_owned(), mask >> 6)]);
    }
    Ok(terms(code, mask))
}

fn terms(code: u64, mask: u64) -> Terms {
    let mut terms = vec![("event".to_owned(), code)];
    if mask != 0 {
        terms.push(("umask".to_owned(), mask));
    }
    terms
}

/// The unit mask with its upper part, which the kernel's files hold already.
fn umask(entry: &Entry<'_>) -> Result<u64, String> {
    let mask = first_number("UMask", entry.umask.as_ref())?.unwrap_or(0);
    let above = number("UMaskExt", entry.umask_above.as_ref())?.unwrap_or(0);
    if mask > 0xff { Ok(mask) } else { Ok(mask | shifted("UMaskExt", above)?) }
}

fn shifted(field: &str, value: u64) -> Result<u64, String> {
    let is_small = value <= u64::MAX >> 8;
    is_small.then_some(value << 8).ok_or_else(|| format!("{field} is too great: {value:#x}"))
}

/// The unit mask by which the kernel knows a free-running counter: its kind and its number.
fn free_running(name: &str, pmu: &str) -> Result<u64, String> {
    let kinds: &[(&str, u64)] = if pmu.contains("iio") {
        &[("CLOCKTICKS", 1), ("BANDWIDTH_IN", 2), ("BANDWIDTH_OUT", 3)]
    } else {
        &[("CLOCKTICKS", 1), ("TOTAL", 1), ("RDCAS", 2), ("WRCAS", 3)]
    };
    let upper = name.to_ascii_uppercase();
    let kind = kinds.iter().find(|(word, _)| upper.contains(word)).map(|(_, kind)| kind);
    let part = upper.split_once("PART").map(|(_, part)| {
        let end = part.find(|char: char| !char.is_ascii_digit()).unwrap_or(part.len());
        part.get(..end).unwrap_or_default().parse::<u64>()
    });
    match (kind, part) {
        (Some(kind), None) => Ok(kind << 4),
        (Some(kind), Some(Ok(part))) if part < 16 => Ok(kind << 4 | part),
        _ => Err("which free-running counter it is can't be told".to_owned()),
    }
}

/// Terms of the filter registers.
fn filter(entry: &Entry<'_>) -> Result<Terms, String> {
    let Some(filter) = text("Filter", entry.filter.as_ref())? else { return Ok(Vec::new()) };
    if is_left_out(filter) {
        return Ok(Vec::new());
    }
    if filter == "Filter1" {
        let value = number("FILTER_VALUE", entry.filter_value.as_ref())?.unwrap_or(0);
        return Ok(vec![("config1".to_owned(), value)]);
    }
    let unknown = || format!("it needs the filter '{filter}', for which there is no term");
    let term = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let name = name.trim();
        let is_term = !name.is_empty() && name.chars().all(is_name);
        Some((name.to_owned(), super::entry::parse(value.trim())?)).filter(|_| is_term)
    };
    filter.split(',').map(|part| term(part).ok_or_else(unknown)).collect()
}

/// Whether a filter is one that the user may set, so that the event counts without it.
pub(super) fn is_left_out(filter: &str) -> bool {
    let lower = filter.to_ascii_lowercase();
    LEFT_OUT.iter().any(|start| lower.starts_with(start))
}

/// The term for the value of a further register.
fn msr(entry: &Entry<'_>) -> Result<Option<(String, u64)>, String> {
    let term = match first_number("MSRIndex", entry.msr.as_ref())? {
        None | Some(0) => return Ok(None),
        Some(0x1a6 | 0x1a7) => "offcore_rsp",
        Some(0x3f6) => "ldlat",
        Some(0x3f7) => "frontend",
        Some(other) => {
            return Err(format!("it needs the register {other:#x}, for which there is no term"));
        }
    };
    let value = number("MSRValue", entry.msr_value.as_ref())?;
    value.map(|value| Some((term.to_owned(), value))).ok_or_else(|| "it has no MSRValue".to_owned())
}
