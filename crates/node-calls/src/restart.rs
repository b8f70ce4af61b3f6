//! Restart of tasks in place: the request to the node of the allocation.
//!
//! An answer that does not come leaves the outcome open, so it has a code of its own: a caller that
//! retried would restart the tasks twice.

use std::time::Duration;

use admission::jobs::restart_alloc::RestartTarget;
use gateway_core::is_unanswered;
use proto::internal::v1::NodeRestartRequest;
use service_kit::request as with_deadline;
use tonic::{Code, Status};

use crate::node_call;
use crate::node_calls::NodeCalls;

/// The timeout of the node's answer: it stores the restart, and the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the node to restart the tasks; returns their names once the node has stored the restart.
///
/// # Errors
/// The node cannot be reached, refuses, or does not answer, which leaves the outcome open.
pub async fn restart(calls: &NodeCalls, target: &RestartTarget) -> Result<Vec<String>, Status> {
    let node = &target.node;
    let mut client = node_call::client(calls, node).await.map_err(|status| {
        let message = format!("{}; nothing was restarted", status.message());
        Status::with_details(status.code(), message, status.details().to_vec().into())
    })?;
    let (task, all_tasks) = target.scope.to_request();
    let message = NodeRestartRequest {
        alloc_id: target.alloc_id.to_string(),
        task: task.to_owned(),
        all_tasks,
        secret: target.node.secret.clone(),
    };
    let asked = with_deadline(message, NODE_TIMEOUT);
    let status = match client.restart(asked).await {
        Ok(response) => return Ok(response.into_inner().tasks),
        Err(status) => status,
    };
    let name = &node.name;
    Err(match status.code() {
        _ if is_unanswered(&status) => Status::unknown(format!(
            "node {name} did not answer ({}): the tasks of allocation {} may have been restarted; \
                 their events tell",
            status.message(),
            target.alloc_id
        )),
        Code::Unimplemented => node_call::older_agent(node, "restarts tasks on request"),
        Code::InvalidArgument => status,
        _ => node_call::refusal(node, &status),
    })
}
