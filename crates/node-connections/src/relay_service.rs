//! `kafila.internal.v1.NodeConnections`: connections to the nodes of this gateway, for other gateways.
//!
//! A relayed connection is never relayed again, because [`NodeConnections::open_here`] asks no other gateway.

use connections::Messages;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use gateway_core::{MAX_REQUEST_BYTES, first_request};
use model::NodeId;
use proto::internal::v1::node_connections_server;
use proto::internal::v1::node_connections_server::NodeConnectionsServer;
use proto::internal::v1::{RelayRequest, RelayResponse};
use tonic::{Request, Response, Status, Streaming};
use tracing::{Instrument as _, info_span};

use crate::node_connections::{NoConnection, NodeConnections};
use crate::relay_queue::RelayQueue;

/// Returns the gRPC service for other gateways.
pub fn service(connections: NodeConnections) -> NodeConnectionsServer<NodeConnections> {
    NodeConnectionsServer::new(connections).max_decoding_message_size(MAX_REQUEST_BYTES)
}

#[tonic::async_trait]
impl node_connections_server::NodeConnections for NodeConnections {
    type RelayStream = BoxStream<'static, Result<RelayResponse, Status>>;

    async fn relay(
        &self,
        request: Request<Streaming<RelayRequest>>,
    ) -> Result<Response<Self::RelayStream>, Status> {
        let mut requests = request.into_inner();
        let first = first_request(&mut requests).await?;
        let node_id: NodeId = first.node_id.parse().map_err(|error| {
            let error: model::ids::InvalidId = error;
            proto::status::invalid_field("node_id", error.to_string())
        })?;
        let messages = self.open_here(node_id).await.map_err(refusal)?;
        let (queue, responses) = RelayQueue::new();
        let splicing = splice(messages, requests, queue);
        // Ends with either end of the connection.
        tokio::spawn(splicing.instrument(info_span!("relay", %node_id)));
        let responses = responses.map(|data| Ok(RelayResponse { data }));
        let drain = self.drain().clone();
        Ok(Response::new(
            responses.take_until(drain.cancelled_owned()).boxed(),
        ))
    }
}

fn refusal(failure: NoConnection) -> Status {
    let message = failure.to_string();
    match failure {
        NoConnection::NoStream => {
            Status::not_found("the node awaits no connections at this gateway")
        }
        NoConnection::Timeout => Status::deadline_exceeded(message),
        NoConnection::TooMany => Status::resource_exhausted(message),
    }
}

/// Passes bytes on in both directions until one end is gone.
async fn splice(messages: Messages, mut requests: Streaming<RelayRequest>, queue: RelayQueue) {
    let Messages {
        mut incoming,
        outgoing,
    } = messages;
    let to_node = async {
        while let Ok(Some(request)) = requests.message().await {
            if outgoing.send(request.data).await.is_err() {
                return;
            }
        }
    };
    let from_node = async {
        while let Some(Ok(data)) = incoming.next().await {
            if queue.push(data.into()).is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = to_node => {}
        () = from_node => {}
        () = queue.closed() => {}
    }
}
