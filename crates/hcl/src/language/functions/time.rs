//! Times in RFC 3339: `formatdate timeadd`.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, fmt};

use super::call::Call;
use super::function::Function;
use super::text::text;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "formatdate",
        parameters: "format, time",
        call: formatdate,
    },
    Function {
        name: "timeadd",
        parameters: "time, duration",
        call: timeadd,
    },
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Reads the time and the offset it is written in.
fn time(call: &Call<'_>, position: usize) -> Result<(DateTime, Offset), String> {
    let text = call.text(position)?;
    let wanted = || {
        let wanted = "a time of RFC 3339, as in \"2026-01-31T08:00:00Z\"";
        format!("{text:?} is not {wanted}")
    };
    let parser = fmt::temporal::DateTimeParser::new();
    let pieces = parser.parse_pieces(text.as_bytes()).map_err(|_| wanted())?;
    let (date, clock) = (pieces.date(), pieces.time().ok_or_else(wanted)?);
    let offset = pieces.to_numeric_offset().ok_or_else(wanted)?;
    Ok((date.to_datetime(clock), offset))
}

fn timeadd(call: &Call<'_>) -> Result<Value, String> {
    let (time, offset) = time(call, 0)?;
    let added = duration::parse_nanoseconds(&call.text(1)?).map_err(|error| error.to_string())?;
    let sum = time
        .checked_add(SignedDuration::from_nanos(added))
        .map_err(|_| "the sum is not a time that can be written".to_owned())?;
    text(&format!(
        "{}{}",
        sum.strftime("%Y-%m-%dT%H:%M:%S"),
        zone(offset, "ZZZZZ", true)
    ))
}

fn formatdate(call: &Call<'_>) -> Result<Value, String> {
    let format = call.text(0)?;
    let (time, offset) = time(call, 1)?;
    let mut out = String::new();
    let mut rest = format.as_str();
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            rest = literal(&mut out, &rest[1..])?;
            continue;
        }
        let run = rest.len() - rest.trim_start_matches(first).len();
        if first.is_ascii_alphabetic() {
            out.push_str(&part(&rest[..run], time, offset)?);
        } else {
            out.push_str(&rest[..run]);
        }
        rest = &rest[run..];
    }
    Ok(Value::String(out))
}

/// Appends a text in single quotes, in which two quotes stand for one; returns what follows it.
fn literal<'a>(out: &mut String, mut rest: &'a str) -> Result<&'a str, String> {
    loop {
        let (text, after) = rest
            .split_once('\'')
            .ok_or("the format has a quote without its end")?;
        out.push_str(text);
        match after.strip_prefix('\'') {
            Some(more) => {
                out.push('\'');
                rest = more;
            }
            None => return Ok(after),
        }
    }
}

/// Returns one part of a time: a run of one letter in the format.
fn part(verb: &str, time: DateTime, offset: Offset) -> Result<String, String> {
    let month = MONTHS[usize::from(time.month().unsigned_abs()).saturating_sub(1) % 12];
    let day = DAYS[usize::from(time.weekday().to_monday_zero_offset().unsigned_abs()) % 7];
    let twelve = (time.hour() + 11) % 12 + 1;
    Ok(match verb {
        "YYYY" => format!("{:04}", time.year()),
        "YY" => format!("{:02}", time.year() % 100),
        "MMMM" => month.to_owned(),
        "MMM" => month[..3].to_owned(),
        "MM" => format!("{:02}", time.month()),
        "M" => time.month().to_string(),
        "DD" => format!("{:02}", time.day()),
        "D" => time.day().to_string(),
        "EEEE" => day.to_owned(),
        "EEE" => day[..3].to_owned(),
        "hh" => format!("{:02}", time.hour()),
        "h" => time.hour().to_string(),
        "HH" => format!("{twelve:02}"),
        "H" => twelve.to_string(),
        "AA" => if time.hour() < 12 { "AM" } else { "PM" }.to_owned(),
        "aa" => if time.hour() < 12 { "am" } else { "pm" }.to_owned(),
        "mm" => format!("{:02}", time.minute()),
        "m" => time.minute().to_string(),
        "ss" => format!("{:02}", time.second()),
        "s" => time.second().to_string(),
        "ZZZZZ" => zone(offset, verb, false),
        "ZZZZ" => zone(offset, verb, false),
        "ZZZ" => zone(offset, verb, false),
        "Z" => zone(offset, verb, true),
        _ => {
            return Err(format!(
                "the format has {verb:?}, which is not a part of a time: put text into single quotes"
            ));
        }
    })
}

/// Returns an offset as `+01:00`, or `+0100` for four letters or three; UTC as `Z` or `UTC` where the
/// form has a name for it.
fn zone(offset: Offset, verb: &str, utc_is_z: bool) -> String {
    if offset == Offset::UTC && utc_is_z {
        return "Z".to_owned();
    }
    if offset == Offset::UTC && verb == "ZZZ" {
        return "UTC".to_owned();
    }
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    let colon = if matches!(verb, "ZZZZZ" | "Z") {
        ":"
    } else {
        ""
    };
    format!("{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60)
}
