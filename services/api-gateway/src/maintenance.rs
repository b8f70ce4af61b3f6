//! Passes on to the cluster-controller's leader what operators ask for.

use std::time::Duration;

use proto::internal::v1::maintenance_client::MaintenanceClient;
use proto::internal::v1::{CollectGarbageRequest, CollectGarbageResponse};
use proto::status;
use service_kit::{connect_lazy, request};
use tonic::Status;

use crate::gateway::Gateway;
use crate::nodes::liveness_loop::CONTROLLER;

/// How long a caller waits that does not say: a sweep of a large cluster takes many transactions.
const PATIENCE: Duration = Duration::from_secs(60);
/// When to ask again while nobody leads: about as long as an election takes.
const NO_LEADER_RETRY: Duration = Duration::from_secs(3);

/// Lets the leader forget everything that is over, and waits until it has.
///
/// # Errors
/// Nobody leads, or the leader's own answer.
pub(crate) async fn collect_garbage(
    gateway: &Gateway,
    timeout: Option<Duration>,
) -> Result<CollectGarbageResponse, Status> {
    let Some(leader) = gateway.replica.leader(CONTROLLER) else {
        let message = "no cluster-controller leads, and it is the one that collects garbage: start \
                       one, or try again in a moment";
        return Err(status::unavailable(message, NO_LEADER_RETRY));
    };
    let channel = connect_lazy(&leader.address)
        .map_err(|error| Status::internal(format!("the cluster-controller: {error}")))?;
    let asked = request(CollectGarbageRequest {}, timeout.unwrap_or(PATIENCE));
    let answer = MaintenanceClient::new(channel).collect_garbage(asked).await;
    answer.map(tonic::Response::into_inner).map_err(|error| {
        if error.code() == tonic::Code::FailedPrecondition {
            // Its successor is not known here yet.
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
