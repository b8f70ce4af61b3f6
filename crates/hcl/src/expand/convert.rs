//! Conversion of values to the kinds of attributes.

use duration::parse_nanoseconds;

use crate::language::value::{Value, runtime_hint, to_bool, to_number, to_text, whole};
use crate::schema::Kind;

/// Summary and detail of a message.
type Problem = (&'static str, String);

/// Converts `value` to a kind; null stays null.
pub(super) fn convert(kind: Kind, name: &str, value: &Value) -> Result<Value, Problem> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let wanted = |wanted: &str| {
        let hint = runtime_hint(value);
        let detail =
            format!("Inappropriate value for attribute {name:?}: {wanted} is required{hint}");
        ("Incorrect attribute value type", detail)
    };
    match kind {
        Kind::Text => to_text(value)
            .map(Value::String)
            .ok_or_else(|| wanted("a string")),
        Kind::Flag => to_bool(value)
            .map(Value::Bool)
            .ok_or_else(|| wanted("a bool")),
        Kind::Whole => integer(value).ok_or_else(|| match to_number(value) {
            Some(number) => {
                let detail = format!(
                    "Inappropriate value for attribute {name:?}: a whole number is required; got \
                     {number}",
                );
                ("Incorrect attribute value type", detail)
            }
            None => {
                let (summary, detail) = wanted("a number");
                (summary, format!("{detail}{}", without_unit(name, value)))
            }
        }),
        Kind::TextList => {
            let items = value
                .as_array()
                .ok_or_else(|| wanted("a list of strings"))?;
            let texts: Option<Vec<String>> = items.iter().map(to_text).collect();
            texts
                .map(Value::from)
                .ok_or_else(|| wanted("a list of strings"))
        }
        Kind::TextMap => {
            let entries = value
                .as_object()
                .ok_or_else(|| wanted("a map of strings"))?;
            let texts = entries
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| {
                    let text = to_text(value).ok_or_else(|| {
                    let wanted = format!("a string for {key:?}");
                    let hint = runtime_hint(value);
                    let detail = format!(
                        "Inappropriate value for attribute {name:?}: {wanted} is required{hint}",
                    );
                    ("Incorrect attribute value type", detail)
                })?;
                    Ok((key.clone(), Value::String(text)))
                });
            texts.collect::<Result<_, Problem>>().map(Value::Object)
        }
        Kind::Duration => duration(value),
        Kind::Config if value.is_object() => Ok(value.clone()),
        Kind::Config => Err(wanted("an object")),
    }
}

/// Units of attributes that users write with a unit.
const UNITS: [(&str, &str); 5] = [
    ("memory", "MB"),
    ("memory_max", "MB"),
    ("size", "MB"),
    ("max_file_size", "MB"),
    ("cpu", "MHz"),
];

/// Returns advice for a number with a unit, such as `512MB`; empty for other values.
fn without_unit(name: &str, value: &Value) -> String {
    let text = value.as_str().unwrap_or_default().trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or_default();
    let (digits, unit) = text.split_at(end);
    let Some((_, known)) = UNITS.iter().find(|(known, _)| *known == name) else {
        return String::new();
    };
    let spelled = unit.trim().to_ascii_lowercase();
    // The number is only valid in the same unit.
    let same: &[&str] = match *known {
        "MB" => &["m", "mb", "mi", "mib"],
        _ => &["mhz"],
    };
    if !digits.is_empty() && same.contains(&spelled.as_str()) {
        format!(": write {digits}, in {known}")
    } else {
        format!(": write a number without a unit, in {known}")
    }
}

fn integer(value: &Value) -> Option<Value> {
    let number = to_number(value)?;
    i64::try_from(whole(&number)?).ok().map(Value::from)
}

/// Converts a duration such as "30s"; a bare number is nanoseconds.
fn duration(value: &Value) -> Result<Value, Problem> {
    const SUMMARY: &str = "Unsuitable duration value";
    match value {
        Value::String(text) => parse_nanoseconds(text)
            .map(Value::from)
            .map_err(|invalid| (SUMMARY, invalid.to_string())),
        Value::Number(_) => integer(value).ok_or_else(|| {
            (
                SUMMARY,
                "a bare number is whole nanoseconds: write a text, \"1.5s\"".to_owned(),
            )
        }),
        other => {
            let detail = format!("a text such as \"30s\" is required{}", runtime_hint(other));
            Err((SUMMARY, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_its_unit_is_shown_without_it() {
        let said = |name: &str, text: &str| {
            let (_, detail) = convert(Kind::Whole, name, &Value::from(text)).unwrap_err();
            detail
        };
        assert!(said("memory", "512MB").ends_with("got a string: write 512, in MB"));
        assert!(said("cpu", "500 MHz").ends_with(": write 500, in MHz"));
        // 1 GB is not 1 MB.
        let gigabyte = said("memory", "1G");
        assert!(
            gigabyte.ends_with(": write a number without a unit, in MB"),
            "{gigabyte}"
        );
        assert!(said("count", "2x").ends_with("got a string"));
    }
}
