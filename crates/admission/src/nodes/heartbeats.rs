//! Delivery of heartbeats: a gateway accepts one only while its relay to the cluster-controller works.
//!
//! A heartbeat counts when the cluster-controller's leader has it. A gateway that is cut off from the
//! leader, or that follows an outdated leader because its own replica is stale, refuses heartbeats, so
//! that nodes use another gateway while there is time.

use std::time::Duration;

use model::refusal::{Kind, Refusal};

/// The share of a TTL for which a relay may lack an acknowledgement. A node sends two heartbeats per
/// TTL, so it learns of a broken relay within one TTL and has the controller's grace for the failover.
const UNCONFIRMED_PER_TTL: u32 = 2;
/// The lowest limit on the age of a replica: the store sends progress once a second on a quiet watch,
/// and a loaded one is late.
const STALE_MIN: Duration = Duration::from_secs(3);

/// The state of a gateway's way to the cluster-controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// The time since the gateway sent the newest message that the leader has acknowledged, or since
    /// the gateway started.
    pub unconfirmed_for: Duration,
    /// The time since the replica's last message from the store; `None`: there was none.
    pub replica_age: Option<Duration>,
}

/// The reason why a gateway refuses heartbeats. Another gateway may accept them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeartbeatRefusal {
    #[error(
        "the cluster-controller's leader has confirmed no heartbeats of this gateway for {0:.1?}: \
         send heartbeats to another gateway"
    )]
    Unconfirmed(Duration),
    #[error(
        "this gateway has had no message from the store for {0:.1?}: send heartbeats to another gateway"
    )]
    Stale(Duration),
}

impl Refusal for HeartbeatRefusal {
    fn kind(&self) -> Kind {
        Kind::Unavailable
    }
}

/// Decides whether a heartbeat that arrives now counts.
///
/// # Errors
/// The relay is not confirmed, or the replica is stale.
pub fn check(ttl: Duration, relay: Relay) -> Result<(), HeartbeatRefusal> {
    let limit = ttl / UNCONFIRMED_PER_TTL;
    if relay.unconfirmed_for > limit {
        return Err(HeartbeatRefusal::Unconfirmed(relay.unconfirmed_for));
    }
    match relay.replica_age {
        Some(age) if age > limit.max(STALE_MIN) => Err(HeartbeatRefusal::Stale(age)),
        _ => Ok(()),
    }
}
