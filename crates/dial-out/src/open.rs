//! One connection: its opening, and its handover to the node's server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use connections::{MESSAGES, MessageStream, Messages};
use futures::{StreamExt as _, future, stream};
use gateway_calls::gateways::Client;
use identity::Peer;
use local_state::Identity;
use proto::internal::v1::OpenConnectionRequest;
use service_kit::{Opened, request};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tracing::debug;

use crate::metrics::Metrics;

/// Timeout of the gateway's answer, which waits for nothing.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at a time. Each is a call of a user; beyond it, callers get a timeout.
const MAX_OPEN: usize = 128;

/// The node's server, and its limit of connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Opener {
    node: Arc<Identity>,
    server: mpsc::Sender<Opened>,
    peer: Peer,
    slots: Arc<Semaphore>,
    metrics: Metrics,
}

impl Opener {
    pub(crate) fn new(
        node: &Identity,
        server: mpsc::Sender<Opened>,
        peer: Peer,
        metrics: Metrics,
    ) -> Self {
        Self {
            node: Arc::new(node.clone()),
            server,
            peer,
            slots: Arc::new(Semaphore::new(MAX_OPEN)),
            metrics,
        }
    }

    /// Opens a connection at the gateway that has asked for it. A failure is the gateway's to report: its caller
    /// waits for the connection.
    pub(crate) async fn open(self, client: Client, connection_id: String) {
        let outcome = match self.try_open(client, connection_id).await {
            Ok(outcome) => outcome,
            Err(status) => {
                let message = status.message();
                debug!(message, "a gateway's connection cannot be opened");
                "failed"
            }
        };
        self.metrics.count(outcome);
    }

    async fn try_open(
        &self,
        mut client: Client,
        connection_id: String,
    ) -> Result<&'static str, Status> {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            debug!("a gateway's connection is not opened: {MAX_OPEN} are open");
            return Ok("too_many");
        };
        let (outgoing, receiver) = mpsc::channel(MESSAGES);
        let first = OpenConnectionRequest {
            node_id: self.node.node_id.to_string(),
            secret: self.node.secret.clone(),
            connection_id,
            data: Vec::new(),
        };
        let rest = ReceiverStream::new(receiver).map(|data| OpenConnectionRequest {
            data,
            ..OpenConnectionRequest::default()
        });
        let requests = stream::once(future::ready(first)).chain(rest);
        let opened = client.open_connection(request(requests, OPEN_TIMEOUT));
        let responses = opened.await?.into_inner();
        let counted = (slot, self.metrics.open());
        let incoming = responses.map(move |response| {
            let _counted = &counted;
            let data = response.map_err(io::Error::other)?.data;
            Ok(Bytes::from(data))
        });
        let incoming = incoming.boxed();
        let stream = MessageStream::from(Messages { incoming, outgoing });
        let opened = Opened {
            stream: Box::new(stream),
            peer: self.peer.clone(),
        };
        let served = self.server.send(opened).await;
        // The server has ended, and the connection with it.
        Ok(served.map_or("drained", |()| "opened"))
    }
}
