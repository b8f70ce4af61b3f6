//! States of an allocation's service checks, requested by a gateway.

use proto::internal::v1::{NodeChecksRequest, NodeChecksResponse};
use proto::v1;
use task_runner::CheckView;
use tonic::Status;

use super::operations::{not_here, read_alloc_id};
use crate::allocations::agent::Agent;

/// Returns the checks of an allocation, none once it has ended.
///
/// # Errors
/// The request is invalid, or the allocation is not on this node.
pub(super) async fn checks(
    agent: &Agent,
    request: &NodeChecksRequest,
) -> Result<NodeChecksResponse, Status> {
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    let Some(checks) = agent.checks(alloc_id).await else {
        return Err(not_here(alloc_id));
    };
    Ok(NodeChecksResponse {
        checks: checks.into_iter().map(to_wire).collect(),
    })
}

fn to_wire(check: CheckView) -> v1::AllocationCheck {
    v1::AllocationCheck {
        id: check.id,
        mode: check.mode.to_owned(),
        status: check.status.to_owned(),
        status_code: u32::from(check.code),
        output: check.output,
        time_ns: check.time.0,
        task_group: check.group,
        task: check.task,
        service: check.service,
        check: check.check,
    }
}
