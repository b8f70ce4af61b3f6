//! Durations in configuration: a number and a unit, as in `500ms`, `10s`, `1m30s`, `2h`.
//!
//! Use with `#[serde(with = "service_kit::config::duration")]`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads a duration; `None`: `text` is none.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total_ms = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let amount = rest[..digits].parse::<u64>().ok()?;
        rest = &rest[digits..];
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (_, unit_ms) = UNITS.iter().find(|(unit, _)| *unit == rest[..end].trim())?;
        total_ms = total_ms.checked_add(amount.checked_mul(*unit_ms)?)?;
        rest = &rest[end..];
    }
    Some(Duration::from_millis(total_ms))
}

/// # Errors
/// The text is not a duration.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "{text:?} is not a duration: want a number and a unit, as in 500ms, 10s, 1m30s"
        ))
    })
}

/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let whole = |(_, unit_ms): &&(&str, u64)| millis > 0 && millis % unit_ms == 0;
    match UNITS.iter().rev().find(whole) {
        Some((unit, unit_ms)) => {
            serializer.collect_str(&format_args!("{}{unit}", millis / unit_ms))
        }
        None => serializer.collect_str("0s"),
    }
}
