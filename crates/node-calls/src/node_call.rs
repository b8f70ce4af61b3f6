//! Calls of a node: its address, and what a status of it means.

use admission::jobs::alloc_node::AllocNode;
use gateway_core::{Error, is_unanswered};
use identity::Role;
use proto::internal::v1::node_files_client::NodeFilesClient;
use service_kit::{TracedChannel, Transport};
use tonic::{Code, Status};

#[derive(Debug, thiserror::Error)]
#[error(
    "node {name} cannot be reached at {address}: {reason}. Check that its agent runs, and that \
     gateways reach this address"
)]
struct Unreachable {
    name: String,
    address: String,
    reason: String,
}

/// Returns a client of the node; it connects with the first call.
///
/// # Errors
/// The node's address is invalid.
pub(crate) fn client(
    transport: &Transport,
    node: &AllocNode,
) -> Result<NodeFilesClient<TracedChannel>, Status> {
    let channel = transport.connect_lazy_to(&node.address, Role::Node, &node.id.to_string());
    match channel {
        Ok(channel) => Ok(NodeFilesClient::new(channel)),
        Err(error) => Err(unreachable(node, error.to_string())),
    }
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

pub(crate) fn unreachable(node: &AllocNode, reason: String) -> Status {
    let (name, address) = (node.name.clone(), node.address.clone());
    let failure = Unreachable {
        name,
        address,
        reason,
    };
    Error::new(Code::Unavailable, failure).into()
}

/// Returns whether the connection was never established, so that the node got no request.
pub(crate) fn is_connect_error(status: &Status) -> bool {
    let mut next = std::error::Error::source(status);
    while let Some(cause) = next {
        if cause.is::<tonic::ConnectError>() {
            return true;
        }
        next = cause.source();
    }
    false
}
