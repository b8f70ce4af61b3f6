//! Requests of the workload, and the interpretation of their answers.

use std::time::Duration;

use model::{DeploymentId, Job};
use proto::v1;
use proto::v1::deployments_client::DeploymentsClient;
use proto::v1::jobs_client::JobsClient;
use proto::v1::nodes_client::NodesClient;
use proto::v1::operator_client::OperatorClient;
use service_kit::{TracedChannel, request};
use tonic::{Code, Status};

use super::ledger::{Effect, Outcome};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(4);

/// A change of a job.
#[derive(Clone)]
pub(super) enum Change {
    Register(Box<Job>),
    Scale(u32),
    Stop { purge: bool },
}

impl Change {
    pub(super) fn effect(&self) -> Effect {
        match self {
            Self::Register(_) => Effect::Registered,
            Self::Scale(_) => Effect::Scaled,
            Self::Stop { purge: false } => Effect::Stopped,
            Self::Stop { purge: true } => Effect::Purged,
        }
    }
}

/// An action on an active rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RolloutAction {
    Promote,
    Fail,
    Pause,
    Resume,
}

/// Sends one change.
pub(super) async fn change(
    channel: TracedChannel,
    id: &str,
    name: &str,
    change: Change,
) -> Outcome {
    let mut client = JobsClient::new(channel);
    let job_id = id.to_owned();
    let sent = async {
        let job_index = match change {
            Change::Register(job) => {
                let message = v1::RegisterJobRequest {
                    job: Some((&*job).into()),
                    request_id: name.to_owned(),
                    ..v1::RegisterJobRequest::default()
                };
                let answer = client.register(request(message, TIMEOUT)).await?;
                answer.into_inner().job_modify_index
            }
            Change::Scale(count) => {
                let message = v1::ScaleJobRequest {
                    job_id,
                    task_group: "web".to_owned(),
                    count: Some(count),
                    message: name.to_owned(),
                    ..v1::ScaleJobRequest::default()
                };
                let answer = client.scale(request(message, TIMEOUT)).await?;
                answer.into_inner().job_modify_index
            }
            Change::Stop { purge } => {
                let message = v1::DeregisterJobRequest {
                    job_id,
                    purge,
                    ..v1::DeregisterJobRequest::default()
                };
                let answer = client.deregister(request(message, TIMEOUT)).await?;
                match answer.into_inner().job_modify_index {
                    0 => return Err(Status::not_found("there is no such job")),
                    job_index => job_index,
                }
            }
        };
        Ok(job_index)
    };
    match Box::pin(within(sent)).await {
        Ok(job_index) => Outcome::Done { job_index },
        Err(status) => {
            let reason = format!("{:?}: {}", status.code(), status.message());
            match status.code() {
                Code::InvalidArgument
                | Code::NotFound
                | Code::FailedPrecondition
                | Code::AlreadyExists => Outcome::Refused {
                    reason,
                    is_certain: true,
                },
                _ => Outcome::Unknown(reason),
            }
        }
    }
}

async fn within<T>(sent: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let answered = tokio::time::timeout(TIMEOUT, sent).await;
    answered.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")))
}

/// Returns whether there was an answer, success or refusal.
pub(super) async fn dispatch(channel: TracedChannel, id: &str, token: &str) -> bool {
    let message = v1::DispatchJobRequest {
        job_id: id.to_owned(),
        idempotency_token: token.to_owned(),
        ..v1::DispatchJobRequest::default()
    };
    let mut client = JobsClient::new(channel);
    let sent = async { client.dispatch(request(message, TIMEOUT)).await };
    match Box::pin(within(sent)).await {
        Ok(_) => true,
        Err(status) => !matches!(
            status.code(),
            Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Internal
        ),
    }
}

/// Drains one of the nodes, or ends every drain and makes all nodes eligible.
pub(super) async fn drain(channel: TracedChannel, chosen: u64, ends: bool) -> Result<(), Status> {
    let mut client = NodesClient::new(channel);
    within(async {
        let message = v1::ListNodesRequest::default();
        let answer = client.list(request(message, TIMEOUT)).await?;
        let nodes = answer.into_inner().nodes.into_iter();
        let mut ids: Vec<String> = nodes.map(|node| node.id).collect();
        ids.sort_unstable();
        if !ends {
            ids = pick(&ids, chosen).cloned().into_iter().collect();
        }
        for node_id in ids {
            let drain_spec = (!ends).then(|| v1::DrainSpec {
                deadline_ns: 5_000_000_000,
                ..v1::DrainSpec::default()
            });
            let message = v1::UpdateNodeDrainRequest {
                node_id,
                drain_spec,
                mark_eligible: ends,
                ..v1::UpdateNodeDrainRequest::default()
            };
            client.update_drain(request(message, TIMEOUT)).await?;
        }
        Ok(())
    })
    .await
}

