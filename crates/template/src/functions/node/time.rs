//! `timestamp`: the time in Go's layouts, in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `now` in a layout: `unix` (seconds), else Go's reference time, such as `2006-01-02`; empty: RFC 3339.
pub(super) fn timestamp(now: Timestamp, layout: &str) -> String {
    match layout {
        "unix" => return now.as_second().to_string(),
        "unix_ms" => return now.as_millisecond().to_string(),
        "unix_us" => return now.as_microsecond().to_string(),
        "unix_ns" => return now.as_nanosecond().to_string(),
        _ => {}
    }
    let layout = if layout.is_empty() {
        "2006-01-02T15:04:05Z07:00"
    } else {
        layout
    };
    let now = now.to_zoned(TimeZone::UTC);
    let mut out = String::new();
    let mut rest = layout;
    'next: while let Some(letter) = rest.chars().next() {
        // A fraction of the second: as many digits as zeros, or nines without zeros at the end.
        if let Some((length, zeros)) = fraction(rest, &out) {
            let digits = format!("{:09}", now.subsec_nanosecond());
            let digits = &digits[..length.min(9)];
            let digits = if zeros {
                digits
            } else {
                digits.trim_end_matches('0')
            };
            if !digits.is_empty() {
                out.push_str(&rest[..1]);
                out.push_str(digits);
            }
            rest = &rest[1 + length..];
            continue;
        }
        for (part, form) in PARTS {
            if let Some(after) = rest.strip_prefix(part) {
                // "Jan" and "Mon" stand alone; "January" and "Monday" come first in the table.
                out.push_str(&match *form {
                    "" => String::new(),
                    form => now.strftime(form).to_string(),
                });
                rest = after;
                continue 'next;
            }
        }
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    out
}

/// The parts of Go's reference time, longest first, and their form for strftime; the zone is UTC.
const PARTS: &[(&str, &str)] = &[
    ("January", "%B"),
    ("Jan", "%b"),
    ("Monday", "%A"),
    ("Mon", "%a"),
    ("MST", "UTC"),
    ("2006", "%Y"),
    ("-07:00:00", "+00:00:00"),
    ("-07:00", "+00:00"),
    ("-0700", "+0000"),
    ("-07", "+00"),
    ("Z07:00", "Z"),
    ("Z0700", "Z"),
    ("Z07", "Z"),
    ("002", "%j"),
    ("01", "%m"),
    ("02", "%d"),
    ("03", "%I"),
    ("04", "%M"),
    ("05", "%S"),
    ("06", "%y"),
    ("15", "%H"),
    ("PM", "%p"),
    ("pm", "%P"),
    ("_2", "%e"),
    ("1", "%-m"),
    ("2", "%-d"),
    ("3", "%-I"),
    ("4", "%-M"),
    ("5", "%-S"),
];

fn fraction(rest: &str, written: &str) -> Option<(usize, bool)> {
    let after = rest.strip_prefix(['.', ','])?;
    let digit = after
        .chars()
        .next()
        .filter(|digit| matches!(digit, '0' | '9'))?;
    let length = after.len() - after.trim_start_matches(digit).len();
    let ends = !after[length..].starts_with(|next: char| next.is_ascii_digit());
    (ends && written.ends_with(|last: char| last.is_ascii_digit()))
        .then_some((length, digit == '0'))
}
