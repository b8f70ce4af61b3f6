//! Points in time and durations.

/// Returns a point in time in UTC, as in `2026-11-21T06:44:46Z`; `None` when unset (0).
pub(crate) fn json(unix_ns: u64) -> Option<String> {
    // 64 bits of nanoseconds end in 2554, well within what jiff can hold.
    let time = jiff::Timestamp::from_nanosecond(i128::from(unix_ns));
    (unix_ns != 0).then(|| time.unwrap_or(jiff::Timestamp::MAX).to_string())
}

/// Returns a duration in nanoseconds; an absent one is 0.
pub(crate) fn nanoseconds(duration: Option<&prost_types::Duration>) -> i64 {
    duration.map_or(0, |duration| {
        duration
            .seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::from(duration.nanos))
    })
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn times_are_utc_to_the_nanosecond() {
        const NOON: u64 = 1_795_262_400_000_000_000;
        assert_eq!(json(NOON).as_deref(), Some("2026-11-21T12:00:00Z"));
        assert_eq!(
            json(NOON + 500).as_deref(),
            Some("2026-11-21T12:00:00.0000005Z")
        );
        assert_eq!(json(0), None);
    }
}
