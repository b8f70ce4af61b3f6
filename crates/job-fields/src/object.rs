//! Free-form objects: `google.protobuf.Struct` in messages, JSON objects in the model.
//!
//! A Struct's only number is a double. Whole numbers up to 2^53 come back as integers. A larger
//! integer cannot travel as a number: a job on its way in is refused, with the advice to quote it; a
//! stored one is shown as a string of its digits, so that no digit is lost. A double that is a whole
//! number (`1.0`) comes back as an integer: JSON means the same by both.

use std::fmt::Display;

use model::FieldError;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as Wire};
use serde_json::{Map, Number, Value};

/// The largest integer up to which a double holds every integer.
const EXACT: u64 = 1 << 53;
const EXACT_F64: f64 = 9_007_199_254_740_992.0;

/// The nesting that protobuf decoders accept at most; it also bounds the recursion here.
const MAX_DEPTH: usize = 64;

type Read<T> = Result<T, FieldError>;

/// Returns the JSON object of a message.
///
/// # Errors
/// The first value that JSON does not have, with its path.
pub fn read_object(object: &Struct) -> Read<Map<String, Value>> {
    read_fields(object, 0)
}

fn read_fields(object: &Struct, depth: usize) -> Read<Map<String, Value>> {
    let mut map = Map::new();
    for (key, value) in &object.fields {
        map.insert(key.clone(), at(key, read_value(value, depth + 1))?);
    }
    Ok(map)
}

fn read_value(value: &Wire, depth: usize) -> Read<Value> {
    if depth > MAX_DEPTH {
        let message = format!("nested too deep: want at most {MAX_DEPTH} levels");
        return Err(FieldError::new("", message));
    }
    Ok(match &value.kind {
        // A peer that means null may leave the kind out.
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(*flag),
        Some(Kind::StringValue(text)) => Value::String(text.clone()),
        Some(Kind::NumberValue(number)) => Value::Number(read_number(*number)?),
        Some(Kind::StructValue(object)) => Value::Object(read_fields(object, depth)?),
        Some(Kind::ListValue(list)) => {
            let mut items = Vec::with_capacity(list.values.len());
            for (position, item) in list.values.iter().enumerate() {
                let item = read_value(item, depth + 1);
                items.push(at(format_args!("[{position}]"), item)?);
            }
            Value::Array(items)
        }
    })
}

fn read_number(number: f64) -> Read<Number> {
    if number.fract() == 0.0 && number.abs() <= EXACT_F64 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Ok(Number::from(number as i64));
    }
    let message = || FieldError::new("", format!("{number} is not a number that JSON has"));
    Number::from_f64(number).ok_or_else(message)
}

/// The treatment of an integer that a double cannot hold.
#[derive(Clone, Copy)]
enum LargeInteger {
    Refuse,
    AsString,
}

/// Returns the message of a JSON object.
///
/// # Errors
/// The first integer that a double cannot hold, with its path.
pub fn object(object: &Map<String, Value>) -> Read<Struct> {
    write_object(object, LargeInteger::Refuse)
}

/// Returns the message of a stored JSON object; integers that a double cannot hold become strings.
pub(crate) fn stored_object(object: &Map<String, Value>) -> Struct {
    write_object(object, LargeInteger::AsString).expect("strings hold every integer")
}

fn write_object(object: &Map<String, Value>, large: LargeInteger) -> Read<Struct> {
    let mut fields = std::collections::BTreeMap::new();
    for (key, value) in object {
        fields.insert(key.clone(), at(key, write_value(value, large))?);
    }
    Ok(Struct { fields })
}

fn write_value(value: &Value, large: LargeInteger) -> Read<Wire> {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(*flag),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Number(number) => write_number(number, large)?,
        Value::Object(object) => Kind::StructValue(write_object(object, large)?),
        Value::Array(items) => {
            let mut values = Vec::with_capacity(items.len());
            for (position, item) in items.iter().enumerate() {
                let item = write_value(item, large);
                values.push(at(format_args!("[{position}]"), item)?);
            }
            Kind::ListValue(ListValue { values })
        }
    };
    Ok(Wire { kind: Some(kind) })
}

fn write_number(number: &Number, large: LargeInteger) -> Read<Kind> {
    let magnitude = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs));
    let exact = magnitude.is_none_or(|magnitude| magnitude <= EXACT);
    match (exact, number.as_f64(), large) {
        (true, Some(double), _) => Ok(Kind::NumberValue(double)),
        (_, _, LargeInteger::AsString) => Ok(Kind::StringValue(number.to_string())),
        (_, _, LargeInteger::Refuse) => {
            let message = format!(
                "{number} has more digits than a double can hold (2^53): write it in quotes"
            );
            Err(FieldError::new("", message))
        }
    }
}

/// Puts `step` in front of the path of an error.
fn at<T>(step: impl Display, read: Read<T>) -> Read<T> {
    read.map_err(|error| {
        let field = match error.field.as_str() {
            "" => step.to_string(),
            inner if inner.starts_with('[') => format!("{step}{inner}"),
            inner => format!("{step}.{inner}"),
        };
        FieldError { field, ..error }
    })
}
