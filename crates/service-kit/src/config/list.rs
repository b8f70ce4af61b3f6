//! A list in configuration: a TOML array, or a text with commas where a file is not at hand.
//!
//! Use with `#[serde(with = "service_kit::config::list")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Text(String),
    Items(Vec<String>),
}

/// # Errors
/// The value is neither a text nor an array of texts.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Items(items) => items,
        OneOrMany::Text(text) => text
            .split(',')
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect(),
    })
}

/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(items: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    items.serialize(serializer)
}
