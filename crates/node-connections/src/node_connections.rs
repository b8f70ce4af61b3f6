//! The nodes that await connections at this gateway, and the callers that wait for one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use connections::Messages;
use gateway_core::Core;
use model::NodeId;
use service_kit::{CancellationToken, Transport};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::dialing::{Dialing, Route};
use crate::metrics::Metrics;
use crate::pairings::{PAIRING_TIMEOUT, Pairings};

/// The reason why a node has opened no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoConnection {
    #[error("the node has no stream at any gateway")]
    NoStream,
    #[error("the node has not opened a connection within {} s", PAIRING_TIMEOUT.as_secs())]
    Timeout,
    #[error("too many callers wait for connections of nodes")]
    TooMany,
}

impl NoConnection {
    /// Returns the label of metrics.
    pub(crate) fn outcome(self) -> &'static str {
        match self {
            Self::NoStream => "no_stream",
            Self::Timeout => "timeout",
            Self::TooMany => "too_many",
        }
    }
}

/// The route from a gateway to nodes that it cannot dial. Cheap to clone.
#[derive(Clone)]
pub struct NodeConnections {
    shared: Arc<Shared>,
}

struct Shared {
    core: Arc<Core>,
    /// The gateway's own address in the list of processes.
    address: String,
    transport: Transport,
    metrics: Metrics,
    drain: CancellationToken,
    state: Mutex<State>,
    dialing: Mutex<Dialing>,
}

#[derive(Default)]
pub(crate) struct State {
    /// The newest stream of each node.
    pub(crate) streams: HashMap<NodeId, AwaitingNode>,
    pub(crate) pairings: Pairings<oneshot::Sender<Messages>>,
}

/// The gateway's end of a node's stream.
pub(crate) struct AwaitingNode {
    /// Ids of the connections to open.
    pub(crate) requests: mpsc::Sender<u128>,
    /// Cancelled when a newer stream of the node replaces this one, or the node is revoked.
    pub(crate) replaced: CancellationToken,
}

impl fmt::Debug for NodeConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeConnections of {}", self.shared.address)
    }
}

impl NodeConnections {
    /// `address`: the gateway's own, as registered. Connections that are passed on end with `drain`.
    pub fn new(
        core: Arc<Core>,
        address: String,
        transport: Transport,
        metrics: Metrics,
        drain: CancellationToken,
    ) -> Self {
        let shared = Shared {
            core,
            address,
            transport,
            metrics,
            drain,
            state: Mutex::default(),
            dialing: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the routes to a node, in the order in which they are tried.
    pub fn routes(&self, node_id: NodeId, dials_out: bool) -> &'static [Route] {
        lock(&self.shared.dialing).routes(Instant::now().into_std(), node_id, dials_out)
    }

    /// Records that a node was not reached by its address, and was by its own connection.
    pub fn dialing_failed(&self, node_id: NodeId) {
        lock(&self.shared.dialing).failed(Instant::now().into_std(), node_id);
    }

    /// Records that a node was reached by its address.
    pub fn dialing_succeeded(&self, node_id: NodeId) {
        lock(&self.shared.dialing).succeeded(node_id);
    }

    pub(crate) fn core(&self) -> &Core {
        &self.shared.core
    }

    pub(crate) fn address(&self) -> &str {
        &self.shared.address
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.shared.transport
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    pub(crate) fn drain(&self) -> &CancellationToken {
        &self.shared.drain
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing half done: each critical section is one step of a collection.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
