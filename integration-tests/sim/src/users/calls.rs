//! The requests that users make, and what their answers say.

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

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// What is asked of a job.
#[derive(Clone)]
pub(super) enum What {
    Register(Box<Job>),
    Scale(u32),
    Stop { purge: bool },
}

impl What {
    pub(super) fn effect(&self) -> Effect {
        match self {
            Self::Register(_) => Effect::Registered,
            Self::Scale(_) => Effect::Scaled,
            Self::Stop { purge: false } => Effect::Stopped,
            Self::Stop { purge: true } => Effect::Purged,
        }
    }
}

/// What is done to a rollout under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meddling {
    Promote,
    Fail,
    Pause,
    Resume,
}

/// Asks once.
pub(super) async fn change(channel: TracedChannel, id: &str, name: &str, what: What) -> Outcome {
    let mut client = JobsClient::new(channel);
    let job_id = id.to_owned();
    let sent = async {
        let job_index = match what {
            What::Register(job) => {
                let message = v1::RegisterJobRequest {
                    job: Some((&*job).into()),
                    request_id: name.to_owned(),
                    ..v1::RegisterJobRequest::default()
                };
                let answer = client.register(request(message, PATIENCE)).await?;
                answer.into_inner().job_modify_index
            }
            What::Scale(count) => {
                let message = v1::ScaleJobRequest {
                    job_id,
                    task_group: "web".to_owned(),
                    count: Some(count),
                    message: name.to_owned(),
                    ..v1::ScaleJobRequest::default()
                };
                let answer = client.scale(request(message, PATIENCE)).await?;
                answer.into_inner().job_modify_index
            }
            What::Stop { purge } => {
                let message = v1::DeregisterJobRequest {
                    job_id,
                    purge,
                    ..v1::DeregisterJobRequest::default()
                };
                let answer = client.deregister(request(message, PATIENCE)).await?;
                match answer.into_inner().job_modify_index {
                    0 => return Err(Status::not_found("there is no such job")),
                    job_index => job_index,
                }
            }
        };
        Ok(job_index)
    };
    match within(sent).await {
        Ok(job_index) => Outcome::Done { job_index },
        Err(status) => {
            let why = format!("{:?}: {}", status.code(), status.message());
            match status.code() {
                Code::InvalidArgument
                | Code::NotFound
                | Code::FailedPrecondition
                | Code::AlreadyExists => Outcome::Refused {
                    why,
                    is_certain: true,
                },
                _ => Outcome::Unknown(why),
            }
        }
    }
}

async fn within<T>(sent: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let answered = tokio::time::timeout(PATIENCE, sent).await;
    answered.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")))
}

/// Returns whether there is an answer, whatever it is.
pub(super) async fn dispatch(channel: TracedChannel, id: &str, token: &str) -> bool {
    let message = v1::DispatchJobRequest {
        job_id: id.to_owned(),
        idempotency_token: token.to_owned(),
        ..v1::DispatchJobRequest::default()
    };
    let mut client = JobsClient::new(channel);
    let sent = async { client.dispatch(request(message, PATIENCE)).await };
    match within(sent).await {
        Ok(_) => true,
        Err(status) => !matches!(
            status.code(),
            Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Internal
        ),
    }
}

/// Drains one of the nodes, or ends every drain and has all take work.
pub(super) async fn drain(channel: TracedChannel, chosen: u64, ends: bool) -> Result<(), Status> {
    let mut client = NodesClient::new(channel);
    within(async {
        let message = v1::ListNodesRequest::default();
        let answer = client.list(request(message, PATIENCE)).await?;
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
            client.update_drain(request(message, PATIENCE)).await?;
        }
        Ok(())
    })
    .await
}

/// Returns one of them; `None`: there is none.
fn pick<T>(all: &[T], chosen: u64) -> Option<&T> {
    let place = chosen.checked_rem(all.len() as u64)?;
    all.get(usize::try_from(place).ok()?)
}

/// Does something to one of the rollouts under way; returns which one was promoted, if so.
pub(super) async fn meddle(
    channel: TracedChannel,
    chosen: u64,
    how: Meddling,
    name: &str,
) -> Result<Option<DeploymentId>, Status> {
    let mut client = DeploymentsClient::new(channel);
    within(async {
        let mut open = under_way(&mut client).await?;
        if how == Meddling::Promote {
            open.retain(awaits_promotion);
        }
        let Some(id) = pick(&open, chosen).map(|one| one.id.clone()) else {
            return Ok(None);
        };
        update(&mut client, id.clone(), how, name).await?;
        Ok(id.parse().ok().filter(|_| how == Meddling::Promote))
    })
    .await
}

/// Has every rollout go on that waits for somebody; returns those that were promoted.
pub(super) async fn let_end(
    channel: TracedChannel,
    name: &str,
) -> Result<Vec<DeploymentId>, Status> {
    let mut client = DeploymentsClient::new(channel);
    within(async {
        let mut promoted = Vec::new();
        for one in under_way(&mut client).await? {
            if one.status == "paused" {
                let name = format!("{name}-resume-{}", one.id);
                update(&mut client, one.id.clone(), Meddling::Resume, &name).await?;
            }
            if awaits_promotion(&one) {
                let name = format!("{name}-promote-{}", one.id);
                // Refused as long as its canaries are not healthy.
                let answer = update(&mut client, one.id.clone(), Meddling::Promote, &name).await;
                let id = one.id.parse::<DeploymentId>().ok();
                promoted.extend(id.filter(|_| answer.is_ok()));
            }
        }
        Ok(promoted)
    })
    .await
}

async fn under_way(
    client: &mut DeploymentsClient<TracedChannel>,
) -> Result<Vec<v1::Deployment>, Status> {
    let message = v1::ListDeploymentsRequest::default();
    let answer = client.list(request(message, PATIENCE)).await?;
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
    how: Meddling,
    name: &str,
) -> Result<(), Status> {
    let request_id = name.to_owned();
    match how {
        Meddling::Promote => {
            let message = v1::PromoteDeploymentRequest {
                deployment_id,
                all: true,
                request_id,
                ..v1::PromoteDeploymentRequest::default()
            };
            client.promote(request(message, PATIENCE)).await?;
        }
        Meddling::Fail => {
            let message = v1::FailDeploymentRequest {
                deployment_id,
                request_id,
            };
            client.fail(request(message, PATIENCE)).await?;
        }
        Meddling::Pause | Meddling::Resume => {
            let message = v1::PauseDeploymentRequest {
                deployment_id,
                pause: how == Meddling::Pause,
                request_id,
            };
            client.pause(request(message, PATIENCE)).await?;
        }
    }
    Ok(())
}

pub(super) async fn collect_garbage(channel: TracedChannel) -> Result<(), Status> {
    let mut client = OperatorClient::new(channel);
    let message = v1::CollectGarbageRequest {};
    within(async { client.collect_garbage(request(message, PATIENCE)).await }).await?;
    Ok(())
}

/// Lets every kind of job push aside what is less important.
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
            .set_scheduler_configuration(request(message, PATIENCE))
            .await
    })
    .await?;
    Ok(())
}
