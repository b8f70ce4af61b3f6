//! JSON as Go writes it: keys sorted, floats without needless digits, `<`, `>` and `&` escaped on request.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::value::Value;

/// Form of the JSON.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Two spaces for each level, or one line.
    pub(crate) pretty: bool,
    /// `<`, `>` and `&` as `\u003c`, `\u003e` and `\u0026`.
    pub(crate) escapes_html: bool,
}

/// The value as JSON.
///
/// # Errors
/// A value that JSON can't express, such as infinity.
pub(crate) fn write(value: &Value, style: Style) -> Result<String, String> {
    let mut out = String::new();
    put(&mut out, value, style, 0)?;
    Ok(out)
}

/// The value of a JSON text; numbers become floats, as in Go.
///
/// # Errors
/// The parser's message.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let json: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    convert(json)
}

fn convert(json: serde_json::Value) -> Result<Value, String> {
    convert_with(json, &|number| number.as_f64().map(Value::Float))
}

/// The value of JSON from an API: whole numbers stay whole, and every other number is a float.
///
/// # Errors
/// The value is too large or nested too deep.
pub(crate) fn of_api(json: serde_json::Value) -> Result<Value, String> {
    convert_with(json, &|number| {
        let whole = number.as_i64().map(Value::Int);
        let whole = whole.or_else(|| number.as_u64().map(Value::Uint));
        whole.or_else(|| number.as_f64().map(Value::Float))
    })
}

type Number<'a> = &'a dyn Fn(&serde_json::Number) -> Option<Value>;

fn convert_with(json: serde_json::Value, of_number: Number<'_>) -> Result<Value, String> {
    let convert = |json| convert_with(json, of_number);
    Ok(match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => {
            of_number(&number).ok_or("a number is too large")?
        }
        serde_json::Value::String(text) => Value::text(text),
        serde_json::Value::Array(items) => {
            Value::list(items.into_iter().map(convert).collect::<Result<_, _>>()?)?
        }
        serde_json::Value::Object(entries) => {
            let entries = entries
                .into_iter()
                .map(|(key, value)| Ok((key.into(), convert(value)?)));
            Value::map(entries.collect::<Result<BTreeMap<_, _>, String>>()?)?
        }
    })
}

fn put(out: &mut String, value: &Value, style: Style, level: usize) -> Result<(), String> {
    match value {
        Value::Nothing | Value::Nil => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Uint(value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(&number(*value)?),
        Value::Text(text) => put_text(out, text, style),
        Value::List(list) => {
            let items: Vec<_> = list.items.iter().map(|item| (None, item)).collect();
            put_all(out, ['[', ']'], &items, style, level)?;
        }
        Value::Map(map) => put_entries(out, &map.entries, style, level)?,
        Value::Record(record) => match (&record.text, &record.entries) {
            (Some(text), _) => put_text(out, text, style),
            (None, Some(map)) => put_entries(out, &map.entries, style, level)?,
            (None, None) => {
                let items: Vec<_> = record
                    .fields
                    .iter()
                    .map(|(key, value)| (Some(*key), value))
                    .collect();
                put_all(out, ['{', '}'], &items, style, level)?;
            }
        },
        Value::Loop(..) | Value::Scratch => {
            return Err(format!("a value of type {} has no JSON", value.type_name()));
        }
    }
    Ok(())
}

fn put_entries(
    out: &mut String,
    entries: &BTreeMap<Rc<str>, Value>,
    style: Style,
    level: usize,
) -> Result<(), String> {
    let items: Vec<_> = entries
        .iter()
        .map(|(key, value)| (Some(&**key), value))
        .collect();
    put_all(out, ['{', '}'], &items, style, level)
}

fn put_all(
    out: &mut String,
    brackets: [char; 2],
    items: &[(Option<&str>, &Value)],
    style: Style,
    level: usize,
) -> Result<(), String> {
    out.push(brackets[0]);
    let line = |out: &mut String, level: usize| {
        if style.pretty && !items.is_empty() {
            out.push('\n');
            out.push_str(&"  ".repeat(level));
        }
    };
    for (position, (key, value)) in items.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        line(out, level + 1);
        if let Some(key) = key {
            put_text(out, key, style);
            out.push_str(if style.pretty { ": " } else { ":" });
        }
        put(out, value, style, level + 1)?;
    }
    line(out, level);
    out.push(brackets[1]);
    Ok(())
}

fn put_text(out: &mut String, text: &str, style: Style) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if style.escapes_html => out.push_str(&escape(letter)),
            '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => out.push_str(&escape(letter)),
            _ => out.push(letter),
        }
    }
    out.push('"');
}

fn escape(letter: char) -> String {
    format!("\\u{:04x}", u32::from(letter))
}

fn number(value: f64) -> Result<String, String> {
    if !value.is_finite() {
        return Err(format!("{} has no JSON", super::float(value)));
    }
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        // Go writes e-7, not e-07.
        return Ok(super::shortest(value, -4).replace("e-0", "e-"));
    }
    Ok(format!("{value}"))
}
