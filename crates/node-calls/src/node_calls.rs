//! The state that all calls of nodes share.

use node_connections::NodeConnections;
use service_kit::{CancellationToken, Transport};

use crate::metrics::Metrics;

/// The route to nodes, and the relays that are open. Cheap to clone.
#[derive(Clone, Debug)]
pub struct NodeCalls {
    pub transport: Transport,
    /// The route to nodes that cannot be dialed.
    pub connections: NodeConnections,
    pub metrics: Metrics,
    /// Ends the relays.
    pub drain: CancellationToken,
}
