//! Order of the routes to a node: its address, or a connection that it opens.
//!
//! Pure: times are arguments. A gateway dials first, unless the node says that it must not be dialed. A node that
//! was not reached by its address, and was by its own connection, is not dialed first for a while: each attempt may
//! cost the timeout of a connection.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use model::NodeId;

/// The time for which a gateway remembers that dialing a node failed.
const MEMORY: Duration = Duration::from_secs(60);
/// Remembered nodes: a cluster's. Beyond it, all are forgotten, which costs one attempt each.
const MAX_REMEMBERED: usize = 20_000;

/// A route to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The gateway connects to the address in the node's record.
    Dial,
    /// The node opens a connection, to this gateway or to another one that passes it on.
    Await,
}

/// The nodes that were not reached by their addresses, with the time at which that is forgotten.
#[derive(Debug, Default)]
pub struct Dialing {
    undialable: HashMap<NodeId, Instant>,
}

impl Dialing {
    /// Returns the routes to try, in this order. `dials_out`: the node says that it must not be dialed.
    pub fn routes(&self, now: Instant, node_id: NodeId, dials_out: bool) -> &'static [Route] {
        if dials_out {
            return &[Route::Await];
        }
        match self.undialable.get(&node_id) {
            Some(forgotten_at) if now < *forgotten_at => &[Route::Await, Route::Dial],
            _ => &[Route::Dial, Route::Await],
        }
    }

    /// Records that dialing failed and the node's own connection did not.
    pub fn failed(&mut self, now: Instant, node_id: NodeId) {
        if self.undialable.len() >= MAX_REMEMBERED {
            self.undialable.clear();
        }
        self.undialable.insert(node_id, now + MEMORY);
    }

    /// Records that dialing succeeded.
    pub fn succeeded(&mut self, node_id: NodeId) {
        self.undialable.remove(&node_id);
    }
}

#[cfg(test)]
mod tests {
    use super::Route::{Await, Dial};
    use super::*;

    #[test]
    fn a_gateway_dials_first_unless_it_may_not_or_failed_a_moment_ago() {
        let start = tokio::time::Instant::now().into_std();
        let (node, other) = (NodeId::from_random(1), NodeId::from_random(2));
        let mut dialing = Dialing::default();
        assert_eq!(dialing.routes(start, node, false), [Dial, Await]);
        dialing.failed(start, node);
        let last = start + MEMORY - Duration::from_millis(1);
        for (now, node, dials_out, expected) in [
            (start, node, false, &[Await, Dial][..]),
            (last, node, false, &[Await, Dial]),
            (start + MEMORY, node, false, &[Dial, Await]),
            (start, other, false, &[Dial, Await]),
            (start, node, true, &[Await]),
            (start, other, true, &[Await]),
        ] {
            assert_eq!(dialing.routes(now, node, dials_out), expected, "{node}");
        }
        dialing.succeeded(node);
        assert_eq!(dialing.routes(start, node, false), [Dial, Await]);
    }

    #[test]
    fn remembered_nodes_are_bounded() {
        let start = tokio::time::Instant::now().into_std();
        let mut dialing = Dialing::default();
        for number in 0..=MAX_REMEMBERED as u128 {
            dialing.failed(start, NodeId::from_random(number));
        }
        assert_eq!(dialing.undialable.len(), 1);
    }
}
