//! Durations: nanoseconds in JSON, `google.protobuf.Duration` in messages.

use prost_types::Duration;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Returns a duration of so many nanoseconds, which may be negative.
pub fn duration(nanoseconds: i64) -> Duration {
    let rest = nanoseconds % NANOS_PER_SECOND;
    Duration {
        seconds: nanoseconds / NANOS_PER_SECOND,
        nanos: i32::try_from(rest).expect("less than a second fits in i32"),
    }
}

/// Returns a duration in nanoseconds, which may be negative.
///
/// # Errors
/// The reason why the message is not a duration, or that it is too long.
pub fn nanoseconds(duration: &Duration) -> Result<i64, String> {
    let (seconds, nanos) = (duration.seconds, i64::from(duration.nanos));
    if nanos.abs() >= NANOS_PER_SECOND || seconds.signum() * nanos.signum() < 0 {
        return Err(format!(
            "{seconds} s and {nanos} ns are not a duration: want less than a second of \
             nanoseconds, of the same sign as the seconds"
        ));
    }
    let whole = seconds.checked_mul(NANOS_PER_SECOND);
    let total = whole.and_then(|whole| whole.checked_add(nanos));
    total.ok_or_else(|| format!("{seconds} s is too long: want at most 292 years"))
}
