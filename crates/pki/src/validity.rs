//! Serial numbers, and the time for which a certificate is valid.

use time::{Duration, OffsetDateTime};

use crate::error::Error;

/// The longest validity: 100 years. Ours: with four digits for the year, any start is in range.
const MAX_DAYS: u32 = 36_500;
/// The time by which the validity begins in the past, for machines whose clocks are behind.
const CLOCK_SKEW: Duration = Duration::seconds(CLOCK_SKEW_SECONDS);
/// The same, to compute a certificate's time of creation.
pub const CLOCK_SKEW_SECONDS: i64 = 300;

/// A serial number, from a random source: at least 64 random bits keep two certificates of a CA apart
/// (RFC 5280 asks for uniqueness).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serial(pub u128);

impl Serial {
    /// Returns 16 bytes as DER wants them: positive, and without leading zeros.
    pub(crate) fn to_number(self) -> rcgen::SerialNumber {
        let mut bytes = self.0.to_be_bytes();
        bytes[0] = (bytes[0] & 0x7f) | 0x40;
        rcgen::SerialNumber::from_slice(&bytes)
    }
}

/// The time and the randomness of one creation.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// In Unix seconds.
    pub now: i64,
    pub serial: Serial,
}

/// Returns the start and the end of a validity of `valid_for` from now on, which ends at `latest` at the
/// latest; `latest` is in Unix seconds.
pub(crate) fn validity(
    now: i64,
    valid_for: std::time::Duration,
    latest: i64,
) -> (OffsetDateTime, OffsetDateTime) {
    let seconds = i64::try_from(valid_for.as_secs()).unwrap_or(i64::MAX);
    let end = now.saturating_add(seconds).min(latest);
    let at = |seconds| {
        OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    };
    (at(now) - CLOCK_SKEW, at(end))
}

/// Returns the start and the end of `days` days from now on.
pub(crate) fn period(now: i64, days: u32) -> Result<(OffsetDateTime, OffsetDateTime), Error> {
    let out_of_range = || Error::Days {
        days,
        max: MAX_DAYS,
    };
    if !(1..=MAX_DAYS).contains(&days) {
        return Err(out_of_range());
    }
    let now = OffsetDateTime::from_unix_timestamp(now).map_err(|_| out_of_range())?;
    let end = now.checked_add(Duration::days(i64::from(days)));
    let start = now.checked_sub(CLOCK_SKEW).ok_or_else(out_of_range)?;
    Ok((start, end.ok_or_else(out_of_range)?))
}
