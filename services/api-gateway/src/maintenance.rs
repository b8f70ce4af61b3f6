//! Requests that the cluster-controller's leader executes.

use std::time::Duration;

use identity::Role;
use node_gateway::liveness_loop::CONTROLLER;
use proto::internal::v1::maintenance_client::MaintenanceClient;
use proto::internal::v1::{CollectGarbageRequest, CollectGarbageResponse};
use proto::status;
use service_kit::request;
use tonic::Status;

use crate::gateway::Gateway;

/// The default timeout: a sweep of a large cluster takes many transactions.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// The retry delay while there is no leader: about one election.
const NO_LEADER_RETRY: Duration = Duration::from_secs(3);

/// Asks the leader to collect garbage, and waits for the result.
///
/// # Errors
/// There is no leader, or its own error.
pub(crate) async fn collect_garbage(
    gateway: &Gateway,
    timeout: Option<Duration>,
) -> Result<CollectGarbageResponse, Status> {
    let Some(leader) = gateway.core.replica.leader(CONTROLLER) else {
        let message = "no cluster-controller leads, and its leader collects garbage: start one, or \
                       try again in a moment";
        return Err(status::unavailable(message, NO_LEADER_RETRY));
    };
    let transport = &gateway.node.config.transport;
    let channel = transport
        .connect_lazy(&leader.address, Role::Controller)
        .map_err(|error| Status::internal(format!("the cluster-controller: {error}")))?;
    let asked = request(CollectGarbageRequest {}, timeout.unwrap_or(DEFAULT_TIMEOUT));
    let answer = MaintenanceClient::new(channel).collect_garbage(asked).await;
    answer.map(tonic::Response::into_inner).map_err(|error| {
        if error.code() == tonic::Code::FailedPrecondition {
            // The replica does not know its successor yet.
            let message = "the cluster-controller is being replaced by another: try again";
            return status::unavailable(message, NO_LEADER_RETRY);
        }
        Status::new(
            error.code(),
            format!(
                "the cluster-controller at {}: {}",
                leader.address,
                error.message()
            ),
        )
    })
}
