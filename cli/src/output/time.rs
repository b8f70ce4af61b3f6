//! Times: RFC 3339 with a zone, or relative to now.

use jiff::tz::TimeZone;

/// Seconds of each unit, largest first. Months and years are approximate.
const UNITS: [(u64, &str); 6] = [
    (365 * 86_400, "y"),
    (30 * 86_400, "mo"),
    (86_400, "d"),
    (3_600, "h"),
    (60, "m"),
    (1, "s"),
];

const SECOND_NS: u64 = 1_000_000_000;

/// The current time and the time zone of output.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// Unix nanoseconds.
    pub(crate) now_ns: u64,
    pub(crate) zone: TimeZone,
}

impl Times {
    /// Returns a time to the second, for example `2026-11-21T06:44:46Z`; empty when unset (0).
    pub(crate) fn exact(&self, ns: u64) -> String {
        rfc3339(ns, &self.zone)
    }

    /// Returns the distance to a time in its two largest units: `2m3s ago`,
    /// `1h5m from now`; empty when unset (0).
    pub(crate) fn relative(&self, ns: u64) -> String {
        if ns == 0 {
            return String::new();
        }
        let (distance, side) = if ns <= self.now_ns {
            (self.now_ns - ns, "ago")
        } else {
            (ns - self.now_ns, "from now")
        };
        format!("{} {side}", show_duration(distance / SECOND_NS))
    }

    /// Returns the exact time if `verbose`, else the distance.
    pub(crate) fn either(&self, ns: u64, verbose: bool) -> String {
        if verbose {
            self.exact(ns)
        } else {
            self.relative(ns)
        }
    }

    pub(crate) fn now(&self) -> String {
        self.exact(self.now_ns)
    }
}

/// Returns a duration in its two largest units: `1h5m`, `3s`.
pub(crate) fn show_duration(seconds: u64) -> String {
    let largest = UNITS.iter().position(|(length, _)| seconds >= *length);
    let Some(largest) = largest else {
        return "0s".to_owned();
    };
    let (length, unit) = UNITS[largest];
    let mut text = format!("{}{unit}", seconds / length);
    if let Some((smaller, unit)) = UNITS.get(largest + 1)
        && let count @ 1.. = seconds % length / smaller
    {
        text.push_str(&format!("{count}{unit}"));
    }
    text
}

fn rfc3339(ns: u64, zone: &TimeZone) -> String {
    if ns == 0 {
        return String::new();
    }
    let zoned = timestamp(ns).to_zoned(zone.clone());
    let format = if zoned.offset().seconds() == 0 {
        "%Y-%m-%dT%H:%M:%SZ"
    } else {
        "%Y-%m-%dT%H:%M:%S%:z"
    };
    zoned.strftime(format).to_string()
}

/// Returns a time in UTC to the millisecond, as in logs.
pub(crate) fn utc_millis(ns: u64) -> String {
    let zoned = timestamp(ns).to_zoned(TimeZone::UTC);
    zoned.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

fn timestamp(ns: u64) -> jiff::Timestamp {
    // 64 bits of nanoseconds end in 2554, within the range of jiff.
    jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::tz::Offset;

    use super::*;

    const NOON: u64 = 1_795_262_400 * SECOND_NS;

    fn times() -> Times {
        Times {
            now_ns: NOON,
            zone: TimeZone::UTC,
        }
    }

    #[test]
    fn exact_times_carry_their_zone() {
        assert_eq!(times().exact(NOON + 999), "2026-11-21T12:00:00Z");
        let zone = TimeZone::fixed(Offset::from_seconds(-9 * 1_800).unwrap());
        let elsewhere = Times { zone, ..times() };
        assert_eq!(elsewhere.now(), "2026-11-21T07:30:00-04:30");
        assert_eq!(times().exact(0), "");
        assert_eq!(times().exact(u64::MAX), "2554-07-21T23:34:33Z");
    }

    #[test]
    fn relative_times_show_their_two_largest_units() {
        let table = [
            (0, "0s ago"),
            (14, "14s ago"),
            (123, "2m3s ago"),
            (120, "2m ago"),
            (3_600 + 65, "1h1m ago"),
            (26 * 3_600, "1d2h ago"),
            (40 * 86_400, "1mo10d ago"),
            (800 * 86_400, "2y2mo ago"),
        ];
        for (seconds, expected) in table {
            assert_eq!(times().relative(NOON - seconds * SECOND_NS), expected);
        }
        assert_eq!(times().relative(NOON + 3_900 * SECOND_NS), "1h5m from now");
        assert_eq!(times().relative(0), "");
    }
}
