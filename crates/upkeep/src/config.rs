//! How long a node may be silent.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often a node promises to be heard of: what it is told as its TTL. Constant, whatever
    /// the size of the cluster: heartbeats cost no write, so there is no load to spread, and a
    /// dead node is known as soon at 20,000 nodes as at 20.
    pub heartbeat_ttl: Duration,
    /// How late a heartbeat may be: a gateway that died and was replaced, a pause of a collector.
    pub heartbeat_grace: Duration,
    /// What every node gets on top when this leader begins, or hears of gateways again: time to
    /// find it and report.
    pub takeover_grace: Duration,
    /// How long a transition may go unseen in the store before it is asked for again.
    pub write_retry: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let heartbeat_ttl = Duration::from_secs(10);
        Self {
            heartbeat_ttl,
            // Half a TTL: 15 s in all until a dead node is known.
            heartbeat_grace: Duration::from_secs(5),
            // One full TTL: within it, every live node has been due once.
            takeover_grace: heartbeat_ttl,
            // Twice the deadline of a store transaction.
            write_retry: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// Returns how long after its last heartbeat a node counts as gone.
    pub fn silence_limit(&self) -> Duration {
        self.heartbeat_ttl + self.heartbeat_grace
    }
}

/// Timers that one step fires at most, so that a big wave does not keep heartbeats waiting.
pub(crate) const TIMERS_PER_STEP: usize = 1_000;

/// Silent nodes below which nothing is held back: one node that fails is no mass failure, however
/// few there are.
pub(crate) const MASS_FAILURE_MIN: usize = 2;
