//! Functions that parse texts, write formats, encode and hash.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use data_encoding::HEXLOWER;
use md5::{Digest, Md5};
use ring::{digest, hmac};

use crate::format::json::{self, Style};
use crate::format::{toml, yaml};
use crate::function::{Call, Failure, Function, exact};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exact("parseJSON", 1, |call| {
        let text = call.text(0)?;
        if text.is_empty() {
            return Ok(Value::map(std::collections::BTreeMap::new())?);
        }
        Ok(json::read(&text)?)
    }),
    exact("parseYAML", 1, |call| {
        let text = call.text(0)?;
        if text.is_empty() {
            return Ok(Value::map(std::collections::BTreeMap::new())?);
        }
        Ok(yaml::read(&text)?)
    }),
    exact("parseInt", 1, |call| {
        parsed(
            call,
            Value::Int(0),
            |text| text.parse().ok().map(Value::Int),
            "an integer",
        )
    }),
    exact("parseUint", 1, |call| {
        parsed(
            call,
            Value::Uint(0),
            |text| text.parse().ok().map(Value::Uint),
            "an integer without a sign",
        )
    }),
    exact("parseFloat", 1, |call| {
        parsed(
            call,
            Value::Float(0.0),
            |text| text.parse().ok().map(Value::Float),
            "a number",
        )
    }),
    exact("parseBool", 1, |call| {
        parsed(call, Value::Bool(false), parse_bool, "true or false")
    }),
    exact("toJSON", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                pretty: false,
                escapes_html: true,
            },
        )?
        .into())
    }),
    exact("toJSONPretty", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                pretty: true,
                escapes_html: true,
            },
        )?
        .into())
    }),
    exact("toUnescapedJSON", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                pretty: false,
                escapes_html: false,
            },
        )?
        .into())
    }),
    exact("toUnescapedJSONPretty", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                pretty: true,
                escapes_html: false,
            },
        )?
        .into())
    }),
    exact("toYAML", 1, |call| Ok(yaml::write(call.value(0))?.into())),
    exact("toTOML", 1, |call| Ok(toml::write(call.value(0))?.into())),
    exact("base64Encode", 1, |call| {
        Ok(STANDARD.encode(&*call.text(0)?).into())
    }),
    exact("base64Decode", 1, |call| {
        decoded(STANDARD.decode(&*call.text(0)?))
    }),
    exact("base64URLEncode", 1, |call| {
        Ok(URL_SAFE.encode(&*call.text(0)?).into())
    }),
    exact("base64URLDecode", 1, |call| {
        decoded(URL_SAFE.decode(&*call.text(0)?))
    }),
    exact("md5sum", 1, |call| {
        Ok(HEXLOWER
            .encode(&Md5::digest(call.text(0)?.as_bytes()))
            .into())
    }),
    exact("sha256Hex", 1, |call| {
        Ok(sha(&digest::SHA256, &call.text(0)?).into())
    }),
    exact("hmacSHA256Hex", 2, |call| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, call.text(1)?.as_bytes());
        Ok(HEXLOWER
            .encode(hmac::sign(&key, call.text(0)?.as_bytes()).as_ref())
            .into())
    }),
    // Prints to the log of the agent in Nomad; its text is empty.
    crate::function::many("spew_dump", 0, |_| Ok("".into())),
];

/// The value of a text, or `empty` for an empty one.
fn parsed(
    call: &Call<'_>,
    empty: Value,
    parse: fn(&str) -> Option<Value>,
    what: &str,
) -> Result<Value, Failure> {
    let text = call.text(0)?;
    if text.is_empty() {
        return Ok(empty);
    }
    parse(&text).ok_or_else(|| format!("{text:?} is not {what}").into())
}

fn parse_bool(text: &str) -> Option<Value> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Value::Bool(false)),
        _ => None,
    }
}

pub(super) fn decoded(bytes: Result<Vec<u8>, base64::DecodeError>) -> Result<Value, Failure> {
    let bytes = bytes.map_err(|error| format!("not base64: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "the decoded bytes are not a text in UTF-8")?;
    Ok(text.into())
}

pub(super) fn sha(algorithm: &'static digest::Algorithm, text: &str) -> String {
    HEXLOWER.encode(digest::digest(algorithm, text.as_bytes()).as_ref())
}
