//! Values of expressions in the types that attributes have.

use crate::duration::parse_nanoseconds;
use crate::language::value::{Value, runtime_hint, to_bool, to_number, to_text, whole};
use crate::schema::Kind;

/// Summary and detail of a message.
type Problem = (&'static str, String);

/// Returns `value` as an attribute of this kind holds it; null stays null.
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
            None => wanted("a number"),
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
        Kind::Span => span(value),
        Kind::Config if value.is_object() => Ok(value.clone()),
        Kind::Config => Err(wanted("an object")),
    }
}

fn integer(value: &Value) -> Option<Value> {
    let number = to_number(value)?;
    i64::try_from(whole(&number)?).ok().map(Value::from)
}

/// A text such as "30s"; a bare number is nanoseconds.
fn span(value: &Value) -> Result<Value, Problem> {
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
