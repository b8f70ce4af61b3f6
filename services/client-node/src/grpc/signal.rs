//! Signals to tasks, requested by a gateway.

use model::AllocId;
use proto::v1;
use task_runner::handle::SignalError;
use tonic::Status;

use super::operations::{Operations, not_here, read_alloc_id};

/// Sends a signal to the tasks of a request.
///
/// # Errors
/// The allocation is not on this node, no task runs, or a driver refuses.
pub(super) async fn signal(
    operations: &Operations,
    request: v1::SignalAllocationRequest,
) -> Result<v1::SignalAllocationResponse, Status> {
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    let handle = operations.agent.handle(alloc_id);
    let handle = handle.ok_or_else(|| not_here(alloc_id))?;
    let task = (!request.task.is_empty()).then_some(request.task);
    match handle.signal(task, request.signal.clone()).await {
        Some(Ok(tasks)) => Ok(v1::SignalAllocationResponse {
            tasks,
            signal: request.signal,
        }),
        Some(Err(refusal)) => Err(status_of(alloc_id, &refusal)),
        None => Err(not_here(alloc_id)),
    }
}

fn status_of(alloc_id: AllocId, refusal: &SignalError) -> Status {
    Status::failed_precondition(format!("allocation {alloc_id}: {refusal}"))
}
