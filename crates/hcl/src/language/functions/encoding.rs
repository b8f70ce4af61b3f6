//! Encodings: `base64decode base64encode csvdecode jsondecode jsonencode urlencode`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Map;

use super::call::Call;
use super::function::Function;
use super::text::text;
use crate::language::value::{Value, float, whole};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "base64decode",
        parameters: "text",
        call: base64decode,
    },
    Function {
        name: "base64encode",
        parameters: "text",
        call: |call| Ok(Value::String(BASE64_STANDARD.encode(call.text(0)?))),
    },
    Function {
        name: "csvdecode",
        parameters: "text",
        call: csvdecode,
    },
    Function {
        name: "jsondecode",
        parameters: "text",
        call: jsondecode,
    },
    Function {
        name: "jsonencode",
        parameters: "value",
        call: |call| Ok(Value::String(call.value(0).to_string())),
    },
    Function {
        name: "urlencode",
        parameters: "text",
        call: urlencode,
    },
];

fn base64decode(call: &Call<'_>) -> Result<Value, String> {
    let bytes = BASE64_STANDARD
        .decode(call.text(0)?)
        .map_err(|_| "the text is not base64 (standard alphabet, padded)".to_owned())?;
    let decoded =
        String::from_utf8(bytes).map_err(|_| "what the text decodes to is not UTF-8".to_owned())?;
    Ok(Value::String(decoded))
}

fn jsondecode(call: &Call<'_>) -> Result<Value, String> {
    let value = serde_json::from_str(&call.text(0)?)
        .map_err(|error| format!("the text is not JSON: {error}"))?;
    Ok(normal(value))
}

/// Converts numbers without a fraction to integers.
fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) if whole(&number).is_none() => number
            .as_f64()
            .and_then(float)
            .map_or(Value::Null, Value::Number),
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Object(entries) => Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key, normal(value)))
                .collect(),
        ),
        other => other,
    }
}

/// The characters that the query of a URL cannot have as they are.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b' ');

fn urlencode(call: &Call<'_>) -> Result<Value, String> {
    let escaped = utf8_percent_encode(&call.text(0)?, &RESERVED).to_string();
    text(&escaped.replace(' ', "+"))
}

/// The first record names the columns; each further one becomes an object.
fn csvdecode(call: &Call<'_>) -> Result<Value, String> {
    let body = call.text(0)?;
    let mut records = csv_records(&body)?.into_iter();
    let header = records
        .next()
        .ok_or_else(|| "there is no header line".to_owned())?;
    let mut rows = Vec::new();
    for (number, record) in records.enumerate() {
        if record.len() != header.len() {
            let (got, want) = (record.len(), header.len());
            return Err(format!(
                "record {} has {got} fields instead of {want}",
                number + 1
            ));
        }
        call.pay(header.iter().map(String::len).sum())?;
        let fields = header
            .iter()
            .cloned()
            .zip(record.into_iter().map(Value::String));
        rows.push(Value::Object(fields.collect::<Map<String, Value>>()));
    }
    Ok(Value::Array(rows))
}

/// Parses RFC 4180: comma-separated fields, doubled quotes in quoted ones; skips blank lines.
fn csv_records(body: &str) -> Result<Vec<Vec<String>>, String> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut was_quoted = false;
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if quoted => quoted = false,
            '"' if field.is_empty() && !was_quoted => (quoted, was_quoted) = (true, true),
            '"' => return Err("a quote is inside a field: quote the whole field".to_owned()),
            ',' if !quoted => {
                record.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if !quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                if !record.is_empty() || !field.is_empty() || was_quoted {
                    record.push(std::mem::take(&mut field));
                    records.push(std::mem::take(&mut record));
                }
                was_quoted = false;
            }
            other => field.push(other),
        }
    }
    if quoted {
        return Err("a quoted field has no end".to_owned());
    }
    if !record.is_empty() || !field.is_empty() || was_quoted {
        record.push(field);
        records.push(record);
    }
    Ok(records)
}
