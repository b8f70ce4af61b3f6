//! Times of the captures of a debug archive.

use std::time::Duration;

/// Most captures: each holds some 100 KiB in memory until the archive is written.
const MAX_CAPTURES: u128 = 1_000;

/// Source: Nomad's default.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(30);

/// Captures one interval after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) count: u32,
    pub(super) interval: Duration,
}

/// Returns a capture at the start of each interval that begins within `duration`; `None`: a single capture
/// is wanted. Without an interval, it is the default or the shorter duration.
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
    let count = duration.as_nanos().div_ceil(interval.as_nanos().max(1));
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
    fn a_capture_begins_each_interval() {
        let of = |duration, interval: Option<u64>| {
            let duration = Some(Duration::from_secs(duration));
            let schedule = captures(duration, interval.map(Duration::from_secs))?;
            Ok(schedule.map(|schedule| (schedule.count, schedule.interval.as_secs())))
        };
        for (duration, interval, expected) in [
            (120, Some(30), (4, 30)),
            (30, Some(30), (1, 30)),
            (61, Some(30), (3, 30)),
            (61, None, (3, 30)),
            (10, None, (1, 10)),
        ] {
            assert_eq!(of(duration, interval), Ok(Some(expected)), "{duration}");
        }
        assert_eq!(captures(None, None), Ok(None));
        let refused: Result<_, String> = of(10, Some(30));
        assert!(refused.unwrap_err().contains("-interval is longer"));
        assert!(of(1_001, Some(1)).unwrap_err().contains("1000 at most"));
    }
}
