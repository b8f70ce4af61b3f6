//! Durations as text: `1h30m`, `500ms`, `1.5s`.
//!
//! The syntax is that of Go's `time.ParseDuration`, which Nomad's job files use: an optional sign,
//! then numbers with a unit each, largest first or not. It has no unit for days; settings and flags of
//! commands do ([`parse_setting`]).

use std::time::Duration;

const NO_NUMBER: &str = "write a number and a unit, as in \"30s\"";
const NEGATIVE: &str = "it is negative";
const TOO_LONG: &str = "it is longer than 292 years";

/// Accepted units, longest names first so that `ms` is not read as `m`.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5, micro sign
    ("μs", 1_000), // U+03BC, Greek mu
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
];

/// Nanoseconds of a day, a unit of settings only.
const DAY: u64 = 24 * 3_600 * 1_000_000_000;

/// A text that is not a duration, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: {reason}")]
pub struct InvalidDuration {
    pub text: String,
    pub reason: String,
}

/// Reads a duration: one or more numbers, each with a unit (`ns us µs ms s m h`), as in `1h30m`.
///
/// # Errors
/// A text without a unit, with an unknown one, below zero, or beyond 292 years.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let nanoseconds = parse_nanoseconds(text)?;
    u64::try_from(nanoseconds)
        .map(Duration::from_nanos)
        .map_err(|_| invalid(text, NEGATIVE.to_owned()))
}

/// Reads a duration that may be negative, as whole nanoseconds.
///
/// # Errors
/// A text without a unit, with an unknown one, or beyond 292 years.
pub fn parse_nanoseconds(text: &str) -> Result<i64, InvalidDuration> {
    sum(text, job_unit).map_err(|reason| invalid(text, reason))
}

/// Reads the duration of a setting or a flag: as in job files, also in days, with spaces between the
/// numbers: `7d`, `7d12h`, `1d 12h`.
///
/// # Errors
/// As for [`parse_duration`].
pub fn parse_setting(text: &str) -> Result<Duration, InvalidDuration> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    if parts.is_empty() {
        return Err(invalid(text, NO_NUMBER.to_owned()));
    }
    let mut total = Duration::ZERO;
    for part in parts {
        let nanoseconds = sum(part, setting_unit).map_err(|reason| invalid(text, reason))?;
        let nanoseconds = u64::try_from(nanoseconds).map_err(|_| invalid(text, NEGATIVE.into()))?;
        total += Duration::from_nanos(nanoseconds);
    }
    Ok(total)
}

/// Writes the duration of a setting: a whole number of the largest unit that fits, `90s`, `7d`.
pub fn show_setting(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let ascending = [0, 1, 4, 5, 6, 7].map(|unit| UNITS[unit]);
    let mut units = ascending.into_iter().chain([("d", DAY)]);
    let fits = |(_, scale): &(&str, u64)| nanoseconds.is_multiple_of(u128::from(*scale));
    let (unit, scale) = units.rfind(fits).unwrap_or(UNITS[0]);
    format!("{}{unit}", nanoseconds / u128::from(scale))
}

/// Reads the whole text; `scale` knows the units.
fn sum(text: &str, scale: fn(&str) -> Result<u64, String>) -> Result<i64, String> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(NO_NUMBER.to_owned());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (nanoseconds, after) = parse_component(rest, scale)?;
        // A component is below 2^64 * 8.64e13 < 2^111, and the sum is cut off right here.
        total += nanoseconds;
        if total > i128::from(i64::MAX) {
            return Err(TOO_LONG.to_owned());
        }
        rest = after;
    }
    let signed = if negative { -total } else { total };
    Ok(i64::try_from(signed).expect("the sum was compared with i64::MAX above"))
}

/// Reads one number with its unit from the front of `rest`; returns it and the remaining text.
fn parse_component(
    rest: &str,
    scale: fn(&str) -> Result<u64, String>,
) -> Result<(i128, &str), String> {
    let (whole, after_whole) = rest.split_at(digits(rest));
    let (fraction, after_number) = match after_whole.strip_prefix('.') {
        Some(tail) => tail.split_at(digits(tail)),
        None => ("", after_whole),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(NO_NUMBER.to_owned());
    }
    let unit_len = after_number
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(after_number.len());
    let (unit, after_unit) = after_number.split_at(unit_len);
    let scale = scale(unit)?;
    let whole: u64 = match whole {
        "" => 0,
        digits => digits.parse().map_err(|_| TOO_LONG.to_owned())?,
    };
    let nanoseconds = i128::from(whole) * i128::from(scale) + scaled_fraction(fraction, scale);
    Ok((nanoseconds, after_unit))
}

/// Returns the nanoseconds of a unit of job files.
fn job_unit(unit: &str) -> Result<u64, String> {
    if let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return Ok(*scale);
    }
    Err(match unit {
        "" => "the unit is missing: write it after the number, as in \"30s\"".to_owned(),
        "d" | "w" => format!("there is no unit {unit:?}: write hours, as in \"24h\" for a day"),
        _ => format!("there is no unit {unit:?}: the units are ns, us, ms, s, m and h"),
    })
}

