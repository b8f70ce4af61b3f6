//! Heartbeats that a gateway accepts or refuses.

use std::time::Duration;

use crate::nodes::heartbeats::{HeartbeatRefusal, Relay, check};
use model::refusal::{Kind, Refusal as _};

const TTL: Duration = Duration::from_secs(10);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_heartbeat_is_accepted_while_the_relay_is_confirmed_and_the_replica_is_fresh() {
    use HeartbeatRefusal::{Stale, Unconfirmed};
    // (TTL, unconfirmed for, replica's age, refusal)
    let short = seconds(2.0);
    for (ttl, unconfirmed, age, refusal) in [
        (TTL, 0.0, Some(0.0), None),
        (TTL, 5.0, Some(5.0), None),
        (TTL, 5.1, Some(0.0), Some(Unconfirmed(seconds(5.1)))),
        (TTL, 600.0, None, Some(Unconfirmed(seconds(600.0)))),
        (TTL, 0.0, Some(5.1), Some(Stale(seconds(5.1)))),
        // A replica that has not listed the store yet answers no session.
        (TTL, 0.0, None, None),
        (TTL, 6.0, Some(7.0), Some(Unconfirmed(seconds(6.0)))),
        (short, 1.1, Some(0.0), Some(Unconfirmed(seconds(1.1)))),
        // Progress of the store comes once a second, however short the TTL is.
        (short, 0.2, Some(2.9), None),
        (short, 0.2, Some(3.1), Some(Stale(seconds(3.1)))),
    ] {
        let relay = Relay {
            unconfirmed_for: seconds(unconfirmed),
            replica_age: age.map(seconds),
        };
        assert_eq!(check(ttl, relay).err(), refusal, "{ttl:?} {relay:?}");
    }
}

#[test]
fn a_refusal_sends_the_node_to_another_gateway() {
    for refusal in [
        HeartbeatRefusal::Unconfirmed(seconds(7.25)),
        HeartbeatRefusal::Stale(seconds(7.25)),
    ] {
        assert_eq!(refusal.kind(), Kind::Unavailable);
        let text = refusal.to_string();
        assert!(text.contains("7.2s: send heartbeats to another"), "{text}");
    }
}
