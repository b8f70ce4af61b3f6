//! Forms of blocks in a `config`: `labels { a = 1 }` arrives as an object or as a list of objects,
//! and scalars of text maps as any type.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a block at most once.
///
/// # Errors
/// The value is no block, of another shape, or stands there twice.
pub fn one<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let mut found: Vec<T> = many(deserializer)?;
    if found.len() > 1 {
        return Err(D::Error::custom(
            "the block stands here twice: write it once",
        ));
    }
    Ok(found.pop())
}

/// Reads a block any number of times.
///
/// # Errors
/// A value is no block, or of another shape.
pub fn many<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    objects(Value::deserialize(deserializer)?)
        .map_err(D::Error::custom)?
        .into_iter()
        .map(|object| serde_json::from_value(object).map_err(D::Error::custom))
        .collect()
}

/// Reads a map of texts; of several objects, later ones override.
///
/// # Errors
/// The value is no block of texts.
pub fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let mut result = BTreeMap::new();
    for object in objects(Value::deserialize(deserializer)?).map_err(D::Error::custom)? {
        for (name, value) in object.as_object().into_iter().flatten() {
            let value =
                text(value).ok_or_else(|| D::Error::custom(format!("{name} must be a string")))?;
            result.insert(name.clone(), value);
        }
    }
    Ok(result)
}

/// Reads a list of texts, or one text.
///
/// # Errors
/// The value is no list of texts.
pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let items = match Value::deserialize(deserializer)? {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        other => vec![other],
    };
    let texts: Option<Vec<String>> = items.iter().map(text).collect();
    texts.ok_or_else(|| D::Error::custom("must be a list of strings"))
}

fn objects(value: Value) -> Result<Vec<Value>, &'static str> {
    let items = match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        other => vec![other],
    };
    if items.iter().all(Value::is_object) {
        Ok(items)
    } else {
        Err("must be a block: { name = value }")
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