/// Returns the nanoseconds of a unit of settings.
fn setting_unit(unit: &str) -> Result<u64, String> {
    match (unit, job_unit(unit)) {
        ("d", _) => Ok(DAY),
        ("w", _) => Err("there is no unit \"w\": write days, as in \"7d\" for a week".to_owned()),
        (_, Err(reason)) => Err(reason.replace("s, m and h", "s, m, h and d")),
        (_, known) => known,
    }
}

/// Returns the decimal fraction `digits` of `scale`, cut off below one nanosecond.
fn scaled_fraction(digits: &str, scale: u64) -> i128 {
    let mut value: i128 = 0;
    let mut unit = i128::from(scale);
    for digit in digits.bytes() {
        unit *= 10;
        value = value * 10 + i128::from(digit - b'0') * i128::from(scale);
        // 10^18 already resolves nanoseconds of an hour; further digits change nothing.
        if unit / i128::from(scale) >= 1_000_000_000_000_000_000 {
            break;
        }
    }
    value / (unit / i128::from(scale))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn invalid(text: &str, reason: String) -> InvalidDuration {
    // Typed text is short; other text need not be echoed in full.
    InvalidDuration {
        text: text.chars().take(80).collect(),
        reason,
    }
}

/// Writes `duration` as Go prints it: `1h30m0s`, `1.5s`, `250ms`.
pub fn show(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    for (limit, scale, unit) in [
        (1_000, 1, "ns"),
        (1_000_000, 1_000, "µs"),
        (1_000_000_000, 1_000_000, "ms"),
    ] {
        if nanoseconds < limit {
            return format!("{}{unit}", decimal(nanoseconds, scale));
        }
    }
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let rest = decimal(nanoseconds % 60_000_000_000, 1_000_000_000);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

/// Writes `value / scale` without trailing zeros; `scale` is a power of ten.
fn decimal(value: u128, scale: u128) -> String {
    let (whole, fraction) = (value / scale, value % scale);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    let fraction = format!("{fraction:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_go_syntax_are_read() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("30s", 30_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("500ms", 500_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("1h15m30.5s", 4_530_500_000_000),
            ("3us", 3_000),
            ("3µs", 3_000),
            ("3μs", 3_000),
            ("+7ns", 7),
            ("-7ns", -7),
            ("0.000000001s", 1),
            ("0.33333333333333333333h", 1_200_000_000_000 - 1),
            ("2562047h47m16.854775807s", i64::MAX),
        ] {
            assert_eq!(parse_nanoseconds(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_duration_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "write a number and a unit"),
            ("-", "write a number and a unit"),
            ("s", "write a number and a unit"),
            (".s", "write a number and a unit"),
            ("30", "the unit is missing"),
            ("1d", "there is no unit \"d\": write hours"),
            ("1w", "there is no unit \"w\": write hours"),
            ("1 h", "there is no unit \" h\""),
            ("1h 30m", "there is no unit \"h \""),
            ("1H", "there is no unit \"H\""),
            ("9223372037s", "longer than 292 years"),
            ("99999999999999999999s", "longer than 292 years"),
        ] {
            let error = parse_nanoseconds(text).unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error}");
        }
        assert!(
            parse_duration("-1s")
                .unwrap_err()
                .reason
                .contains("negative")
        );
        assert_eq!(parse_duration("90m").unwrap(), Duration::from_secs(5_400));
    }

    #[test]
    fn settings_have_days_and_spaces_too() {
        for (text, milliseconds) in [
            ("7d", 604_800_000),
            ("1d 12h", 129_600_000),
            ("7d12h", 648_000_000),
            (" 1h 2m3s4ms ", 3_723_004),
            ("1.5s", 1_500),
        ] {
            assert_eq!(
                parse_setting(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for (text, reason) in [
            (" ", "write a number and a unit"),
            ("10", "the unit is missing"),
            ("1 0s", "the unit is missing"),
            ("10s -1s", "negative"),
            ("1w", "write days"),
            ("10parsecs", "the units are ns, us, ms, s, m, h and d"),
            ("110000d", "longer than 292 years"),
        ] {
            let error = parse_setting(text).unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error}");
            assert_eq!(error.text, text);
        }
    }

    #[test]
    fn settings_are_shown_in_the_largest_unit_that_fits() {
        for (text, duration) in [
            ("0s", Duration::ZERO),
            ("1ns", Duration::from_nanos(1)),
            ("1500us", Duration::from_micros(1_500)),
            ("1500ms", Duration::from_millis(1_500)),
            ("90s", Duration::from_secs(90)),
            ("1m", Duration::from_secs(60)),
            ("36h", Duration::from_secs(129_600)),
            ("1d", Duration::from_secs(86_400)),
        ] {
            assert_eq!(show_setting(duration), text);
            assert_eq!(parse_setting(text), Ok(duration));
        }
    }

    #[test]
    fn durations_are_shown_as_go_prints_them() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (7, "7ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (5_400_000_000_000, "1h30m0s"),
            (3_600_000_000_001, "1h0m0.000000001s"),
        ] {
            assert_eq!(show(Duration::from_nanos(nanoseconds)), text);
            assert_eq!(
                parse_duration(text).unwrap(),
                Duration::from_nanos(nanoseconds)
            );
        }
    }
}
