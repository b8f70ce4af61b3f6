//! Connections to nodes that await requests at another gateway, which passes the bytes on.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use connections::{MESSAGES, Messages};
use futures::stream::{self, FuturesUnordered};
use futures::{StreamExt as _, future};
use identity::Role;
use model::NodeId;
use proto::internal::v1::RelayRequest;
use proto::internal::v1::node_connections_client::NodeConnectionsClient;
use service_kit::request as with_deadline;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use tracing::debug;

use crate::node_connections::{NoConnection, NodeConnections};
use crate::pairings::PAIRING_TIMEOUT;

/// Gateways by their name in the list of processes.
const GATEWAYS: &str = "api-gateway";
/// Gateways that are asked for one connection: all of a cluster.
const MAX_GATEWAYS: usize = 32;
/// Timeout of another gateway: it waits for the node, and the connection to it may be new.
const RELAY_TIMEOUT: Duration = Duration::from_secs(PAIRING_TIMEOUT.as_secs() + 2);

impl NodeConnections {
    /// Asks all other gateways at once: at most one has the node's stream, and the others say so at once.
    pub(crate) async fn relay(&self, node_id: NodeId) -> Result<Messages, NoConnection> {
        let result = self.relay_by_any(node_id).await;
        let outcome = result.as_ref().err();
        let outcome = outcome.map_or("opened", |failure| failure.outcome());
        self.metrics().count_relay(outcome);
        result
    }

    async fn relay_by_any(&self, node_id: NodeId) -> Result<Messages, NoConnection> {
        let mut attempts: FuturesUnordered<_> = self
            .others()
            .into_iter()
            .map(|address| async move {
                let relayed = self.relay_by(&address, node_id).await;
                (address, relayed)
            })
            .collect();
        let mut failure = NoConnection::NoStream;
        while let Some((gateway, relayed)) = attempts.next().await {
            let status = match relayed {
                Ok(messages) => return Ok(messages),
                Err(status) => status,
            };
            match status.code() {
                Code::DeadlineExceeded => failure = NoConnection::Timeout,
                Code::ResourceExhausted => failure = NoConnection::TooMany,
                // It has no stream of the node, is of an older version, or is gone.
                _ => {}
            }
            debug!(%node_id, gateway, message = status.message(), "no connection by another gateway");
        }
        Err(failure)
    }

    fn others(&self) -> Vec<String> {
        let snapshot = self.core().replica.snapshot();
        let addresses = snapshot
            .processes()
            .filter(|(process, _)| process.service == GATEWAYS)
            .map(|(process, _)| &process.address);
        let others = addresses.filter(|address| *address != self.address());
        others.take(MAX_GATEWAYS).cloned().collect()
    }

    async fn relay_by(&self, gateway: &str, node_id: NodeId) -> Result<Messages, Status> {
        let channel = self.transport().connect_lazy(gateway, Role::Gateway);
        let channel = channel.map_err(|error| Status::unavailable(error.to_string()))?;
        let (outgoing, receiver) = mpsc::channel(MESSAGES);
        let first = RelayRequest {
            node_id: node_id.to_string(),
            data: Vec::new(),
        };
        let rest = ReceiverStream::new(receiver).map(|data| RelayRequest {
            node_id: String::new(),
            data,
        });
        let requests = stream::once(future::ready(first)).chain(rest);
        let mut client = NodeConnectionsClient::new(channel);
        let relayed = client.relay(with_deadline(requests, RELAY_TIMEOUT)).await?;
        let incoming = relayed.into_inner().map(|response| {
            let data = response.map_err(io::Error::other)?.data;
            Ok(Bytes::from(data))
        });
        let incoming = incoming.boxed();
        Ok(Messages { incoming, outgoing })
    }
}
