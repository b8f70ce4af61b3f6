//! Times of blocking queries: the longest wait, and the pauses between checks of the result.

use std::time::Duration;

/// The minimum interval between two checks of a blocked read: a table that changes a hundred times a
/// second is checked fifty times. The first change is answered at once.
const MIN_RECHECK: Duration = Duration::from_millis(20);
/// The pause after a check, as a multiple of the time that the check took: a job of many allocations
/// is checked less often, so that each waiting read costs a tenth of a core at most.
const RECHECK_PART: u32 = 9;
/// The jitter of a wait, as a fraction of it, so that reads that began together do not return
/// together. Source: Nomad's public behaviour.
const JITTER_PART: u32 = 16;
/// The part of the caller's timeout that is left for the answer to arrive.
const MARGIN: Duration = Duration::from_millis(500);
/// The wait for a caller without a timeout: a minute, the deadline of calls, less the margin.
const SILENT_CALLER: Duration = Duration::from_secs(59);

/// Returns how long to block: the requested wait with jitter, within the caller's timeout.
///
/// `jitter` is drawn uniformly from 0 to 1.
pub fn wait_limit(wait: Duration, caller_timeout: Option<Duration>, jitter: f64) -> Duration {
    let jitter = (wait / JITTER_PART).mul_f64(jitter);
    let caller = caller_timeout.map_or(SILENT_CALLER, |timeout| timeout.saturating_sub(MARGIN));
    (wait + jitter).min(caller)
}

/// Returns the pause after a check that took `check` and found no change of the result.
pub fn recheck_pause(check: Duration) -> Duration {
    MIN_RECHECK.max(check * RECHECK_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_wait_has_jitter_and_ends_before_its_caller_gives_up() {
        for (wait, caller, jitter, expected) in [
            (16_000, Some(60_000), 0.0, 16_000),
            (16_000, Some(60_000), 0.5, 16_500),
            (16_000, Some(10_000), 0.0, 9_500),
            (16_000, Some(200), 0.0, 0),
            (300_000, None, 0.0, 59_000),
        ] {
            let found = wait_limit(ms(wait), caller.map(ms), jitter);
            assert_eq!(found, ms(expected), "{wait} {caller:?} {jitter}");
        }
    }

    #[test]
    fn a_slow_check_is_made_less_often() {
        assert_eq!(recheck_pause(ms(0)), ms(20));
        assert_eq!(recheck_pause(ms(2)), ms(20));
        assert_eq!(recheck_pause(ms(100)), ms(900));
    }
}
