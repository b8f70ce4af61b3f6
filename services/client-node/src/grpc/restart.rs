//! Restarts of tasks in place, requested by a gateway.

use lifecycle::RestartRefusal;
use model::{AllocId, RestartScope};
use proto::internal::v1::NodeRestartRequest;
use tonic::Status;

use super::operations::{not_here, read_alloc_id};
use crate::allocations::agent::Agent;

/// Restarts the tasks of a request, and returns their names.
///
/// # Errors
/// The request is invalid, the allocation is not on this node, or no task can be restarted.
pub(super) async fn restart(
    agent: &Agent,
    request: NodeRestartRequest,
) -> Result<Vec<String>, Status> {
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    let scope = RestartScope::new(&request.task, request.all_tasks);
    let scope = scope.map_err(proto::status::invalid)?;
    match agent.restart(alloc_id, scope).await {
        Some(answer) => answer.map_err(|refusal| status_of(alloc_id, &refusal)),
        None => Err(not_here(alloc_id)),
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
