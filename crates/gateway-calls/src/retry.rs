//! Retry backoff and log level for failed gateway calls.
//!
//! A gateway that cannot be reached comes back, so that is a warning with short retries. An invalid
//! request stays invalid until an operator changes a setting or a version, so that is an error with
//! long pauses.

use std::time::Duration;

use rand::Rng;
use service_kit::Backoff;
use tonic::Status;
use tracing::{error, warn};

use crate::failure::cause;

/// Shortest and longest pause after an invalid request. The longest bounds the time until a node is
/// accepted after the servers were corrected; a corrected node is restarted.
const REFUSED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Retry state of one loop.
#[derive(Debug)]
pub struct Retry {
    failed: Backoff,
    refused: Backoff,
}

impl Retry {
    /// `failed`: the backoff after temporary failures.
    pub fn new(failed: Backoff) -> Self {
        Self {
            failed,
            refused: Backoff::new(REFUSED.0, REFUSED.1),
        }
    }

    /// Logs the failure, and returns the pause before the retry.
    pub fn after(&mut self, doing: &'static str, status: &Status, rng: &mut impl Rng) -> Duration {
        let (code, message) = (status.code(), status.message());
        if cause(status).is_invalid() {
            error!(
                doing,
                message,
                "the servers refuse this node's request as invalid: change the setting that the message \
                 names, or run a client-node of the servers' version; retrying at long intervals"
            );
            return self.refused.next(rng);
        }
        warn!(doing, ?code, message, "gateway call failed; retrying");
        self.refused.reset();
        self.failed.next(rng)
    }

    /// Resets the pauses after a success.
    pub fn reset(&mut self) {
        self.failed.reset();
        self.refused.reset();
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn an_invalid_request_is_retried_with_growing_bounded_pauses() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut retry = Retry::new(Backoff::default());
        let invalid = Status::invalid_argument("node.name: too long");
        let waits: Vec<Duration> = (0..12)
            .map(|_| retry.after("register", &invalid, &mut rng))
            .collect();
        assert!(waits[0] >= REFUSED.0 / 2);
        assert!(waits.iter().all(|wait| *wait <= REFUSED.1));
        assert!(waits[11] >= REFUSED.1 / 2, "{waits:?}");
        // A temporary failure in between has the short pause and resets the long one.
        let away = Status::unavailable("no gateway");
        assert!(retry.after("register", &away, &mut rng) < REFUSED.0);
        assert!(retry.after("register", &invalid, &mut rng) <= REFUSED.0);
        retry.after("register", &invalid, &mut rng);
        retry.reset();
        assert!(retry.after("register", &invalid, &mut rng) <= REFUSED.0);
    }
}
