//! States of an allocation's service checks: the request to its node.

use std::time::Duration;

use admission::jobs::restart_alloc::RestartTarget;
use proto::internal::v1::NodeChecksRequest;
use proto::v1;
use service_kit::request as with_deadline;
use tonic::{Code, Status};

use crate::node_call;
use crate::node_calls::NodeCalls;

/// The timeout of the node's answer, which it has in memory; the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the node of an allocation for the states of its checks.
///
/// # Errors
/// The node cannot be reached, does not have the allocation, or is older than checks.
pub async fn checks(
    calls: &NodeCalls,
    target: &RestartTarget,
) -> Result<Vec<v1::AllocationCheck>, Status> {
    let node = &target.node;
    let mut client = node_call::client(calls, node).await?;
    let message = NodeChecksRequest {
        alloc_id: target.alloc_id.to_string(),
        secret: node.secret.clone(),
    };
    let asked = with_deadline(message, NODE_TIMEOUT);
    match client.checks(asked).await {
        Ok(response) => Ok(response.into_inner().checks),
        Err(status) if status.code() == Code::Unimplemented => {
            Err(node_call::older_agent(node, "has service checks"))
        }
        Err(status) => Err(node_call::failure(node, &status)),
    }
}
