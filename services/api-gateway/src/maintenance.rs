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
    let transport = &gateway.node_calls.transport;
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
        with_origin(&leader.address, &error)
    })
}

/// Puts the leader's address before its message; the code and the detail, with its retry time, stay.
fn with_origin(address: &str, error: &Status) -> Status {
    let message = format!("the cluster-controller at {address}: {}", error.message());
    Status::with_metadata(error.code(), message, error.metadata().clone())
}

#[cfg(test)]
mod tests {
    use proto::v1::ErrorDetail;

    use super::*;

    #[test]
    fn a_refusal_of_the_leader_keeps_its_retry_time() {
        let error = status::exhausted("the queue is full", Duration::from_secs(5));
        let passed_on = with_origin("http://10.0.0.7:4650", &error);
        assert_eq!(passed_on.code(), tonic::Code::ResourceExhausted);
        assert_eq!(
            passed_on.message(),
            "the cluster-controller at http://10.0.0.7:4650: the queue is full"
        );
        let detail = ErrorDetail::from_status(&passed_on);
        assert_eq!(detail.map(|detail| detail.retry_after_ms), Some(5_000));
    }
}
