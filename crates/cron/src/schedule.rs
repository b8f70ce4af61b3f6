//! The next time of an expression, across daylight-saving changes of its zone.
//!
//! A time is due when a clock in the zone matches the expression. So a local time that a change of
//! the clock leaves out is not due that day, and one that it repeats is due twice. Source: Nomad's
//! public behaviour.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

use crate::fields::{Expression, FIRST_YEAR, Fields, InvalidCron, LAST_YEAR, parse};

/// Changes of a zone's clock that are looked at: two a year for all years that are known, and
/// again as many.
const MAX_SEGMENTS: usize = 1_000;

/// An unknown time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone: want a name of the IANA database, as in \"Europe/Berlin\", or UTC")]
pub struct InvalidZone;

/// A time zone by its name.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl Zone {
    /// Empty: UTC.
    ///
    /// # Errors
    /// There is no such zone. `Local` is none: replicas of a service may be anywhere.
    pub fn named(name: &str) -> Result<Self, InvalidZone> {
        if name.is_empty() || name == "UTC" {
            return Ok(Self(TimeZone::UTC));
        }
        jiff::tz::db().get(name).map(Self).map_err(|_| InvalidZone)
    }
}

/// Times, by a cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Expression);

impl Schedule {
    /// # Errors
    /// The error in `text`, with its place.
    pub fn parse(text: &str) -> Result<Self, InvalidCron> {
        parse(text).map(Self)
    }

    /// Returns the first time after `after`; `None`: there is no further one.
    ///
    /// Units: Unix seconds, both.
    pub fn next(&self, after: i64, zone: &Zone) -> Option<i64> {
        let first = after.checked_add(1)?;
        match &self.0 {
            Expression::Every(duration) => {
                let duration = i64::try_from(duration.as_secs()).ok()?;
                after
                    .div_euclid(duration)
                    .checked_add(1)?
                    .checked_mul(duration)
            }
            Expression::Fields(fields) => next(fields, first, &zone.0),
        }
    }

    /// Returns the last time that is after `after` and not after `until`; `None`: there is none.
    ///
    /// Units: Unix seconds, all of them. Takes as many looks as the interval has bits.
    pub fn last(&self, after: i64, until: i64, zone: &Zone) -> Option<i64> {
        let in_time = |time: &i64| *time <= until;
        let mut last = self.next(after, zone).filter(in_time)?;
        let mut beyond = until;
        // Everything between `beyond` and `until` is known to be free of times.
        while last < beyond {
            let middle = last + (beyond - last) / 2;
            match self.next(middle, zone).filter(in_time) {
                Some(later) => last = later,
                None => beyond = middle,
            }
        }
        Some(last)
    }
}

/// Returns the first time from `first` on, one stretch of equal offset after the other.
fn next(fields: &Fields, first: i64, zone: &TimeZone) -> Option<i64> {
    let mut from = Timestamp::from_second(first).ok()?;
    for _ in 0..MAX_SEGMENTS {
        let offset = zone.to_offset(from);
        let change = zone.following(from).next().map(|next| next.timestamp());
        let found = next_local(fields, offset.to_datetime(from))?;
        let time = offset.to_timestamp(found).ok()?;
        match change {
            Some(change) if time >= change => from = change,
            _ => return Some(time.as_second()),
        }
    }
    None
}

/// Returns the first local time from `from` on that matches; `None`: there is none any more.
///
/// Units: whole seconds, both.
fn next_local(fields: &Fields, from: DateTime) -> Option<DateTime> {
    let mut date = from.date();
    let mut earliest = from.time();
    if date.year() < FIRST_YEAR {
        date = jiff::civil::date(FIRST_YEAR, 1, 1);
        earliest = Time::midnight();
    }
    while date.year() <= LAST_YEAR {
        if !is_year(fields, date.year()) {
            let later = |year: &&i16| **year > date.year();
            let year = *fields.years.iter().find(later)?;
            date = jiff::civil::date(year, 1, 1);
            earliest = Time::midnight();
            continue;
        }
        if !has(fields.months, date.month()) {
            date = next_month(date)?;
            earliest = Time::midnight();
            continue;
        }
        if fields.days.matches(date)
            && let Some(time) = next_time(fields, earliest)
        {
            return Some(date.to_datetime(time));
        }
        date = date.tomorrow().ok()?;
        earliest = Time::midnight();
    }
    None
}

fn is_year(fields: &Fields, year: i16) -> bool {
    fields.years.is_empty() || fields.years.binary_search(&year).is_ok()
}

fn next_month(date: Date) -> Option<Date> {
    date.last_of_month().tomorrow().ok()
}

/// Returns the first time of day from `from` on that matches.
fn next_time(fields: &Fields, from: Time) -> Option<Time> {
    for hour in from.hour()..24 {
        if !has(fields.hours, hour) {
            continue;
        }
        let least_minute = if hour == from.hour() {
            from.minute()
        } else {
            0
        };
        for minute in least_minute..60 {
            if !has(fields.minutes, minute) {
                continue;
            }
            let is_first = hour == from.hour() && minute == from.minute();
            let least_second = if is_first { from.second() } else { 0 };
            if let Some(second) = (least_second..60).find(|second| has(fields.seconds, *second)) {
                return Time::new(hour, minute, second, 0).ok();
            }
        }
    }
    None
}

fn has(bits: u64, number: i8) -> bool {
    bits & (1 << number) != 0
}

#[cfg(test)]
mod tests;
