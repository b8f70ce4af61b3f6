//! Times of renewals.

use std::time::Duration;

use crate::validity::CLOCK_SKEW_SECONDS;

/// Returns the time until a certificate is to be renewed, after two thirds of its validity: a third is
/// left for failures. All in Unix seconds. `None`: it is due.
pub fn time_to_renewal(now: i64, not_before: i64, not_after: i64) -> Option<Duration> {
    let began = not_before.saturating_add(CLOCK_SKEW_SECONDS);
    let validity = not_after.saturating_sub(began).max(0);
    let due = not_after.saturating_sub(validity / 3);
    let left = u64::try_from(due.saturating_sub(now)).unwrap_or(0);
    (left > 0).then(|| Duration::from_secs(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_validity() {
        const START: i64 = 1_000_000;
        for validity in [10, 3_600, 30 * 86_400] {
            let wait = |now| time_to_renewal(now, START - CLOCK_SKEW_SECONDS, START + validity);
            let due = START + validity - validity / 3;
            let seconds = u64::try_from(due - START).unwrap();
            assert_eq!(wait(START), Some(Duration::from_secs(seconds)));
            assert_eq!(wait(due - 1), Some(Duration::from_secs(1)));
            assert_eq!(wait(due), None);
            assert_eq!(wait(START + 2 * validity), None, "expired");
        }
        // Never valid, and bounds of the type.
        assert_eq!(time_to_renewal(START, START, START), None);
        assert_eq!(time_to_renewal(i64::MAX, i64::MIN, i64::MAX), None);
    }
}
