//! Mass failure guard: it delays the consequences when more than half of the nodes stop sending
//! heartbeats at once.
//!
//! The cause is then more likely in the control plane or the network (a gateway, a switch, this
//! process), and replacing half of the allocations on the other half of the nodes would be the worst
//! reaction. So the nodes get one more TTL, and the operator is informed.

use std::time::Duration;

use model::Timestamp;

use crate::config::MASS_FAILURE_MIN;

#[derive(Debug, Default)]
pub(crate) struct MassFailureGuard {
    failure: Option<MassFailure>,
}

#[derive(Debug)]
struct MassFailure {
    until: Timestamp,
    /// The delay is over and silent nodes are marked down. It lasts until the numbers are normal
    /// again, so that one mass failure is delayed once.
    released: bool,
}

/// The verdict on nodes with an expired timer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Proceed,
    /// Begins to delay until then.
    StartHold {
        until: Timestamp,
    },
    /// Continues to delay until then.
    KeepHold {
        until: Timestamp,
    },
}

impl MassFailureGuard {
    /// Decides about nodes with an expired timer, when `late` of `all` nodes have missed a heartbeat.
    /// `all` counts the nodes that were alive before, the late ones included.
    pub(crate) fn rule(
        &mut self,
        now: Timestamp,
        late: usize,
        all: usize,
        ttl: Duration,
    ) -> Verdict {
        let is_mass = late >= MASS_FAILURE_MIN && late * 2 > all;
        if !is_mass {
            self.failure = None;
            return Verdict::Proceed;
        }
        // A mass failure long after the last one is a new one.
        let over = |failure: &MassFailure| now.since(failure.until) > ttl * 2;
        if self.failure.as_ref().is_some_and(over) {
            self.failure = None;
        }
        match &mut self.failure {
            None => {
                let until = now.plus(ttl);
                self.failure = Some(MassFailure {
                    until,
                    released: false,
                });
                Verdict::StartHold { until }
            }
            Some(failure) if !failure.released && now < failure.until => Verdict::KeepHold {
                until: failure.until,
            },
            Some(failure) => {
                failure.released = true;
                Verdict::Proceed
            }
        }
    }
}
