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
    episode: Option<Episode>,
}

#[derive(Debug)]
struct Episode {
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
            self.episode = None;
            return Verdict::Proceed;
        }
        // A mass failure long after the last one is a new one.
        let over = |episode: &Episode| now.since(episode.until) > ttl * 2;
        if self.episode.as_ref().is_some_and(over) {
            self.episode = None;
        }
        match &mut self.episode {
            None => {
                let until = now.plus(ttl);
                self.episode = Some(Episode {
                    until,
                    released: false,
                });
                Verdict::StartHold { until }
            }
            Some(episode) if !episode.released && now < episode.until => Verdict::KeepHold {
                until: episode.until,
            },
            Some(episode) => {
                episode.released = true;
                Verdict::Proceed
            }
        }
    }
}
