//! Durations in configuration: numbers with units, as in `500ms`, `10s`, `1m30s`, `7d`.
//!
//! Use with `#[serde(with = "service_kit::config::duration")]`.

use std::time::Duration;

use ::duration::{parse_setting, show_setting};
use serde::{Deserialize, Deserializer, Serializer};

/// # Errors
/// The text is not a duration.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_setting(&text).map_err(serde::de::Error::custom)
}

/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&show_setting(*duration))
}
