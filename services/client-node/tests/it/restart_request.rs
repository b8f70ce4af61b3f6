//! Restarts on request, over the node's own RPC.

use model::ClientStatus;
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use proto::internal::v1::{NodeRestartRequest, NodeRestartResponse};
use test_kit::wait_for;
use tonic::{Code, Status};

use crate::gateway::LIMIT;
use crate::node::{Place, Running, service, start};

async fn restart(
    node: &Running,
    request: NodeRestartRequest,
) -> Result<NodeRestartResponse, Status> {
    let channel = service_kit::connect_lazy(&node.address).unwrap();
    let answer = NodeOperationsClient::new(channel).restart(request).await?;
    Ok(answer.into_inner())
}

#[tokio::test]
async fn a_task_restarts_without_using_up_its_attempts() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("echo begun; exec sleep 600");
    job.task_groups[0].tasks[0].restart.attempts = 0;
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Running).await;
    let secret = cluster.facts().registrations[0].secret.clone();
    let request = |task: &str| NodeRestartRequest {
        alloc_id: id.to_string(),
        task: task.to_owned(),
        all_tasks: false,
        secret: secret.clone(),
    };
    let answer = restart(&node, request("server")).await.unwrap();
    assert_eq!(answer.tasks, ["server"]);
    wait_for("the second run", LIMIT, async || {
        let client = cluster.reported(id);
        let task = client.task_states.get("server")?;
        let names = task.events.iter().map(|event| event.event_type.as_str());
        let is_signaled = names.clone().any(|name| name == "Restart Signaled");
        let runs = names.filter(|name| *name == "Started").count();
        (is_signaled && runs == 2 && client.status == ClientStatus::Running).then_some(())
    })
    .await;

    let unknown = restart(&node, request("db")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
    assert!(
        unknown.message().contains("want one of server"),
        "{unknown}"
    );
    let mut wrong = request("server");
    wrong.secret = "other".to_owned();
    let denied = restart(&node, wrong).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    cluster.collect(id);
    place.is_empty().await;
    let gone = restart(&node, request("")).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound, "{gone}");
    node.stop().await;
}
