//! States of an allocation's service checks: the request to its node.

use std::time::Duration;

use admission::jobs::restart_alloc::RestartTarget;
use identity::Role;
use proto::internal::v1::NodeChecksRequest;
use proto::internal::v1::node_files_client::NodeFilesClient;
use proto::v1;
use service_kit::request as with_deadline;
use tonic::{Code, Status};

use crate::node_gateway::NodeGateway;

/// The timeout of the node's answer, which it has in memory; the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the node of an allocation for the states of its checks.
///
/// # Errors
/// The node cannot be reached, does not have the allocation, or is older than checks.
pub async fn checks(
    gateway: &NodeGateway,
    target: &RestartTarget,
) -> Result<Vec<v1::AllocationCheck>, Status> {
    let (node, name) = (&target.node, &target.node.name);
    let transport = &gateway.config.transport;
    let channel = transport.connect_lazy_to(&node.address, Role::Node, &node.id.to_string());
    let channel = channel.map_err(|error| {
        Status::unavailable(format!(
            "node {name} cannot be reached at {}: {error}",
            node.address
        ))
    })?;
    let message = NodeChecksRequest {
        alloc_id: target.alloc_id.to_string(),
        secret: node.secret.clone(),
    };
    let asked = with_deadline(message, NODE_TIMEOUT);
    match NodeFilesClient::new(channel).checks(asked).await {
        Ok(response) => Ok(response.into_inner().checks),
        Err(status) if status.code() == Code::Unimplemented => Err(Status::failed_precondition(
            format!("node {name} runs an older agent that has no service checks: upgrade it"),
        )),
        Err(status) => Err(Status::new(
            status.code(),
            format!("node {name}: {}", status.message()),
        )),
    }
}
