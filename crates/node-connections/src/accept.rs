//! Connections that nodes open: each is paired with the caller that waits for it.

use std::io;

use bytes::Bytes;
use connections::{MESSAGES, Messages};
use futures::{Stream, StreamExt as _};
use gateway_core::Error;
use model::NodeId;
use proto::internal::v1::{OpenConnectionRequest, OpenConnectionResponse};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::node_connections::NodeConnections;
use crate::pairings::id_of_text;

#[derive(Debug, thiserror::Error)]
#[error(
    "no caller of this gateway waits for this connection of the node: it has gone, or another gateway asked for it"
)]
struct NotAwaited;

impl NodeConnections {
    /// Takes a connection of an authenticated node, of which `requests` are the messages after the first.
    ///
    /// # Errors
    /// No caller waits for it.
    pub fn accept(
        &self,
        node_id: NodeId,
        connection_id: &str,
        requests: Streaming<OpenConnectionRequest>,
    ) -> Result<impl Stream<Item = Result<OpenConnectionResponse, Status>> + Send + use<>, Error>
    {
        let not_awaited = || Error::new(Code::NotFound, NotAwaited);
        let now = Instant::now().into_std();
        let id = id_of_text(connection_id).ok_or_else(not_awaited)?;
        let caller = self.lock().pairings.take(now, id, node_id);
        let caller = caller.ok_or_else(not_awaited)?;
        let (outgoing, receiver) = mpsc::channel(MESSAGES);
        let open = self.metrics().open();
        let incoming = requests.map(move |request| {
            let _open = &open;
            let data = request.map_err(io::Error::other)?.data;
            Ok(Bytes::from(data))
        });
        let incoming = incoming.boxed();
        let messages = Messages { incoming, outgoing };
        caller.send(messages).map_err(|_| not_awaited())?;
        Ok(ReceiverStream::new(receiver).map(|data| Ok(OpenConnectionResponse { data })))
    }
}
