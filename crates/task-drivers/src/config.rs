//! Decoding of a task's `config` block, durations included.

use std::time::Duration;

use duration::parse_duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::driver::StartError;

/// Reads the options of one driver; unknown ones are an error.
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

/// Reads a duration: a text such as `10s`, or whole nanoseconds.
///
/// # Errors
/// The value is neither.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Nanoseconds(u64),
        Text(String),
    }
    match Form::deserialize(deserializer)? {
        Form::Nanoseconds(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        Form::Text(text) => parse_duration(text.trim()).map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_or_texts() {
        #[derive(Deserialize)]
        struct Options {
            #[serde(deserialize_with = "duration")]
            timeout: Duration,
        }
        let read = |timeout: serde_json::Value| {
            let config = serde_json::json!({"timeout": timeout});
            let options = decode::<Options>("mock_driver", config.as_object().unwrap().clone());
            options.map(|options| options.timeout)
        };
        let run = Duration::from_secs(36_000_000);
        for (timeout, want) in [
            (serde_json::json!(5), Duration::from_nanos(5)),
            (serde_json::json!("1h30m"), Duration::from_secs(5_400)),
            (serde_json::json!("36000000000000000ns"), run),
            (
                serde_json::json!("36000000000000001ns"),
                run + Duration::from_nanos(1),
            ),
        ] {
            assert_eq!(read(timeout.clone()), Ok(want), "{timeout}");
        }
        // Durations beyond the range of the clock are refused.
        for timeout in ["", "10", "-1s", "10 parsecs", "1000000000000000h"] {
            let error = read(timeout.into()).unwrap_err().to_string();
            assert!(error.contains("is not a duration"), "{timeout}: {error}");
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
