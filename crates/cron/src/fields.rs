//! Parser of cron expressions.

use std::time::Duration;

use crate::day::{Days, MonthDay, WeekDay};

/// Source: the years that the dialect knows.
pub(crate) const FIRST_YEAR: i16 = 1970;
pub(crate) const LAST_YEAR: i16 = 2099;

/// The maximum length of an expression; a longer one is rejected.
const MAX_BYTES: usize = 1_024;

/// The reason why an expression cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCron(String);

/// An expression, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    Fields(Box<Fields>),
    /// `@every 5m`, counted from midnight of 1 January 1970, UTC; whole seconds, at least one.
    Every(Duration),
}

/// Bit n of a set: n is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u64,
    pub(crate) months: u64,
    pub(crate) days: Days,
    /// Sorted; empty: every year.
    pub(crate) years: Vec<i16>,
}

/// A field's name, its least and largest number, and the names that numbers have.
struct Kind {
    name: &'static str,
    least: i64,
    largest: i64,
    words: &'static [&'static str],
    /// The number of the first word.
    first_word: i64,
}

const SECOND: Kind = number("second", 0, 59);
const MINUTE: Kind = number("minute", 0, 59);
const HOUR: Kind = number("hour", 0, 23);
const MONTH_DAY: Kind = number("day of month", 1, 31);
const MONTH: Kind = Kind {
    words: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
    first_word: 1,
    ..number("month", 1, 12)
};
/// 7 is Sunday too.
const WEEK_DAY: Kind = Kind {
    words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    first_word: 0,
    ..number("day of week", 0, 7)
};
const YEAR: Kind = number("year", FIRST_YEAR as i64, LAST_YEAR as i64);

