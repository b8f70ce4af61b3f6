//! Times of the captures of a debug archive.

use std::time::Duration;

/// Most captures: each holds some 100 KiB in memory until the archive is written.
const MAX_CAPTURES: u128 = 1_000;

/// Returns the number of captures, one at the start of each interval that begins within `duration`;
/// `None`: a single capture is wanted.
///
/// # Errors
/// The interval is longer than the duration, or there would be too many captures.
pub(super) fn captures(
    duration: Option<Duration>,
    interval: Duration,
) -> Result<Option<u32>, String> {
    let Some(duration) = duration else {
        return Ok(None);
    };
    if interval > duration {
        return Err("-interval is longer than -duration: want several captures in it".to_owned());
    }
    let count = duration.as_nanos().div_ceil(interval.as_nanos().max(1));
    if count > MAX_CAPTURES {
        return Err(format!(
            "-duration and -interval would give {count} captures: want {MAX_CAPTURES} at most"
        ));
    }
    Ok(u32::try_from(count).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_begins_each_interval() {
        let of = |duration, interval| {
            let duration = Some(Duration::from_secs(duration));
            captures(duration, Duration::from_secs(interval))
        };
        for (duration, interval, expected) in [(120, 30, 4), (30, 30, 1), (61, 30, 3)] {
            assert_eq!(of(duration, interval), Ok(Some(expected)), "{duration}");
        }
        assert_eq!(captures(None, Duration::from_secs(30)), Ok(None));
        assert!(of(10, 30).unwrap_err().contains("-interval is longer"));
        assert!(of(1_001, 1).unwrap_err().contains("1000 at most"));
    }
}
