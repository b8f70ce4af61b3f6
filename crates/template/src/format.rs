//! Values as text, as Go's `fmt` prints them (`%v`); verbs of `printf` are in [`printf`].

use std::fmt::{self, Write};

use crate::value::Value;

pub(crate) mod json;
pub(crate) mod printf;
pub(crate) mod toml;
pub(crate) mod yaml;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_plain(f, self)
    }
}

/// The value as `%v` prints it.
pub(crate) fn plain(value: &Value) -> String {
    value.to_string()
}

pub(crate) fn write_plain(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value {
        Value::Nothing | Value::Nil => out.write_str("<nil>"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Uint(value) => write!(out, "{value}"),
        Value::Float(value) => out.write_str(&float(*value)),
        Value::Text(text) => out.write_str(text),
        Value::List(list) => {
            out.write_char('[')?;
            for (position, item) in list.items.iter().enumerate() {
                if position > 0 {
                    out.write_char(' ')?;
                }
                write_plain(out, item)?;
            }
            out.write_char(']')
        }
        Value::Map(map) => {
            write_entries(out, map.entries.iter().map(|(key, value)| (&**key, value)))
        }
        Value::Record(record) => match (&record.text, &record.entries) {
            (Some(text), _) => out.write_str(text),
            (None, Some(map)) => {
                write_entries(out, map.entries.iter().map(|(key, value)| (&**key, value)))
            }
            (None, None) => {
                write_entries(out, record.fields.iter().map(|(key, value)| (*key, value)))
            }
        },
        Value::Loop(first, last) => write!(out, "loop {first} {last}"),
        Value::Scratch => out.write_str("scratch"),
    }
}

fn write_entries<'a>(
    out: &mut impl Write,
    entries: impl Iterator<Item = (&'a str, &'a Value)>,
) -> fmt::Result {
    out.write_str("map[")?;
    for (position, (key, value)) in entries.enumerate() {
        if position > 0 {
            out.write_char(' ')?;
        }
        write!(out, "{key}:")?;
        write_plain(out, value)?;
    }
    out.write_char(']')
}

/// Returns the text in double quotes with escapes; `control` writes the other control characters.
fn quoted(text: &str, control: fn(u32) -> String) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_control() => out.push_str(&control(u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// A float as `%v` prints it: the shortest digits, with an exponent below 1e-4 and from 1e6.
pub(crate) fn float(value: f64) -> String {
    shortest(value, 6)
}

/// The shortest digits that give `value`, with an exponent below 1e-4 and from 10 to the `exponent_from`.
pub(crate) fn shortest(value: f64, exponent_from: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..exponent_from).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
