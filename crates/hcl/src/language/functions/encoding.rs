//! Encodings: `base64decode base64encode csvdecode jsondecode jsonencode urlencode`.

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
        call: |call| Ok(Value::String(to_base64(call.text(0)?.as_bytes()))),
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

/// RFC 4648's standard alphabet, with padding.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |position: usize| u32::from(chunk.get(position).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let shift = 18 - 6 * position;
            let letter = ALPHABET[(bits >> shift & 63) as usize];
            out.push(if position <= chunk.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

/// Returns the bytes; `None` for invalid base64, including missing padding.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - digits.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut bits = 0;
        for position in 0..4 {
            let digit = match chunk.get(position) {
                Some(letter) => ALPHABET.iter().position(|known| known == letter)?,
                None => 0,
            };
            bits = bits << 6 | u32::try_from(digit).ok()?;
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        // Bits covered by padding must be zero.
        let (kept, rest) = bytes.split_at(chunk.len() * 6 / 8);
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

fn base64decode(call: &Call<'_>) -> Result<Value, String> {
    let bytes = from_base64(&call.text(0)?)
        .ok_or_else(|| "the text is not base64 (standard alphabet, padded)".to_owned())?;
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
