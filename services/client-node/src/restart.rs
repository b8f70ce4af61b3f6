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
    let scope = scope(request.task, request.all_tasks)?;
    match agent.restart(alloc_id, scope).await {
        Some(answer) => answer.map_err(|refusal| status_of(alloc_id, &refusal)),
        None => Err(Status::not_found(format!(
            "allocation {alloc_id} is not on this node (any more)"
        ))),
    }
}

fn scope(task: String, all_tasks: bool) -> Result<RestartScope, Status> {
    match (task.is_empty(), all_tasks) {
        (false, true) => Err(proto::status::invalid_field(
            "task",
            "excludes all_tasks: name one task, or restart all of them",
        )),
        (false, false) => Ok(RestartScope::Task(task)),
        (true, true) => Ok(RestartScope::All),
        (true, false) => Ok(RestartScope::Running),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_and_all_tasks_exclude_each_other() {
        let one = scope("server".to_owned(), false).unwrap();
        assert_eq!(one, RestartScope::Task("server".to_owned()));
        assert_eq!(scope(String::new(), false).unwrap(), RestartScope::Running);
        assert_eq!(scope(String::new(), true).unwrap(), RestartScope::All);
        let both = scope("server".to_owned(), true).unwrap_err();
        assert!(both.message().contains("excludes all_tasks"), "{both}");
    }
}
