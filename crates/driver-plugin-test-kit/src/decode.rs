//! MessagePack into JSON, as far as blocks of settings need it.
//!
//! Source: the specification of MessagePack.

use serde_json::{Map, Value};

/// # Errors
/// The bytes are no value, or more than one.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let mut rest = bytes;
    let value = read(&mut rest).ok_or("the bytes end early, or are of an unknown kind")?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("{} bytes are left", rest.len()))
    }
}

fn read(rest: &mut &[u8]) -> Option<Value> {
    let kind = take::<1>(rest)?[0];
    Some(match kind {
        0x00..=0x7f => kind.into(),
        0x80..=0x8f => map(rest, usize::from(kind & 0x0f))?,
        0x90..=0x9f => list(rest, usize::from(kind & 0x0f))?,
        0xa0..=0xbf => text(rest, usize::from(kind & 0x1f))?,
        0xc0 => Value::Null,
        0xc2 => false.into(),
        0xc3 => true.into(),
        0xcb => f64::from_be_bytes(take(rest)?).into(),
        0xcc => u8::from_be_bytes(take(rest)?).into(),
        0xcd => u16::from_be_bytes(take(rest)?).into(),
        0xce => u32::from_be_bytes(take(rest)?).into(),
        0xcf => u64::from_be_bytes(take(rest)?).into(),
        0xd0 => i8::from_be_bytes(take(rest)?).into(),
        0xd1 => i16::from_be_bytes(take(rest)?).into(),
        0xd2 => i32::from_be_bytes(take(rest)?).into(),
        0xd3 => i64::from_be_bytes(take(rest)?).into(),
        0xda => {
            let length = u16::from_be_bytes(take(rest)?);
            text(rest, length.into())?
        }
        0xdc => {
            let length = u16::from_be_bytes(take(rest)?);
            list(rest, length.into())?
        }
        0xde => {
            let length = u16::from_be_bytes(take(rest)?);
            map(rest, length.into())?
        }
        0xe0..=0xff => i8::from_be_bytes([kind]).into(),
        _ => return None,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}

fn text(rest: &mut &[u8], length: usize) -> Option<Value> {
    let (text, others) = rest.split_at_checked(length)?;
    *rest = others;
    Some(String::from_utf8(text.to_vec()).ok()?.into())
}

fn list(rest: &mut &[u8], length: usize) -> Option<Value> {
    (0..length).map(|_| read(rest)).collect()
}

fn map(rest: &mut &[u8], length: usize) -> Option<Value> {
    let mut fields = Map::new();
    for _ in 0..length {
        let Value::String(name) = read(rest)? else {
            return None;
        };
        fields.insert(name, read(rest)?);
    }
    Some(Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use driver_plugin::msgpack::encode;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_agent_encodes_is_read() {
        let long = "x".repeat(300);
        for value in [
            json!(null),
            json!([
                0,
                127,
                128,
                65_535,
                65_536,
                4_294_967_296_u64,
                -1,
                -33,
                -129,
                -40_000,
                0.5
            ]),
            json!({"a": true, "b": [false, "text", long], "c": {"d": null}}),
            json!(vec![1; 40]),
        ] {
            assert_eq!(decode(&encode(&value)), Ok(value));
        }
        assert!(decode(&[0xa5, b'a']).is_err());
        assert!(decode(&[0, 0]).is_err());
    }
}
