//! Calls of controller plugins of storage systems, each by the agent of a node that runs one.

use std::time::Duration;

use admission::jobs::alloc_node::AllocNode;
use csi::Method;
use prost::Message;
use proto::internal::v1::NodeCsiControlRequest;
use service_kit::request as with_deadline;
use tonic::Status;

use crate::node_call;
use crate::node_calls::NodeCalls;

/// Deadline of a call of a controller plugin. A storage system that takes longer is asked again, and goes on
/// with what it began.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// Calls the controller plugin on a node.
///
/// # Errors
/// The node cannot be reached, or the plugin refuses.
pub async fn call<Q: Message, A: Message + Default>(
    calls: &NodeCalls,
    node: &AllocNode,
    (plugin_id, method): (&str, Method),
    request: &Q,
) -> Result<A, Status> {
    let mut client = node_call::client(calls, node).await?;
    let message = NodeCsiControlRequest {
        plugin_id: plugin_id.to_owned(),
        method: method.name().to_owned(),
        request: request.encode_to_vec(),
        secret: node.secret.clone(),
    };
    let answer = client.csi_control(with_deadline(message, CALL_LIMIT)).await;
    let answer = answer.map_err(|status| node_call::failure(node, &status))?;
    let response = answer.into_inner().response;
    A::decode(response.as_slice()).map_err(|error| {
        let reason = format!("the answer of CSI plugin {plugin_id:?} cannot be read: {error}");
        Status::internal(reason)
    })
}
