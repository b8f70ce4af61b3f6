//! Failover of heartbeats: a refused heartbeat goes to every other gateway at once, then waits.

/// The refusals since the last accepted heartbeat.
#[derive(Debug, Default)]
pub(super) struct Failover {
    /// The gateway of the last heartbeat, if it refused it.
    refused_by: Option<String>,
    /// Refusals since the last pause or the last accepted heartbeat.
    refusals: usize,
}

impl Failover {
    /// Returns the gateway that the next heartbeat avoids while there are others.
    pub(super) fn avoids(&self) -> Option<&str> {
        self.refused_by.as_deref()
    }

    pub(super) fn accepted(&mut self) {
        *self = Self::default();
    }

    /// Records that the gateway at `address`, one of `gateways`, did not accept a heartbeat. Returns
    /// whether the node tries another one at once; otherwise all of them have been tried, and the node
    /// backs off first.
    pub(super) fn refused(&mut self, address: &str, gateways: usize) -> bool {
        self.refused_by = Some(address.to_owned());
        self.refusals += 1;
        let has_others = self.refusals < gateways;
        if !has_others {
            self.refusals = 0;
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
            let at_once = ["a", "b", "c", "a", "b", "c"].map(|at| failover.refused(at, gateways));
            assert_eq!(at_once, expected, "{gateways} gateways");
        }
    }

    #[test]
    fn the_gateway_that_refused_last_is_avoided_until_one_accepts() {
        let mut failover = Failover::default();
        assert_eq!(failover.avoids(), None);
        failover.refused("a", 2);
        assert_eq!(failover.avoids(), Some("a"));
        failover.refused("b", 2);
        assert_eq!(failover.avoids(), Some("b"), "also after a pause");
        failover.accepted();
        assert_eq!(failover.avoids(), None);
        assert!(failover.refused("a", 2), "a new round");
    }
}
