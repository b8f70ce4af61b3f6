//! A caller's connection: the request to the node, and the wait for it.

use connections::Messages;
use model::NodeId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::node_connections::{NoConnection, NodeConnections};
use crate::pairings::{PAIRING_TIMEOUT, TooMany};

impl NodeConnections {
    /// Returns a connection that the node opens, to this gateway or to another one.
    ///
    /// # Errors
    /// See [`NoConnection`].
    pub async fn open(&self, node_id: NodeId) -> Result<Messages, NoConnection> {
        let failure = match self.open_here(node_id).await {
            Ok(messages) => return Ok(messages),
            Err(failure) => failure,
        };
        // Also after a timeout: the node may have moved, and left its stream here behind.
        match self.relay(node_id).await {
            Err(NoConnection::NoStream) => Err(failure),
            result => result,
        }
    }

    /// Returns a connection that the node opens to this gateway.
    ///
    /// # Errors
    /// The node awaits no requests here, or does not answer.
    pub(crate) async fn open_here(&self, node_id: NodeId) -> Result<Messages, NoConnection> {
        let result = self.ask(node_id).await;
        let outcome = result.as_ref().err().copied();
        if outcome != Some(NoConnection::NoStream) {
            let outcome = outcome.map_or("opened", NoConnection::outcome);
            self.metrics().count_request(outcome);
        }
        result
    }

    async fn ask(&self, node_id: NodeId) -> Result<Messages, NoConnection> {
        if self.is_revoked(node_id) {
            self.end_stream(node_id);
            return Err(NoConnection::NoStream);
        }
        let id = self.core().ids.next_u128();
        let (caller, paired) = oneshot::channel();
        let _waiting = self.request(id, node_id, caller)?;
        match timeout(PAIRING_TIMEOUT, paired).await {
            Ok(Ok(messages)) => Ok(messages),
            // The other callers have dropped it when its time was over.
            Ok(Err(_)) | Err(_) => Err(NoConnection::Timeout),
        }
    }

    fn is_revoked(&self, node_id: NodeId) -> bool {
        let snapshot = self.core().replica.snapshot();
        snapshot.node_revocation(node_id).is_some()
    }

    /// Ends the stream of a node that was revoked after its stream began. A new one is refused.
    fn end_stream(&self, node_id: NodeId) {
        if let Some(node) = self.lock().streams.remove(&node_id) {
            node.replaced.cancel();
        }
    }

    /// Sends the node a request; the caller waits until the guard is dropped.
    fn request(
        &self,
        id: u128,
        node_id: NodeId,
        caller: oneshot::Sender<Messages>,
    ) -> Result<Waiting<'_>, NoConnection> {
        let now = Instant::now().into_std();
        let mut state = self.lock();
        let node = state.streams.get(&node_id);
        let requests = node.ok_or(NoConnection::NoStream)?.requests.clone();
        let opened = state.pairings.open(now, id, node_id, caller);
        opened.map_err(|TooMany| NoConnection::TooMany)?;
        drop(state);
        let waiting = Waiting {
            connections: self,
            id,
        };
        match requests.try_send(id) {
            Ok(()) => Ok(waiting),
            Err(mpsc::error::TrySendError::Full(_)) => Err(NoConnection::TooMany),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(NoConnection::NoStream),
        }
    }
}

/// A caller that waits for its connection.
struct Waiting<'a> {
    connections: &'a NodeConnections,
    id: u128,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connections.lock().pairings.cancel(self.id);
    }
}
