//! Pause between tries of one mount.

use std::time::Duration;

/// Source: Nomad's public behaviour: from 1 s to 1 min.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// The time after which a mount or unmount is given up. Source: Nomad's public behaviour.
pub const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Returns the pause after the `failures`-th failure in a row, counted from 1.
pub fn pause(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
    FIRST
        .saturating_mul(doubled.unwrap_or(u32::MAX))
        .min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_minute() {
        let seconds = [1, 2, 3, 6, 7, 40, u32::MAX].map(|failures| pause(failures).as_secs());
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60]);
    }
}
