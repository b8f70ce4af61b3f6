//! Calls of a node: the connection to it, and what a status of it means.

use std::fmt;

use admission::jobs::alloc_node::AllocNode;
use gateway_core::{Error, is_unanswered};
use identity::Role;
use node_connections::Route;
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use service_kit::TracedChannel;
use service_kit::channel::{channel_inside_rpc, channel_over};
use service_kit::run::chain;
use tonic::{Code, Status};

use crate::node_calls::NodeCalls;

#[derive(Debug, thiserror::Error)]
#[error(
    "node {name} cannot be reached at {address}: {reason}. Check that its agent runs, and that \
     gateways reach this address or the node reaches gateways"
)]
struct Unreachable {
    name: String,
    address: String,
    reason: String,
}

/// The reasons why there is no connection to a node, one for each route that was tried.
#[derive(Debug, Default)]
struct NotConnected {
    dialing: Option<String>,
    awaiting: Option<String>,
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.dialing, &self.awaiting) {
            (Some(dialing), Some(awaiting)) => {
                write!(f, "dialing failed ({dialing}), and {awaiting}")
            }
            (Some(dialing), None) => write!(f, "dialing failed ({dialing})"),
            (None, Some(awaiting)) => write!(f, "it is not dialed (`dial_out`), and {awaiting}"),
            (None, None) => f.write_str("no route was tried"),
        }
    }
}

/// Returns a client of the node, on a new connection. A call is sent once: there is no other connection for it.
///
/// # Errors
/// The node cannot be reached, so that it got no request.
pub(crate) async fn client(
    calls: &NodeCalls,
    node: &AllocNode,
) -> Result<NodeOperationsClient<TracedChannel>, Status> {
    let channel = Box::pin(connect(calls, node)).await;
    let channel = channel.map_err(|failure| unreachable(node, failure.to_string()));
    channel.map(NodeOperationsClient::new)
}

/// Returns a channel to the node, on a new connection.
///
/// # Errors
/// The node cannot be reached: the message names no node.
pub async fn channel(calls: &NodeCalls, node: &AllocNode) -> Result<TracedChannel, String> {
    let channel = Box::pin(connect(calls, node)).await;
    channel.map_err(|failure| failure.to_string())
}

/// Tries the routes to the node until one is open.
async fn connect(calls: &NodeCalls, node: &AllocNode) -> Result<TracedChannel, NotConnected> {
    let connections = &calls.connections;
    let mut failures = NotConnected::default();
    for route in connections.routes(node.id, node.dials_out) {
        match route {
            Route::Dial => match dial(calls, node).await {
                Ok(channel) => {
                    connections.dialing_succeeded(node.id);
                    return Ok(channel);
                }
                Err(reason) => failures.dialing = Some(reason),
            },
            Route::Await => match awaited(calls, node).await {
                Ok(channel) => {
                    if failures.dialing.is_some() {
                        connections.dialing_failed(node.id);
                    }
                    return Ok(channel);
                }
                Err(reason) => failures.awaiting = Some(reason),
            },
        }
    }
    Err(failures)
}

async fn dial(calls: &NodeCalls, node: &AllocNode) -> Result<TracedChannel, String> {
    let name = node.id.to_string();
    let dialing = calls.transport.dial_to(&node.address, Role::Node, &name);
    let stream = dialing.await.map_err(|error| chain(&error))?;
    channel_over(stream).await.map_err(|error| chain(&error))
}

async fn awaited(calls: &NodeCalls, node: &AllocNode) -> Result<TracedChannel, String> {
    let opening = calls.connections.open(node.id);
    let messages = opening.await.map_err(|error| error.to_string())?;
    let channel = channel_inside_rpc(messages.into()).await;
    channel.map_err(|error| chain(&error))
}

/// Converts the status of a node: an unreachable node is `UNAVAILABLE`, and the refusal of a node is
/// passed on with its name.
pub(crate) fn failure(node: &AllocNode, status: &Status) -> Status {
    if is_unanswered(status) {
        unreachable(node, status.message().to_owned())
    } else {
        refusal(node, status)
    }
}

/// Returns the status of a node with the node's name.
pub(crate) fn refusal(node: &AllocNode, status: &Status) -> Status {
    let message = format!("node {}: {}", node.name, status.message());
    Status::new(status.code(), message)
}

/// Returns the refusal of a call that the node's agent does not know; `ability` says what a newer one does.
pub(crate) fn older_agent(node: &AllocNode, ability: &str) -> Status {
    let name = &node.name;
    Status::failed_precondition(format!(
        "node {name} runs an older agent, and only a newer one {ability}: upgrade it"
    ))
}

fn unreachable(node: &AllocNode, reason: String) -> Status {
    let (name, address) = (node.name.clone(), node.address.clone());
    let failure = Unreachable {
        name,
        address,
        reason,
    };
    Error::new(Code::Unavailable, failure).into()
}