const fn number(name: &'static str, least: i64, largest: i64) -> Kind {
    Kind {
        name,
        least,
        largest,
        words: &[],
        first_word: 0,
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T, InvalidCron> {
    Err(InvalidCron(message.into()))
}

/// # Errors
/// The error in `text`, with its place.
pub(crate) fn parse(text: &str) -> Result<Expression, InvalidCron> {
    if text.len() > MAX_BYTES {
        return invalid(format!("longer than {MAX_BYTES} bytes"));
    }
    let text = text.trim();
    if let Some(name) = text.strip_prefix('@') {
        return named(name);
    }
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let (second, rest, year) = match *parts.as_slice() {
        [a, b, c, d, e] => ("0", [a, b, c, d, e], "*"),
        [a, b, c, d, e, year] => ("0", [a, b, c, d, e], year),
        [second, a, b, c, d, e, year] => (second, [a, b, c, d, e], year),
        _ => {
            return invalid(format!(
                "has {} fields: want minute hour day-of-month month day-of-week, with a year \
                 after them and seconds before them if need be",
                parts.len()
            ));
        }
    };
    let [minute, hour, month_day, month, week_day] = rest;
    Ok(Expression::Fields(Box::new(Fields {
        seconds: set(&SECOND, second)?,
        minutes: set(&MINUTE, minute)?,
        hours: set(&HOUR, hour)?,
        months: set(&MONTH, month)?,
        days: Days {
            of_month: month_days(month_day)?,
            of_week: week_days(week_day)?,
        },
        years: years(year)?,
    })))
}

fn named(name: &str) -> Result<Expression, InvalidCron> {
    if let Some(duration) = name.strip_prefix("every ") {
        return every(duration.trim());
    }
    let expression = match name {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        _ => {
            return invalid(format!(
                "@{name} is not known: want @yearly, @monthly, @weekly, @daily, @hourly or \
                 @every with a duration"
            ));
        }
    };
    parse(expression)
}

/// Reads a duration in hours, minutes and seconds, as in `1h30m`.
fn every(text: &str) -> Result<Expression, InvalidCron> {
    let wrong = || {
        InvalidCron(format!(
            "@every {text}: want a duration of whole seconds, as in @every 5m or @every 1h30m"
        ))
    };
    let mut seconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let unit = match tail.as_bytes().first() {
            Some(b'h') => 3_600,
            Some(b'm') => 60,
            Some(b's') => 1,
            _ => return Err(wrong()),
        };
        let part = number.checked_mul(unit).ok_or_else(wrong)?;
        seconds = seconds.checked_add(part).ok_or_else(wrong)?;
        rest = &tail[1..];
    }
    // A hundred years: beyond the years that are known.
    if seconds == 0 || seconds > 100 * 366 * 86_400 {
        return Err(wrong());
    }
    Ok(Expression::Every(Duration::from_secs(seconds)))
}

/// Returns the numbers that a field stands for, as bits.
fn set(kind: &Kind, text: &str) -> Result<u64, InvalidCron> {
    let mut bits = 0;
    for part in text.split(',') {
        for number in range(kind, part)? {
            bits |= 1 << number;
        }
    }
    Ok(bits)
}

fn years(text: &str) -> Result<Vec<i16>, InvalidCron> {
    if is_any(text) {
        return Ok(Vec::new());
    }
    let mut years = Vec::new();
    for part in text.split(',') {
        years.extend(range(&YEAR, part)?.filter_map(|year| i16::try_from(year).ok()));
    }
    years.sort_unstable();
    years.dedup();
    Ok(years)
}

fn is_any(text: &str) -> bool {
    matches!(text, "*" | "?")
}

fn month_days(text: &str) -> Result<Vec<MonthDay>, InvalidCron> {
    let mut days = Vec::new();
    if is_any(text) {
        return Ok(days);
    }
    for part in text.split(',') {
        let upper = part.to_ascii_uppercase();
        match upper.as_str() {
            "L" => days.push(MonthDay::Last),
            "LW" | "WL" => days.push(MonthDay::LastWorkday),
            _ => match upper.strip_suffix('W') {
                Some(day) => days.push(MonthDay::Workday(small(one(&MONTH_DAY, day)?))),
                None => {
                    let numbers = range(&MONTH_DAY, part)?;
                    days.extend(numbers.map(|day| MonthDay::Day(small(day))));
                }
            },
        }
    }
    Ok(days)
}

fn week_days(text: &str) -> Result<Vec<WeekDay>, InvalidCron> {
    let mut days = Vec::new();
    if is_any(text) {
        return Ok(days);
    }
    let sunday = |day: i64| small(day % 7);
    for part in text.split(',') {
        if let Some((day, nth)) = part.split_once('#') {
            let day = sunday(one(&WEEK_DAY, day)?);
            let nth = one(&number("week of the month", 1, 5), nth)?;
            days.push(WeekDay::Nth(day, small(nth)));
        } else if let Some(day) = part.strip_suffix(['L', 'l']).filter(|day| !day.is_empty()) {
            days.push(WeekDay::Last(sunday(one(&WEEK_DAY, day)?)));
        } else {
            let numbers = range(&WEEK_DAY, part)?;
            days.extend(numbers.map(|day| WeekDay::Day(sunday(day))));
        }
    }
    Ok(days)
}

/// Reads one part of a list: `*`, `5`, `1-5`, each perhaps with a step, as in `*/15`.
fn range(kind: &Kind, part: &str) -> Result<impl Iterator<Item = i64> + use<>, InvalidCron> {
    let (bounds, step) = match part.split_once('/') {
        Some((bounds, step)) => (bounds, Some(step)),
        None => (part, None),
    };
    let (from, to) = if is_any(bounds) {
        // 7 is 0 again: a step through all days of the week does not go there.
        let largest = kind.largest - i64::from(kind.name == WEEK_DAY.name);
        (kind.least, largest)
    } else if let Some((from, to)) = bounds.split_once('-') {
        (one(kind, from)?, one(kind, to)?)
    } else {
        let from = one(kind, bounds)?;
        // `5/15`: from 5 on.
        (from, if step.is_some() { kind.largest } else { from })
    };
    if from > to {
        return invalid(format!(
            "{} {part:?} goes backwards: write the smaller number first",
            kind.name
        ));
    }
    let step = match step {
        None => 1,
        Some(step) => match step.parse::<usize>() {
            Ok(step @ 1..=1_000) => step,
            _ => return invalid(format!("{} {part:?} has no valid step", kind.name)),
        },
    };
    Ok((from..=to).step_by(step))
}

/// Reads one number or name.
fn one(kind: &Kind, text: &str) -> Result<i64, InvalidCron> {
    let lower = text.to_ascii_lowercase();
    let word = kind.words.iter().zip(kind.first_word..).find(|(word, _)| {
        // `mon`, and `monday` too.
        lower.starts_with(**word) && lower.bytes().all(|byte| byte.is_ascii_lowercase())
    });
    if let Some((_, number)) = word {
        return Ok(number);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<i64>() {
        Ok(number) if digits && (kind.least..=kind.largest).contains(&number) => Ok(number),
        _ => invalid(format!(
            "{} {text:?} is not between {} and {}",
            kind.name, kind.least, kind.largest
        )),
    }
}

fn small(number: i64) -> i8 {
    i8::try_from(number).expect("every field's largest number fits, but the year's")
}
