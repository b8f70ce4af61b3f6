//! Parsers of flag values, with messages that show a valid one.

use std::net::{IpAddr, SocketAddr};
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

/// The smallest timeout: messages about timeouts are in milliseconds.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// The problem of an empty value.
pub(crate) const EMPTY: &str = "the value is empty; is a variable of the shell unset?";

/// Parses an ID, its prefix, or a name.
///
/// An empty one is a prefix of everything: in `kafila job stop -yes "$JOB"` with an unset variable it
/// would match the only job.
pub(crate) fn id(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(EMPTY.to_owned());
    }
    Ok(text.to_owned())
}

/// The escape character of a terminal session; `None`: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escape(pub Option<u8>);

/// Parses an escape character.
pub(crate) fn escape(text: &str) -> Result<Escape, String> {
    match text.as_bytes() {
        b"none" | b"" => Ok(Escape(None)),
        [only] if only.is_ascii_graphic() => Ok(Escape(Some(*only))),
        _ => Err("expected one ASCII character, for example ~, or none".to_owned()),
    }
}

/// Parses a duration of 1 ms or more, with the units of settings: also in days, as in 7d12h.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = any_duration(text)?;
    if duration < MIN_TIMEOUT {
        return Err("the duration must be 1ms or more".to_owned());
    }
    Ok(duration)
}

/// Parses a duration, which may be 0.
pub(crate) fn any_duration(text: &str) -> Result<Duration, String> {
    duration::parse_setting(text).map_err(|error| error.to_string())
}

/// Parses a whole number.
pub(crate) fn whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow => "the number is too large",
            _ => "expected a whole number, 0 or more, for example 3",
        };
        problem.to_owned()
    })
}

/// Parses the priority of a job or an evaluation.
pub(crate) fn priority(text: &str) -> Result<u32, String> {
    let priority = text.parse().ok().filter(|it| (1..=100).contains(it));
    priority.ok_or_else(|| "expected a whole number from 1 to 100, for example 50".to_owned())
}

/// Parses a listen address.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address and a port up to 65535, for example 127.0.0.1:5646".to_owned()
    })
}

/// Parses an IP address.
pub(crate) fn ip_address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| "expected an IP address, for example 10.0.0.1".to_owned())
}

/// Parses a number of days.
pub(crate) fn days(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "expected a whole number of days, for example 365".to_owned())
}

/// Parses the number of nodes of `kafila dev`.
pub(crate) fn nodes(text: &str) -> Result<u16, String> {
    let nodes = text.parse().ok().filter(|it| (1..=100).contains(it));
    nodes.ok_or_else(|| "expected a whole number from 1 to 100, for example 3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_a_valid_value() {
        assert_eq!(whole::<u64>("3"), Ok(3));
        for text in ["x", "-1", "", "1.5"] {
            assert!(
                whole::<u64>(text).unwrap_err().contains("for example 3"),
                "{text}"
            );
        }
        assert_eq!(priority("100"), Ok(100));
        for text in ["0", "101", "200", "high"] {
            assert!(priority(text).unwrap_err().contains("1 to 100"), "{text}");
        }
        assert_eq!(nodes("100"), Ok(100));
        for text in ["x", "0", "101", "70000"] {
            assert!(nodes(text).unwrap_err().contains("1 to 100"), "{text}");
        }
        assert!(
            listen("127.0.0.1:99999")
                .unwrap_err()
                .contains("up to 65535")
        );
        assert!(listen("127.0.0.1:5646").is_ok());
        assert!(listen(":5646").unwrap_err().contains("127.0.0.1:5646"));
        assert!(ip_address("::1").is_ok());
        assert!(ip_address("abc").unwrap_err().contains("10.0.0.1"));
        assert_eq!(days("30"), Ok(30));
        for text in ["abc", "-1", "", "5000000000"] {
            assert!(
                days(text).unwrap_err().contains("for example 365"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_empty_id_is_refused() {
        assert_eq!(id("web").as_deref(), Ok("web"));
        for empty in ["", " ", "\t"] {
            assert!(id(empty).unwrap_err().contains("unset"), "{empty:?}");
        }
    }

    #[test]
    fn a_timeout_is_a_millisecond_or_more() {
        assert_eq!(duration("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("1ms").unwrap(), Duration::from_millis(1));
        let days = Duration::from_secs(86_400);
        assert_eq!(duration("1d").unwrap(), days);
        assert_eq!(any_duration("7d12h").unwrap(), days * 15 / 2);
        for short in ["0s", "1ns", "999us"] {
            assert!(
                duration(short).unwrap_err().contains("1ms or more"),
                "{short}"
            );
        }
        assert!(duration("10").unwrap_err().contains("duration"));
    }
}
