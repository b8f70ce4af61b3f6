//! Options of a task's `config` block, and spans of time in them.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::driver::StartError;

/// Reads the options of one driver; an unknown one is an error.
///
/// # Errors
/// [`StartError::Config`] names the option.
pub fn decode<T: DeserializeOwned>(
    driver: &str,
    config: serde_json::Map<String, serde_json::Value>,
) -> Result<T, StartError> {
    serde_json::from_value(serde_json::Value::Object(config))
        .map_err(|error| StartError::Config(format!("config of driver {driver}: {error}")))
}

/// The units of a span of time, in nanoseconds.
const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 6e10),
    ("h", 3.6e12),
];

/// Returns the span that `text` says, as in `1h30m`, `1.5s`, `250ms`; `None` when it says none.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (_, nanoseconds) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end])?;
        seconds += amount * nanoseconds / 1e9;
        rest = &rest[end..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// Reads a span of time: a text such as `10s`, or whole nanoseconds.
///
/// # Errors
/// The value is neither.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Span {
        Nanoseconds(u64),
        Text(String),
    }
    match Span::deserialize(deserializer)? {
        Span::Nanoseconds(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        Span::Text(text) => parse_duration(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is not a span of time such as 10s or 1m30s"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read_as_users_write_them() {
        let cases = [
            ("10s", Some(Duration::from_secs(10))),
            ("1h30m", Some(Duration::from_secs(5400))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("250ms", Some(Duration::from_millis(250))),
            ("0", Some(Duration::ZERO)),
            ("", None),
            ("s", None),
            ("10", None),
            ("-1s", None),
            ("10 parsecs", None),
            ("1..2s", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse_duration(text), want, "{text:?}");
        }
    }

    #[test]
    fn an_unknown_option_is_named() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Options {
            #[serde(rename = "command")]
            _command: String,
        }
        let config = serde_json::json!({"command": "x", "comand": "y"});
        let error = decode::<Options>("raw_exec", config.as_object().unwrap().clone()).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `comand`"),
            "{error}"
        );
    }
}