/// Returns one element; `None`: there is none.
fn pick<T>(all: &[T], chosen: u64) -> Option<&T> {
    let place = chosen.checked_rem(all.len() as u64)?;
    all.get(usize::try_from(place).ok()?)
}

/// Performs an action on one of the active rollouts. Returns its id if it was promoted.
pub(super) async fn change_rollout(
    channel: TracedChannel,
    chosen: u64,
    action: RolloutAction,
    name: &str,
) -> Result<Option<DeploymentId>, Status> {
    let mut client = DeploymentsClient::new(channel);
    within(async {
        let mut open = active_rollouts(&mut client).await?;
        if action == RolloutAction::Promote {
            open.retain(awaits_promotion);
        }
        let Some(id) = pick(&open, chosen).map(|one| one.id.clone()) else {
            return Ok(None);
        };
        update(&mut client, id.clone(), action, name).await?;
        Ok(id.parse().ok().filter(|_| action == RolloutAction::Promote))
    })
    .await
}

/// Resumes and promotes every rollout that waits for a user. Returns the promoted ones.
pub(super) async fn release_rollouts(
    channel: TracedChannel,
    name: &str,
) -> Result<Vec<DeploymentId>, Status> {
    let mut client = DeploymentsClient::new(channel);
    within(async {
        let mut promoted = Vec::new();
        for one in active_rollouts(&mut client).await? {
            if one.status == "paused" {
                let name = format!("{name}-resume-{}", one.id);
                update(&mut client, one.id.clone(), RolloutAction::Resume, &name).await?;
            }
            if awaits_promotion(&one) {
                let name = format!("{name}-promote-{}", one.id);
                // Refused until its canaries are healthy.
                let answer =
                    update(&mut client, one.id.clone(), RolloutAction::Promote, &name).await;
                let id = one.id.parse::<DeploymentId>().ok();
                promoted.extend(id.filter(|_| answer.is_ok()));
            }
        }
        Ok(promoted)
    })
    .await
}

async fn active_rollouts(
    client: &mut DeploymentsClient<TracedChannel>,
) -> Result<Vec<v1::Deployment>, Status> {
    let message = v1::ListDeploymentsRequest::default();
    let answer = client.list(request(message, TIMEOUT)).await?;
    let all = answer.into_inner().deployments.into_iter();
    let is_open = |one: &v1::Deployment| matches!(one.status.as_str(), "running" | "paused");
    let mut open: Vec<v1::Deployment> = all.filter(is_open).collect();
    open.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    Ok(open)
}

fn awaits_promotion(one: &v1::Deployment) -> bool {
    let mut groups = one.task_groups.values();
    groups.any(|group| group.desired_canaries > 0 && !group.promoted)
}

async fn update(
    client: &mut DeploymentsClient<TracedChannel>,
    deployment_id: String,
    action: RolloutAction,
    name: &str,
) -> Result<(), Status> {
    let request_id = name.to_owned();
    match action {
        RolloutAction::Promote => {
            let message = v1::PromoteDeploymentRequest {
                deployment_id,
                all: true,
                request_id,
                ..v1::PromoteDeploymentRequest::default()
            };
            client.promote(request(message, TIMEOUT)).await?;
        }
        RolloutAction::Fail => {
            let message = v1::FailDeploymentRequest {
                deployment_id,
                request_id,
            };
            client.fail(request(message, TIMEOUT)).await?;
        }
        RolloutAction::Pause | RolloutAction::Resume => {
            let message = v1::PauseDeploymentRequest {
                deployment_id,
                pause: action == RolloutAction::Pause,
                request_id,
            };
            client.pause(request(message, TIMEOUT)).await?;
        }
    }
    Ok(())
}

pub(super) async fn collect_garbage(channel: TracedChannel) -> Result<(), Status> {
    let mut client = OperatorClient::new(channel);
    let message = v1::CollectGarbageRequest {};
    within(async { client.collect_garbage(request(message, TIMEOUT)).await }).await?;
    Ok(())
}

/// Enables preemption for every type of job.
pub(super) async fn allow_preemption(channel: TracedChannel) -> Result<(), Status> {
    let mut client = OperatorClient::new(channel);
    let message = v1::SetSchedulerConfigurationRequest {
        scheduler_config: Some(v1::SchedulerConfiguration {
            preemption_config: Some(v1::PreemptionConfig {
                system_scheduler_enabled: true,
                sysbatch_scheduler_enabled: true,
                batch_scheduler_enabled: true,
                service_scheduler_enabled: true,
            }),
            ..v1::SchedulerConfiguration::default()
        }),
        check_index: None,
    };
    within(async {
        client
            .set_scheduler_configuration(request(message, TIMEOUT))
            .await
    })
    .await?;
    Ok(())
}
