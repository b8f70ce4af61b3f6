//! Schedule of the snapshot agent: file names, the time of the next snapshot, and the files to delete.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Names sort by time; files with other names are left alone.
const FORMAT: &str = "kafila-%Y%m%dT%H%M%SZ.db";
/// First and longest delay after a failed snapshot.
const RETRY_FIRST: Duration = Duration::from_secs(10);
const RETRY_LONGEST: Duration = Duration::from_secs(900);

/// Returns the name of a snapshot saved at `time`.
pub(super) fn file_name(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime(FORMAT).to_string()
}

/// Returns the time in a name of [`file_name`].
fn time_of(name: &str) -> Option<Timestamp> {
    let time = jiff::civil::DateTime::strptime(FORMAT, name).ok()?;
    time.to_zoned(TimeZone::UTC)
        .ok()
        .map(|time| time.timestamp())
}

/// Returns the delay until the next snapshot, given the names of the files and the failures since the
/// newest one.
pub(super) fn delay(
    names: &[String],
    now: Timestamp,
    interval: Duration,
    failures: u32,
) -> Duration {
    if failures > 0 {
        let factor = 2_u32.saturating_pow(failures - 1);
        return RETRY_FIRST
            .saturating_mul(factor)
            .min(RETRY_LONGEST)
            .min(interval);
    }
    let newest = names.iter().filter_map(|name| time_of(name)).max();
    // A file of the future, written before the clock was set back, does not delay the next one.
    let Some(newest) = newest.filter(|newest| *newest <= now) else {
        return Duration::ZERO;
    };
    let age = Duration::try_from(now.duration_since(newest)).unwrap_or_default();
    interval.saturating_sub(age)
}

/// Returns the names of the files to delete, so that `retain` stay.
pub(super) fn expired(names: &[String], retain: u32) -> Vec<String> {
    let retain = usize::try_from(retain).unwrap_or(usize::MAX);
    let mut dated: Vec<(Timestamp, &String)> = names
        .iter()
        .filter_map(|name| Some((time_of(name)?, name)))
        .collect();
    dated.sort();
    let over = dated.len().saturating_sub(retain);
    let oldest = dated.into_iter().take(over);
    oldest.map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn names(seconds: &[i64]) -> Vec<String> {
        seconds
            .iter()
            .map(|second| file_name(at(*second)))
            .collect()
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_name_has_the_time_of_its_snapshot() {
        let name = file_name(at(0));
        assert_eq!(name, "kafila-20260921T141320Z.db");
        assert_eq!(time_of(&name), Some(at(0)));
        for other in [
            "kafila.db",
            "kafila-2026.db",
            "kafila-20260921T141320Z.db.part",
        ] {
            assert_eq!(time_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_interval_continues_from_the_newest_file() {
        let delay = |names: &[String]| delay(names, at(1_000), HOUR, 0).as_secs();
        assert_eq!(delay(&[]), 0);
        assert_eq!(delay(&names(&[0, 400])), 3_000);
        assert_eq!(delay(&names(&[-9_000])), 0);
        assert_eq!(delay(&names(&[2_000])), 0, "a file of the future");
    }

    #[test]
    fn failures_delay_ever_longer_but_not_beyond_the_interval() {
        let after = |failures| delay(&[], at(0), HOUR, failures).as_secs();
        assert_eq!([1, 2, 3, 8, 99].map(after), [10, 20, 40, 900, 900]);
        let short = delay(&[], at(0), Duration::from_secs(15), 5);
        assert_eq!(short.as_secs(), 15);
    }

    #[test]
    fn only_the_oldest_files_of_the_agent_expire() {
        let mut all = names(&[30, 10, 20]);
        all.push("kafila.db".to_owned());
        assert_eq!(expired(&all, 2), names(&[10]));
        assert_eq!(expired(&all, 1), names(&[10, 20]));
        assert!(expired(&all, 3).is_empty());
    }
}
