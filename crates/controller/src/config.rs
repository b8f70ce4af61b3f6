//! Timeouts of node liveness.

use std::time::Duration;

use model::node::DEFAULT_HEARTBEAT_TTL;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The interval within which a node sends a heartbeat: the same for every cluster size, as in
    /// docs/decisions/0033-one-heartbeat-ttl-at-every-cluster-size.md.
    pub heartbeat_ttl: Duration,
    /// The largest delay of a heartbeat: it covers the failover of a gateway, or a pause of a node.
    pub heartbeat_grace: Duration,
    /// The additional time of every node when this leader begins, or the first gateway reconnects:
    /// gateways need it to find the leader and to report.
    pub takeover_grace: Duration,
    /// The time in which a transition must show in the store before it is requested again.
    pub write_retry: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let heartbeat_ttl = DEFAULT_HEARTBEAT_TTL;
        Self {
            heartbeat_ttl,
            // Half a TTL: a dead node is detected within 15 s.
            heartbeat_grace: Duration::from_secs(5),
            // One full TTL: within it, every live node has been due once.
            takeover_grace: heartbeat_ttl,
            // Twice the deadline of a store transaction.
            write_retry: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// Returns how long after its last heartbeat a node is marked down.
    pub fn silence_limit(&self) -> Duration {
        self.heartbeat_ttl + self.heartbeat_grace
    }
}

/// The age of the replica from which on no node is declared down: the store sends progress once a
/// second on a quiet watch, and a loaded one is late.
pub(crate) const STORE_SILENCE: Duration = Duration::from_secs(3);

/// Timers that one step fires at most, so that a big wave does not delay heartbeats.
pub(crate) const TIMERS_PER_STEP: usize = 1_000;

/// Silent nodes of a mass failure at least: a single failed node is none, however few nodes there
/// are.
pub(crate) const MASS_FAILURE_MIN: usize = 2;
