//! Failover of heartbeats: one that was not delivered goes to every other gateway at once, then waits.

/// The failures since the last accepted heartbeat.
#[derive(Debug, Default)]
pub struct Failover {
    /// The gateway of the last heartbeat, if it did not deliver it.
    failed_at: Option<String>,
    /// Failures since the last pause or the last accepted heartbeat.
    failures: usize,
}

impl Failover {
    /// Returns the gateway that the next heartbeat avoids while there are others.
    pub fn avoids(&self) -> Option<&str> {
        self.failed_at.as_deref()
    }

    /// Records an accepted heartbeat.
    pub fn accepted(&mut self) {
        *self = Self::default();
    }

    /// Records that the gateway at `address`, one of `gateways`, did not deliver a heartbeat. Returns
    /// whether the node tries another one at once; otherwise all of them have been tried, and the node
    /// backs off first.
    pub fn not_delivered(&mut self, address: &str, gateways: usize) -> bool {
        self.failed_at = Some(address.to_owned());
        self.failures += 1;
        let has_others = self.failures < gateways;
        if !has_others {
            self.failures = 0;
        }
        has_others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gateway_is_tried_once_before_each_pause() {
        for (gateways, expected) in [
            (1, [false, false, false, false, false, false]),
            (2, [true, false, true, false, true, false]),
            (3, [true, true, false, true, true, false]),
        ] {
            let mut failover = Failover::default();
            let at_once =
                ["a", "b", "c", "a", "b", "c"].map(|at| failover.not_delivered(at, gateways));
            assert_eq!(at_once, expected, "{gateways} gateways");
        }
    }

    #[test]
    fn the_gateway_that_failed_last_is_avoided_until_one_accepts() {
        let mut failover = Failover::default();
        assert_eq!(failover.avoids(), None);
        failover.not_delivered("a", 2);
        assert_eq!(failover.avoids(), Some("a"));
        failover.not_delivered("b", 2);
        assert_eq!(failover.avoids(), Some("b"), "also after a pause");
        failover.accepted();
        assert_eq!(failover.avoids(), None);
        assert!(failover.not_delivered("a", 2), "a new round");
    }
}
