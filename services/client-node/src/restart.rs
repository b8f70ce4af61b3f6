//! Restarts of tasks in place, requested by a gateway.

use lifecycle::{RestartRefusal, RestartScope};
use model::AllocId;
use proto::internal::v1::NodeRestartRequest;
use tonic::Status;

use crate::allocations::agent::Agent;

/// Restarts the tasks of a request, and returns their names.
///
/// # Errors
/// The request is invalid, the allocation is not on this node, or no task can be restarted.
pub(crate) async fn restart(
    agent: &Agent,
    request: NodeRestartRequest,
) -> Result<Vec<String>, Status> {
    let alloc_id: AllocId = request
        .alloc_id
        .parse()
        .map_err(|error: model::ids::InvalidId| {
            proto::status::invalid_field("alloc_id", error.to_string())
        })?;
    let scope = RestartScope::new(&request.task, request.all_tasks);
    let scope = scope.map_err(proto::status::invalid)?;
    match agent.restart(alloc_id, scope).await {
        Some(answer) => answer.map_err(|refusal| status_of(alloc_id, &refusal)),
        None => Err(Status::not_found(format!(
            "allocation {alloc_id} is not on this node (any more)"
        ))),
    }
}

fn status_of(alloc_id: AllocId, refusal: &RestartRefusal) -> Status {
    match refusal {
        RestartRefusal::UnknownTask { .. } => {
            proto::status::invalid_field("task", refusal.to_string())
        }
        RestartRefusal::Ending
        | RestartRefusal::NotRunning { .. }
        | RestartRefusal::NothingRuns => {
            Status::failed_precondition(format!("allocation {alloc_id}: {refusal}"))
        }
    }
}
