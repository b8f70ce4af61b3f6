//! Times of the captures of a debug archive.

use std::time::Duration;

/// Most captures: each holds some 100 KiB in memory until the archive is written.
const MAX_CAPTURES: u128 = 1_000;

/// Source: Nomad's default.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(30);

/// A capture at the start, and one after each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) count: u32,
    pub(super) interval: Duration,
}

/// Returns the captures at 0, `interval`, 2 · `interval` and so on up to `duration`, both ends included: at
/// least two. `None`: a single capture is wanted. Without an interval, it is the default or the shorter
/// duration.
///
/// # Errors
/// The interval is longer than the duration, or there would be too many captures.
pub(super) fn captures(
    duration: Option<Duration>,
    interval: Option<Duration>,
) -> Result<Option<Schedule>, String> {
    let Some(duration) = duration else {
        return Ok(None);
    };
    let interval = interval.unwrap_or(DEFAULT_INTERVAL.min(duration));
    if interval > duration {
        return Err("-interval is longer than -duration: want several captures in it".to_owned());
    }
    let count = duration.as_nanos() / interval.as_nanos().max(1) + 1;
    if count > MAX_CAPTURES {
        return Err(format!(
            "-duration and -interval would give {count} captures: want {MAX_CAPTURES} at most"
        ));
    }
    let count = u32::try_from(count).ok();
    Ok(count.map(|count| Schedule { count, interval }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_at_the_start_and_after_each_interval() {
        let of = |duration, interval: Option<u64>| {
            let duration = Some(Duration::from_secs(duration));
            let schedule = captures(duration, interval.map(Duration::from_secs))?;
            Ok(schedule.map(|schedule| (schedule.count, schedule.interval.as_secs())))
        };
        for (duration, interval, expected) in [
            (120, Some(30), (5, 30)),
            (30, Some(30), (2, 30)),
            (59, Some(30), (2, 30)),
            (61, Some(30), (3, 30)),
            (61, None, (3, 30)),
            // The capture at the end is there without an interval, too.
            (3, None, (2, 3)),
        ] {
            assert_eq!(of(duration, interval), Ok(Some(expected)), "{duration}");
        }
        assert_eq!(captures(None, None), Ok(None));
        let refused: Result<_, String> = of(10, Some(30));
        assert!(refused.unwrap_err().contains("-interval is longer"));
        assert!(of(1_001, Some(1)).unwrap_err().contains("1000 at most"));
    }
}
