//! Field readers: conversions of single fields, whose errors carry the field's path.
//!
//! A reader returns errors relative to its value (an empty path is the value itself); [`At::at`]
//! prepends the name of the field on the way out, so that paths are built only for errors.

use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use model::{FieldErrors, Timestamp};

pub(crate) type Read<T> = Result<T, FieldErrors>;

/// Returns an error for the value itself.
pub(crate) fn invalid(message: impl Into<String>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    errors.push("", message);
    errors
}

/// Prepends paths to errors.
pub(crate) trait At {
    /// Prepends `field` to the path of every error.
    fn at(self, field: impl Display) -> Self;
}

impl At for FieldErrors {
    fn at(mut self, field: impl Display) -> Self {
        for error in &mut self.0 {
            error.field = match error.field.as_str() {
                "" => field.to_string(),
                inner if inner.starts_with('[') => format!("{field}{inner}"),
                inner => format!("{field}.{inner}"),
            };
        }
        self
    }
}

impl<T> At for Read<T> {
    fn at(self, field: impl Display) -> Self {
        self.map_err(|errors| errors.at(field))
    }
}

/// Reads every item; an error carries the position of the first invalid one.
pub(crate) fn each<W, T>(items: Vec<W>, read: impl Fn(W) -> Read<T>) -> Read<Vec<T>> {
    let mut out = Vec::with_capacity(items.len());
    for (position, item) in items.into_iter().enumerate() {
        out.push(read(item).at(format_args!("[{position}]"))?);
    }
    Ok(out)
}

/// Reads every value; an error carries the key of an invalid one.
pub(crate) fn each_value<W, T, M: FromIterator<(String, T)>>(
    items: HashMap<String, W>,
    read: impl Fn(W) -> Read<T>,
) -> Read<M> {
    let values = items.into_iter().map(|(key, item)| {
        let value = read(item).at(format_args!("[{key:?}]"))?;
        Ok((key, value))
    });
    values.collect()
}

/// Reads a required id.
pub(crate) fn id<I: FromStr<Err = model::ids::InvalidId>>(text: &str) -> Read<I> {
    text.parse()
        .map_err(|error: model::ids::InvalidId| invalid(error.to_string()))
}

/// Reads an optional id; an empty text is none.
pub(crate) fn optional_id<I: FromStr<Err = model::ids::InvalidId>>(text: &str) -> Read<Option<I>> {
    if text.is_empty() {
        Ok(None)
    } else {
        id(text).map(Some)
    }
}

/// Writes an optional id.
pub(crate) fn id_or_empty<I: ToString>(id: Option<I>) -> String {
    id.map_or_else(String::new, |id| id.to_string())
}

/// Reads one word out of a closed list.
pub(crate) fn word<T: Copy>(text: &str, all: &[T], as_str: impl Fn(T) -> &'static str) -> Read<T> {
    all.iter()
        .copied()
        .find(|one| as_str(*one) == text)
        .ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|one| as_str(*one)).collect();
            invalid(format!(
                "{text:?} is not known here: want one of {}",
                known.join(", ")
            ))
        })
}

/// Reads an optional word; an empty text is none.
pub(crate) fn optional_word<T: Copy>(
    text: &str,
    all: &[T],
    as_str: impl Fn(T) -> &'static str,
) -> Read<Option<T>> {
    if text.is_empty() {
        Ok(None)
    } else {
        word(text, all, as_str).map(Some)
    }
}

/// Reads a number into a narrower type.
pub(crate) fn narrow<N: TryFrom<u32> + Display>(value: u32, largest: N) -> Read<N> {
    N::try_from(value).map_err(|_| invalid(format!("{value} is too large: want at most {largest}")))
}

/// Reads a job's or an evaluation's priority.
pub(crate) fn priority(value: u32) -> Read<u8> {
    u8::try_from(value).map_err(|_| invalid(format!("{value} is not a priority: want 1 to 100")))
}

/// Reads a required part.
pub(crate) fn required<T>(part: Option<T>) -> Read<T> {
    part.ok_or_else(|| invalid("missing: it has to be set"))
}

pub(crate) fn time(nanoseconds: u64) -> Timestamp {
    Timestamp(nanoseconds)
}

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Reads a duration as whole nanoseconds.
fn total_nanoseconds(duration: prost_types::Duration) -> Read<i128> {
    let (seconds, nanos) = (i128::from(duration.seconds), i128::from(duration.nanos));
    if nanos.abs() >= NANOS_PER_SECOND || seconds.signum() * nanos.signum() < 0 {
        return Err(invalid(format!(
            "{seconds} s and {nanos} ns are not a duration: want less than a second of \
             nanoseconds, of the same sign as the seconds"
        )));
    }
    Ok(seconds * NANOS_PER_SECOND + nanos)
}

/// Reads a duration that cannot be negative.
pub(crate) fn duration(duration: prost_types::Duration) -> Read<Duration> {
    let nanos = total_nanoseconds(duration)?;
    if nanos < 0 {
        return Err(invalid(format!("{nanos} ns is negative: want 0 or more")));
    }
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| {
        invalid(format!(
            "{} s is too long: want at most 584 years",
            duration.seconds
        ))
    })
}

/// Writes a duration; one too long for the wire is written as the longest.
pub fn duration_to_wire(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).expect("less than a second fits in i32"),
    }
}

/// Reads a duration that is required and cannot be negative; `field` is its path.
///
/// # Errors
/// A duration that is missing, negative or malformed.
pub fn required_duration(
    field: &str,
    wire: Option<prost_types::Duration>,
) -> Result<Duration, FieldErrors> {
    required(wire).and_then(duration).at(field)
}
