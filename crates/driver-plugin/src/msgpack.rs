//! MessagePack of a decoded block.
//!
//! Texts never have the form with a length of 8 bits, which decoders of the first version of the format do
//! not know; every decoder knows the others. Source: the specification of MessagePack, both versions.

use serde_json::{Number, Value};

/// Returns the encoding of a value. Whole numbers are integers, however they are written.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, value);
    out
}

fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(0xc0),
        Value::Bool(false) => out.push(0xc2),
        Value::Bool(true) => out.push(0xc3),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => {
            write_length(out, text.len(), (0xa0, 31), (0xda, 0xdb));
            out.extend_from_slice(text.as_bytes());
        }
        Value::Array(items) => {
            write_length(out, items.len(), (0x90, 15), (0xdc, 0xdd));
            for item in items {
                write(out, item);
            }
        }
        Value::Object(fields) => {
            write_length(out, fields.len(), (0x80, 15), (0xde, 0xdf));
            for (name, value) in fields {
                write(out, &Value::String(name.clone()));
                write(out, value);
            }
        }
    }
}

/// Writes the head of a text, list or map: a byte with the length up to `short.1`, or a byte and 16 or 32
/// bits.
fn write_length(out: &mut Vec<u8>, length: usize, short: (u8, u8), long: (u8, u8)) {
    // A block is bounded by the size of a job.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length), _) if length <= short.1 => out.push(short.0 | length),
        (_, Ok(length)) => {
            out.push(long.0);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.push(long.1);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    if let Some(number) = number.as_u64() {
        write_unsigned(out, number);
    } else if let Some(number) = number.as_i64() {
        write_signed(out, number);
    } else {
        let number = number.as_f64().unwrap_or_default();
        match whole(number) {
            Some(number) => match u64::try_from(number) {
                Ok(number) => write_unsigned(out, number),
                Err(_) => write_signed(out, number),
            },
            None => {
                out.push(0xcb);
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
    }
}

/// Returns a fraction without a fractional part as an integer, as far as a double holds integers exactly.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it has no fraction, and is in the range"
    )]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

fn write_unsigned(out: &mut Vec<u8>, number: u64) {
    if let Ok(number) = u8::try_from(number) {
        if number > 0x7f {
            out.push(0xcc);
        }
        out.push(number);
    } else if let Ok(number) = u16::try_from(number) {
        out.push(0xcd);
        out.extend_from_slice(&number.to_be_bytes());
    } else if let Ok(number) = u32::try_from(number) {
        out.push(0xce);
        out.extend_from_slice(&number.to_be_bytes());
    } else {
        out.push(0xcf);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn write_signed(out: &mut Vec<u8>, number: i64) {
    if let Ok(number) = i8::try_from(number) {
        if number < -32 {
            out.push(0xd0);
        }
        out.extend_from_slice(&number.to_be_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        out.push(0xd1);
        out.extend_from_slice(&number.to_be_bytes());
    } else if let Ok(number) = i32::try_from(number) {
        out.push(0xd2);
        out.extend_from_slice(&number.to_be_bytes());
    } else {
        out.push(0xd3);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_bytes_of_the_specification() {
        for (value, want) in [
            (json!(null), "c0"),
            (json!(false), "c2"),
            (json!(true), "c3"),
            (json!(0), "00"),
            (json!(127), "7f"),
            (json!(128), "cc80"),
            (json!(65_535), "cdffff"),
            (json!(65_536), "ce00010000"),
            (json!(4_294_967_296_u64), "cf0000000100000000"),
            (json!(-1), "ff"),
            (json!(-32), "e0"),
            (json!(-33), "d0df"),
            (json!(-129), "d1ff7f"),
            (json!(-32_769), "d2ffff7fff"),
            (json!(-2_147_483_649_i64), "d3ffffffff7fffffff"),
            (json!(3.0), "03"),
            (json!(-3.0), "fd"),
            (json!(0.5), "cb3fe0000000000000"),
            (json!(""), "a0"),
            (json!("ab"), "a26162"),
            (json!([1, "a"]), "9201a161"),
            (json!({"a": 1, "b": null}), "82a16101a162c0"),
        ] {
            let found: String = encode(&value)
                .iter()
                .map(|it| format!("{it:02x}"))
                .collect();
            assert_eq!(found, want, "{value}");
        }
    }

    #[test]
    fn long_texts_lists_and_maps_have_longer_heads() {
        let head = |value: Value| encode(&value)[..3].to_vec();
        assert_eq!(head(json!("x".repeat(32))), [0xda, 0, 32]);
        assert_eq!(head(json!("x".repeat(300))), [0xda, 1, 44]);
        assert_eq!(head(json!("x".repeat(70_000))), [0xdb, 0, 1]);
        assert_eq!(head(json!(vec![0; 16])), [0xdc, 0, 16]);
        let map: serde_json::Map<String, Value> =
            (0..16).map(|key| (key.to_string(), json!(0))).collect();
        assert_eq!(head(Value::Object(map)), [0xde, 0, 16]);
    }
}
