//! Schedule of a node's heartbeats: pauses, timeouts, and the gateway to avoid.

use std::time::Duration;

use rand::{Rng, RngExt as _};

use crate::failover::Failover;

/// Heartbeats per time to live. With two, a heartbeat lost with its gateway leaves time for another
/// gateway; Nomad's one leaves only the servers' grace.
const BEATS_PER_TTL: u32 = 2;
/// Timeouts per time to live: after one, another gateway is tried. Also the longest backoff, which
/// the servers' grace covers.
const TIMEOUTS_PER_TTL: u32 = 4;

/// The schedule of one node's heartbeats since its registration.
#[derive(Debug)]
pub struct Heartbeats {
    ttl: Duration,
    failover: Failover,
}

impl Heartbeats {
    /// `ttl`: the time for which a heartbeat keeps the node alive, as the servers set it.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            failover: Failover::default(),
        }
    }

    /// Returns the pause before the first heartbeat, up to half of the time to live, because the
    /// registration counts as a heartbeat. It is random, to spread nodes that started together.
    pub fn first(&self, rng: &mut impl Rng) -> Duration {
        self.pause().mul_f64(rng.random())
    }

    /// Returns the time within which a gateway has to answer.
    pub fn timeout(&self) -> Duration {
        self.ttl / TIMEOUTS_PER_TTL
    }

    /// Returns the gateway that the next heartbeat avoids while there are others.
    pub fn avoids(&self) -> Option<&str> {
        self.failover.avoids()
    }

    /// Returns whether the servers may have missed the node during `silence`, the time since the last
    /// accepted heartbeat.
    pub fn is_missed(&self, silence: Duration) -> bool {
        silence > self.ttl
    }

    /// Records an accepted heartbeat, whose answer has the time to live `ttl`. Returns the pause before
    /// the next: a jitter of a tenth keeps the heartbeats of a fleet spread.
    pub fn accepted(&mut self, ttl: Duration, rng: &mut impl Rng) -> Duration {
        self.ttl = ttl;
        self.failover.accepted();
        self.pause().mul_f64(rng.random_range(0.9..1.0))
    }

    /// Records that the gateway at `address`, one of `gateways`, did not deliver a heartbeat. Returns
    /// whether the node tries another gateway at once; otherwise all of them have been tried, and the
    /// node backs off first.
    pub fn not_delivered(&mut self, address: &str, gateways: usize) -> bool {
        self.failover.not_delivered(address, gateways)
    }

    /// Returns the time between two heartbeats, without jitter.
    fn pause(&self) -> Duration {
        self.ttl / BEATS_PER_TTL
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    const TTL: Duration = Duration::from_secs(20);

    #[test]
    fn scenario_011_heartbeats_come_twice_per_time_to_live_with_a_jitter_of_a_tenth() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut heartbeats = Heartbeats::new(TTL);
        for _ in 0..1_000 {
            assert!(heartbeats.first(&mut rng) <= TTL / 2);
            let pause = heartbeats.accepted(TTL, &mut rng);
            assert!(pause >= TTL.mul_f64(0.45) && pause <= TTL / 2, "{pause:?}");
        }
        let firsts: Vec<_> = (0..100).map(|_| heartbeats.first(&mut rng)).collect();
        assert!(firsts.iter().any(|pause| *pause < TTL / 8), "spread");
        assert!(firsts.iter().any(|pause| *pause > TTL * 3 / 8), "spread");
    }

    #[test]
    fn the_servers_change_the_pause_the_timeout_and_what_counts_as_missed() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut heartbeats = Heartbeats::new(TTL);
        assert_eq!(heartbeats.timeout(), TTL / 4);
        assert!(!heartbeats.is_missed(TTL) && heartbeats.is_missed(TTL * 2));
        let pause = heartbeats.accepted(TTL * 3, &mut rng);
        assert!(pause >= TTL, "{pause:?}");
        assert_eq!(heartbeats.timeout(), TTL * 3 / 4);
        assert!(!heartbeats.is_missed(TTL * 2));
    }

    #[test]
    fn an_accepted_heartbeat_ends_the_failover() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut heartbeats = Heartbeats::new(TTL);
        assert!(heartbeats.not_delivered("a", 2));
        assert_eq!(heartbeats.avoids(), Some("a"));
        heartbeats.accepted(TTL, &mut rng);
        assert_eq!(heartbeats.avoids(), None);
    }
}
