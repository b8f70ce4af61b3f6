//! Stream of one node that awaits requests for connections.

use futures::Stream;
use futures::stream::unfold;
use gateway_core::{Error, GaugeGuard};
use model::NodeId;
use proto::internal::v1::AwaitConnectionsResponse;
use service_kit::CancellationToken;
use tokio::sync::mpsc;
use tonic::{Code, Status};
use tracing::debug;

use crate::node_connections::{AwaitingNode, NodeConnections};
use crate::pairings::{MAX_PENDING_OF_NODE, id_to_text};

#[derive(Debug, thiserror::Error)]
#[error("a newer stream of this node has replaced this one, or the node is revoked")]
struct Replaced;

impl NodeConnections {
    /// Opens the stream of an authenticated node, which replaces the node's previous one.
    pub fn await_connections(
        &self,
        node_id: NodeId,
    ) -> impl Stream<Item = Result<AwaitConnectionsResponse, Status>> + Send + use<> {
        let (requests, receiver) = mpsc::channel(MAX_PENDING_OF_NODE);
        let replaced = CancellationToken::new();
        let node = AwaitingNode {
            requests,
            replaced: replaced.clone(),
        };
        if let Some(old) = self.lock().streams.insert(node_id, node) {
            old.replaced.cancel();
        }
        debug!(%node_id, "node awaits connections");
        let awaiting = Awaiting {
            connections: self.clone(),
            node_id,
            requests: receiver,
            replaced,
            _open: GaugeGuard::new(&self.metrics().awaiting),
        };
        unfold(Some(awaiting), next_request)
    }
}

/// The node's end of the stream.
struct Awaiting {
    connections: NodeConnections,
    node_id: NodeId,
    requests: mpsc::Receiver<u128>,
    replaced: CancellationToken,
    _open: GaugeGuard,
}

async fn next_request(
    awaiting: Option<Awaiting>,
) -> Option<(Result<AwaitConnectionsResponse, Status>, Option<Awaiting>)> {
    let mut awaiting = awaiting?;
    let ended = tokio::select! {
        biased;
        () = awaiting.replaced.cancelled() => Error::new(Code::Aborted, Replaced),
        () = awaiting.connections.drain().cancelled() => Error::draining(),
        // The sender is in the table as long as no newer stream has replaced it.
        Some(id) = awaiting.requests.recv() => {
            let connection_id = id_to_text(id);
            return Some((Ok(AwaitConnectionsResponse { connection_id }), Some(awaiting)));
        }
    };
    Some((Err(ended.into()), None))
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        let mut state = self.connections.lock();
        // Not when a newer stream has replaced it.
        if !self.replaced.is_cancelled() {
            state.streams.remove(&self.node_id);
        }
    }
}
