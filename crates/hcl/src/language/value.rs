//! Values of expressions and conversions between types.
//!
//! A value is JSON's: null, bool, number, string, list, object. Sets are lists without duplicates.
//! A number without a fraction is always an integer, so that equal numbers are equal values.

use serde_json::Number;
pub(crate) use serde_json::Value;

/// Returns the elements of a list or an object with their positions or keys, in order.
///
/// # Errors
/// The value itself, if it is neither.
pub(crate) fn elements(value: Value) -> Result<Vec<(Value, Value)>, Value> {
    match value {
        Value::Array(items) => {
            let numbered = items.into_iter().enumerate();
            Ok(numbered
                .map(|(position, item)| (Value::from(position), item))
                .collect())
        }
        Value::Object(entries) => Ok(entries
            .into_iter()
            .map(|(key, value)| (Value::String(key), value))
            .collect()),
        other => Err(other),
    }
}

/// Returns the name of the type of `value` in messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the text of a string, number or bool.
pub(crate) fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number_text(number)),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Integers without a decimal point, fractions without an exponent.
pub(crate) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

/// Returns a number, also from a string.
pub(crate) fn to_number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => text_to_number(text),
        _ => None,
    }
}

fn text_to_number(text: &str) -> Option<Number> {
    // Rust also parses "inf", "nan" and "+1", which are no numbers in HCL.
    let plain = text
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'e' | b'E' | b'+'));
    if !plain || !text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
        return None;
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    float(text.parse().ok()?)
}

/// Returns a bool, also from a string.
pub(crate) fn to_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text == "true" => Some(true),
        Value::String(text) if text == "false" => Some(false),
        _ => None,
    }
}

/// Returns the number; an integer when it has no fraction, `None` when it is not finite.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked first"
)]
pub(crate) fn float(number: f64) -> Option<Number> {
    /// 2^63: below it every float without a fraction is an i64.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) {
        return Some(Number::from(number as i64));
    }
    Number::from_f64(number)
}

/// Returns an integer that may be too large for 64 bits as the nearest number.
#[expect(
    clippy::cast_precision_loss,
    reason = "what does not fit becomes a float, as in HCL"
)]
pub(crate) fn integer(number: i128) -> Number {
    if let Ok(whole) = i64::try_from(number) {
        return whole.into();
    }
    if let Ok(whole) = u64::try_from(number) {
        return whole.into();
    }
    // Within i128, so finite.
    Number::from_f64(number as f64).unwrap_or_else(|| 0.into())
}

/// Returns the integer of a number without a fraction.
pub(crate) fn whole(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

/// Returns the number as a float.
pub(crate) fn to_float(number: &Number) -> f64 {
    // Without serde_json's arbitrary precision every number is an i64, a u64 or an f64.
    number.as_f64().unwrap_or_default()
}

/// Returns the end of a message about a value of the wrong type: its type, or that it is a runtime
/// value.
pub(crate) fn runtime_hint(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.contains("${") => {
            let text: String = text.chars().take(60).collect();
            format!(", and {text:?} is known only when the task runs")
        }
        _ => format!("; got {}", type_name(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_that_spell_numbers_convert_and_others_do_not() {
        for (text, number) in [
            ("5", json!(5)),
            ("-2", json!(-2)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000)),
        ] {
            assert_eq!(
                to_number(&json!(text)),
                number.as_number().cloned(),
                "{text}"
            );
        }
        for text in ["", "x", "inf", "nan", "+1", "1 ", "0x10", "1e999", "--1"] {
            assert_eq!(to_number(&json!(text)), None, "{text}");
        }
    }

    #[test]
    fn numbers_become_text_without_point_or_exponent() {
        assert_eq!(number_text(&float(3.0).unwrap()), "3");
        assert_eq!(number_text(&float(0.1).unwrap()), "0.1");
        assert_eq!(number_text(&float(1e20).unwrap()), "100000000000000000000");
        assert_eq!(
            number_text(&integer(i128::from(u64::MAX))),
            "18446744073709551615"
        );
    }
}
