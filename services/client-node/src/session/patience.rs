//! How long is waited after a call that failed, and how loud that is said.
//!
//! A gateway that cannot be reached is back sooner or later, so that is waited for by itself. One that
//! says that a request makes no sense says so again until somebody changes something: that is an
//! error, and asking often is no help.

use std::time::Duration;

use rand::Rng;
use service_kit::Backoff;
use tonic::{Code, Status};
use tracing::{error, warn};

/// Waits after a request that makes no sense to servers. Within the longest, a node is taken in again
/// once the servers have been mended; one that was mended itself was started anew.
const REFUSED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The waits of one loop.
#[derive(Debug)]
pub(super) struct Patience {
    failed: Backoff,
    refused: Backoff,
}

impl Patience {
    /// `failed` is for all that may pass by itself.
    pub(super) fn new(failed: Backoff) -> Self {
        Self {
            failed,
            refused: Backoff::new(REFUSED.0, REFUSED.1),
        }
    }

    /// Says what has failed, and returns how long to wait before it is tried again.
    pub(super) fn after(
        &mut self,
        doing: &'static str,
        status: &Status,
        rng: &mut impl Rng,
    ) -> Duration {
        let (code, message) = (status.code(), status.message());
        if code == Code::InvalidArgument {
            error!(
                doing,
                message,
                "the servers refuse what this node says: change the setting that they name, or run a \
                 client-node of their version; trying again once in a while"
            );
            return self.refused.next(rng);
        }
        warn!(doing, ?code, message, "failed, trying again");
        self.refused.reset();
        self.failed.next(rng)
    }

    /// Starts again from the shortest waits, after a success.
    pub(super) fn reset(&mut self) {
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
    fn what_makes_no_sense_is_asked_less_and_less_often_up_to_a_bound() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut patience = Patience::new(Backoff::default());
        let nonsense = Status::invalid_argument("node.name: too long");
        let waits: Vec<Duration> = (0..12)
            .map(|_| patience.after("register", &nonsense, &mut rng))
            .collect();
        assert!(waits[0] >= REFUSED.0 / 2);
        assert!(waits.iter().all(|wait| *wait <= REFUSED.1));
        assert!(waits[11] >= REFUSED.1 / 2, "{waits:?}");
        // What may pass is not waited for that long, then or in between.
        let away = Status::unavailable("no gateway");
        assert!(patience.after("register", &away, &mut rng) < REFUSED.0);
        assert!(patience.after("register", &nonsense, &mut rng) <= REFUSED.0);
        patience.after("register", &nonsense, &mut rng);
        patience.reset();
        assert!(patience.after("register", &nonsense, &mut rng) <= REFUSED.0);
    }
}
