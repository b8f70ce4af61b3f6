//! A gateway over a [`World`]: lists, gets and blocks as the real one does, and writes nothing.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use proto::v1::allocations_server::{Allocations, AllocationsServer};
use proto::v1::deployments_server::{Deployments, DeploymentsServer};
use proto::v1::evaluations_server::{Evaluations, EvaluationsServer};
use proto::v1::jobs_server::{Jobs, JobsServer};
use proto::v1::namespaces_server::{Namespaces, NamespacesServer};
use proto::v1::node_pools_server::{NodePools, NodePoolsServer};
use proto::v1::nodes_server::{Nodes, NodesServer};
use proto::v1::operator_server::{Operator, OperatorServer};
use proto::v1::scaling_policies_server::{ScalingPolicies, ScalingPoliciesServer};
use proto::v1::*;
use service_kit::CancellationToken;
use service_kit::server::ServeOptions;
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::world::{Seen, World};

/// How long a question that waits for a change is let wait: the world of a test does not change by
/// itself.
const BLOCK: Duration = Duration::from_millis(20);

/// When what is written later is written.
const LATER: Duration = Duration::from_millis(400);

type Answer<T> = Result<Response<T>, Status>;

/// A running gateway; it is gone when this is dropped.
pub(crate) struct Gateway {
    pub(crate) address: String,
    socket: SocketAddr,
    world: Arc<Mutex<World>>,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

impl Gateway {
    pub(crate) async fn start(world: World) -> Self {
        // Not where `kafila dev` takes its ports from: one that restarts needs its own again.
        let any = SocketAddr::from(([127, 0, 0, 2], 0));
        Self::start_at(any, Arc::new(Mutex::new(world))).await
    }

    async fn start_at(socket: SocketAddr, world: Arc<Mutex<World>>) -> Self {
        let listener = service_kit::server::bind(socket).await.unwrap();
        let socket = listener.local_addr().unwrap();
        let fake = Fake(Arc::clone(&world));
        let routes = Routes::new(JobsServer::new(fake.clone()))
            .add_service(AllocationsServer::new(fake.clone()))
            .add_service(EvaluationsServer::new(fake.clone()))
            .add_service(DeploymentsServer::new(fake.clone()))
            .add_service(NodesServer::new(fake.clone()))
            .add_service(NamespacesServer::new(fake.clone()))
            .add_service(ScalingPoliciesServer::new(fake.clone()))
            .add_service(NodePoolsServer::new(fake.clone()))
            .add_service(OperatorServer::new(fake));
        let options = ServeOptions {
            service: "api-gateway",
            rpc_services: &[],
            descriptors: proto::DESCRIPTORS,
            metrics: None,
            // Connections are cut at once, as when the process is killed.
            shutdown_grace_period: Duration::ZERO,
        };
        let stop = CancellationToken::new();
        let serving = service_kit::server::serve(listener, routes, options, stop.clone());
        Self {
            address: format!("http://{socket}"),
            socket,
            world,
            stop,
            server: tokio::spawn(async move { serving.await.unwrap() }),
        }
    }

    /// Kills it, and starts it again at the same address once `while_away` has ended.
    pub(crate) async fn restart(mut self, while_away: impl Future<Output = ()>) -> Self {
        let (socket, world) = (self.socket, Arc::clone(&self.world));
        self.stop.cancel();
        (&mut self.server).await.unwrap();
        while_away.await;
        Self::start_at(socket, world).await
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Waits until the world is as `condition` wants it.
    pub(crate) async fn wait_for(&self, what: &str, condition: impl Fn(&World) -> bool) {
        let seen = async {
            while !condition(&self.world()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(crate::command::PATIENCE, seen)
            .await
            .expect(what);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[derive(Clone)]
struct Fake(Arc<Mutex<World>>);

impl Fake {
    /// Records a call, and answers it when the world is broken.
    async fn seen<T>(
        &self,
        method: &'static str,
        request: &Request<T>,
        options: Option<&QueryOptions>,
    ) -> Result<(), Status> {
        let metadata = request.metadata();
        let seen = Seen {
            method,
            options: options.cloned().unwrap_or_default(),
            has_deadline: metadata.contains_key("grpc-timeout"),
            trace_parent: metadata
                .get("traceparent")
                .map(|value| value.to_str().unwrap().to_owned()),
        };
        let (broken, mute) = {
            let mut world = self.world();
            world.seen.push(seen);
            (world.broken.clone(), world.mute)
        };
        if mute {
            std::future::pending::<()>().await;
        }
        broken.map_or(Ok(()), Err)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

fn lists(options: Option<&QueryOptions>, namespace: &str, id: &str) -> bool {
    let Some(options) = options else { return true };
    let wanted = match options.namespace.as_str() {
        "" => "default",
        wanted => wanted,
    };
    (wanted == "*" || wanted == namespace) && id.starts_with(&options.prefix)
}

/// The same for ids that are UUIDs, whose hyphens do not count.
fn lists_id(options: Option<&QueryOptions>, namespace: &str, id: &str) -> bool {
    let options = options.cloned().map(|options| QueryOptions {
        prefix: options.prefix.replace('-', ""),
        ..options
    });
    lists(options.as_ref(), namespace, &id.replace('-', ""))
}

/// Cuts a list to a page, and says where the next begins.
fn page<T>(mut items: Vec<T>, options: Option<&QueryOptions>) -> (Vec<T>, Option<QueryMeta>) {
    let options = options.cloned().unwrap_or_default();
    let skipped = options.next_token.parse::<usize>().unwrap_or_default();
    let limit = usize::try_from(options.per_page).unwrap();
    let mut meta = meta(100);
    if options.reverse {
        items.reverse();
    }
    items.drain(..skipped.min(items.len()));
    if limit > 0 && items.len() > limit {
        items.truncate(limit);
        meta.next_token = (skipped + limit).to_string();
    }
    (items, Some(meta))
}

fn meta(index: u64) -> QueryMeta {
    QueryMeta {
        index,
        ..QueryMeta::default()
    }
}

/// Waits as long as the question allows, but no longer than a test can bear.
async fn block(options: Option<&QueryOptions>, index: u64) {
    let waits = options.is_some_and(|options| options.min_index >= index);
    if waits {
        tokio::time::sleep(BLOCK).await;
    }
}

#[tonic::async_trait]
impl Jobs for Fake {
    async fn register(&self, request: Request<RegisterJobRequest>) -> Answer<RegisterJobResponse> {
        self.seen("Register", &request, None).await?;
        let mut world = self.world();
        world.register_requests.push(request.into_inner());
        let answer = match world.registered.len() {
            0 => Err(Status::internal("the test did not say what to answer")),
            1 => world.registered[0].clone(),
            _ => world.registered.pop_front().unwrap(),
        };
        answer.map(Response::new)
    }

    async fn validate(&self, request: Request<ValidateJobRequest>) -> Answer<ValidateJobResponse> {
        self.seen("Validate", &request, None).await?;
        Ok(Response::new(self.world().validated.clone()))
    }

    async fn plan(&self, request: Request<PlanJobRequest>) -> Answer<PlanJobResponse> {
        self.seen("Plan", &request, None).await?;
        let mut world = self.world();
        world.plan_requests.push(request.into_inner());
        let answer = world.planned.clone();
        answer
            .expect("the test says what to answer")
            .map(Response::new)
    }

    async fn deregister(
        &self,
        request: Request<DeregisterJobRequest>,
    ) -> Answer<DeregisterJobResponse> {
        self.seen("Deregister", &request, None).await?;
        let mut world = self.world();
        world.deregister_requests.push(request.into_inner());
        Ok(Response::new(world.deregistered.clone()))
    }

    async fn get(&self, request: Request<GetJobRequest>) -> Answer<GetJobResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetJob", &request, options.as_ref()).await?;
        let message = request.into_inner();
        let world = self.world();
        let mut found = world.jobs.iter().filter(|job| job.id() == message.job_id);
        let job = match message.version {
            Some(version) => found.find(|job| job.version() == version),
            None => found.next_back(),
        };
        let Some(job) = job else {
            let message = format!("there is no version {:?} of job web", message.version);
            return Err(Status::not_found(message));
        };
        Ok(Response::new(GetJobResponse {
            meta: Some(meta(100)),
            job: Some(job.clone()),
            summary: Some(crate::fixtures::summary()),
            next_periodic_launch_ns: world.next_launch_ns,
        }))
    }

    async fn list(&self, request: Request<ListJobsRequest>) -> Answer<ListJobsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListJobs", &request, options.as_ref()).await?;
        let mut jobs = self.world().stubs.clone();
        jobs.retain(|job| lists(options.as_ref(), &job.namespace, &job.id));
        let (jobs, meta) = page(jobs, options.as_ref());
        Ok(Response::new(ListJobsResponse { meta, jobs }))
    }

    async fn list_versions(
        &self,
        request: Request<ListJobVersionsRequest>,
    ) -> Answer<ListJobVersionsResponse> {
        self.seen("ListVersions", &request, None).await?;
        let message = request.into_inner();
        let mut world = self.world();
        let mut answer = ListJobVersionsResponse {
            meta: Some(meta(100)),
            jobs: world.jobs.iter().rev().cloned().collect(),
            diffs: world.diffs.clone(),
        };
        if !message.diffs {
            answer.diffs.clear();
        }
        world.versions_requests.push(message);
        Ok(Response::new(answer))
    }

    async fn revert(&self, request: Request<RevertJobRequest>) -> Answer<RegisterJobResponse> {
        self.seen("Revert", &request, None).await?;
        let mut world = self.world();
        world.revert_requests.push(request.into_inner());
        world.registered[0].clone().map(Response::new)
    }

    async fn set_stable(&self, _: Request<SetJobStableRequest>) -> Answer<SetJobStableResponse> {
        Err(Status::unimplemented("no command does that"))
    }

    async fn tag_version(
        &self,
        request: Request<TagJobVersionRequest>,
    ) -> Answer<TagJobVersionResponse> {
        self.seen("TagVersion", &request, None).await?;
        let message = request.into_inner();
        let version = message.version.unwrap_or(7);
        self.world().tag_requests.push(message);
        Ok(Response::new(TagJobVersionResponse {
            version,
            ..TagJobVersionResponse::default()
        }))
    }

    async fn untag_version(
        &self,
        request: Request<UntagJobVersionRequest>,
    ) -> Answer<TagJobVersionResponse> {
        self.seen("UntagVersion", &request, None).await?;
        match request.into_inner().name.as_str() {
            "gold" => Ok(Response::new(TagJobVersionResponse::default())),
            name => Err(Status::not_found(format!(
                "tag {name:?} not found: there is gold"
            ))),
        }
    }

    async fn list_allocations(
        &self,
        request: Request<ListJobAllocationsRequest>,
    ) -> Answer<ListAllocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListJobAllocations", &request, options.as_ref())
            .await?;
        let message = request.into_inner();
        let mut allocations = self.world().allocs.clone();
        allocations.retain(|alloc| alloc.job_id == message.job_id);
        if !message.all {
            allocations.retain(|alloc| alloc.job_create_index == 10);
        }
        Ok(Response::new(ListAllocationsResponse {
            meta: Some(meta(100)),
            allocations,
        }))
    }

    async fn list_evaluations(
        &self,
        request: Request<ListJobEvaluationsRequest>,
    ) -> Answer<ListEvaluationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListJobEvaluations", &request, options.as_ref())
            .await?;
        let job_id = request.into_inner().job_id;
        let mut evaluations = self.world().evals.clone();
        evaluations.retain(|eval| eval.job_id == job_id);
        Ok(Response::new(ListEvaluationsResponse {
            meta: Some(meta(100)),
            evaluations,
        }))
    }

    async fn list_deployments(
        &self,
        request: Request<ListJobDeploymentsRequest>,
    ) -> Answer<ListDeploymentsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListJobDeployments", &request, options.as_ref())
            .await?;
        block(options.as_ref(), 100).await;
        let job_id = request.into_inner().job_id;
        let mut deployments = self.world().deployments.clone();
        deployments.retain(|deployment| deployment.job_id == job_id);
        Ok(Response::new(ListDeploymentsResponse {
            meta: Some(meta(100)),
            deployments,
        }))
    }

    async fn dispatch(&self, request: Request<DispatchJobRequest>) -> Answer<DispatchJobResponse> {
        self.seen("Dispatch", &request, None).await?;
        let mut world = self.world();
        world.dispatch_requests.push(request.into_inner());
        Ok(Response::new(world.dispatched.clone()))
    }

    async fn force_periodic(
        &self,
        request: Request<ForcePeriodicJobRequest>,
    ) -> Answer<ForcePeriodicJobResponse> {
        self.seen("ForcePeriodic", &request, None).await?;
        let mut world = self.world();
        world.force_requests.push(request.into_inner());
        Ok(Response::new(world.forced.clone()))
    }

    async fn evaluate(&self, request: Request<EvaluateJobRequest>) -> Answer<EvaluateJobResponse> {
        self.seen("Evaluate", &request, None).await?;
        let mut world = self.world();
        world.evaluate_requests.push(request.into_inner());
        Ok(Response::new(world.evaluated.clone()))
    }

    async fn scale(&self, request: Request<ScaleJobRequest>) -> Answer<ScaleJobResponse> {
        self.seen("Scale", &request, None).await?;
        let mut world = self.world();
        world.scale_requests.push(request.into_inner());
        Ok(Response::new(world.scaled.clone()))
    }

    async fn get_scale_status(
        &self,
        request: Request<GetJobScaleStatusRequest>,
    ) -> Answer<GetJobScaleStatusResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetScaleStatus", &request, options.as_ref())
            .await?;
        Ok(Response::new(self.world().scale_status.clone()))
    }
}

#[tonic::async_trait]
impl Allocations for Fake {
    type LogsStream = BoxStream<'static, Result<LogsChunk, Status>>;

    async fn get(&self, _: Request<GetAllocationRequest>) -> Answer<GetAllocationResponse> {
        Err(Status::unimplemented("commands list by prefix"))
    }

    async fn list(
        &self,
        request: Request<ListAllocationsRequest>,
    ) -> Answer<ListAllocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListAllocations", &request, options.as_ref())
            .await?;
        let mut allocations = self.world().allocs.clone();
        allocations.retain(|alloc| lists_id(options.as_ref(), &alloc.namespace, &alloc.id));
        let (allocations, meta) = page(allocations, options.as_ref());
        Ok(Response::new(ListAllocationsResponse { meta, allocations }))
    }

    async fn logs(&self, request: Request<LogsRequest>) -> Answer<Self::LogsStream> {
        self.seen("Logs", &request, None).await?;
        let message = request.into_inner();
        let mut world = self.world();
        world.logs_requests.push(message.clone());
        let key = (message.task.clone(), message.stream);
        let Some(pieces) = world.logs.get(&key) else {
            let text = format!("task {:?} not started yet. No logs available", message.task);
            return Err(Status::not_found(text));
        };
        let all = pieces.concat();
        let offset = usize::try_from(message.offset).unwrap().min(all.len());
        let start = if message.from_end {
            all.len() - offset
        } else {
            offset
        };
        let there: Vec<Vec<u8>> = all[start..].chunks(100).map(<[u8]>::to_vec).collect();
        let later = match message.follow {
            true => world.later_logs.get(&key).cloned().unwrap_or_default(),
            false => Vec::new(),
        };
        let later =
            stream::once(tokio::time::sleep(LATER)).flat_map(move |()| stream::iter(later.clone()));
        let later = if message.follow {
            later.boxed()
        } else {
            stream::empty().boxed()
        };
        let chunk = |data| Ok(LogsChunk { data });
        Ok(Response::new(
            stream::iter(there).chain(later).map(chunk).boxed(),
        ))
    }
}

#[tonic::async_trait]
impl Evaluations for Fake {
    async fn delete(
        &self,
        request: Request<DeleteEvaluationsRequest>,
    ) -> Answer<DeleteEvaluationsResponse> {
        self.seen("DeleteEvaluations", &request, None).await?;
        let ids = request.into_inner().eval_ids;
        let mut world = self.world();
        world.evals.retain(|eval| !ids.contains(&eval.id));
        let count = u32::try_from(ids.len()).unwrap();
        world.deleted_evals.extend(ids);
        Ok(Response::new(DeleteEvaluationsResponse {
            count,
            index: 101,
        }))
    }

    async fn get(&self, request: Request<GetEvaluationRequest>) -> Answer<GetEvaluationResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetEvaluation", &request, options.as_ref())
            .await?;
        let id = request.into_inner().eval_id;
        let (evaluation, index) = {
            let mut world = self.world();
            if let Some(next) = world.next_evals.pop_front() {
                world.evals.retain(|eval| eval.id != next.id);
                world.evals.push(next);
            }
            let found = world.evals.iter().find(|eval| eval.id == id).cloned();
            let Some(found) = found else {
                return Err(Status::not_found(format!("there is no evaluation {id}")));
            };
            let index = found.modify_index;
            (found, index)
        };
        block(options.as_ref(), index).await;
        Ok(Response::new(GetEvaluationResponse {
            meta: Some(meta(index)),
            evaluation: Some(evaluation),
        }))
    }

    async fn list(
        &self,
        request: Request<ListEvaluationsRequest>,
    ) -> Answer<ListEvaluationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListEvaluations", &request, options.as_ref())
            .await?;
        let message = request.into_inner();
        self.world().asked_jobs.push(message.job_id.clone());
        let mut evals = self.world().evals.clone();
        evals.retain(|eval| {
            lists_id(options.as_ref(), &eval.namespace, &eval.id)
                && (message.status.is_empty() || eval.status == message.status)
                && (message.job_id.is_empty() || eval.job_id == message.job_id)
        });
        let (evaluations, meta) = page(evals, options.as_ref());
        Ok(Response::new(ListEvaluationsResponse { meta, evaluations }))
    }

    async fn explain(
        &self,
        request: Request<ExplainEvaluationRequest>,
    ) -> Answer<ExplainEvaluationResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ExplainEvaluation", &request, options.as_ref())
            .await?;
        let request = request.into_inner();
        let mut world = self.world();
        let evaluation = world.evals.iter().find(|eval| eval.id == request.eval_id);
        let evaluation = evaluation.cloned();
        world.explain_requests.push(request);
        Ok(Response::new(ExplainEvaluationResponse {
            meta: Some(meta(131)),
            evaluation,
            explanation: Some(crate::fixtures::explanation()),
        }))
    }

    async fn list_allocations(
        &self,
        request: Request<ListEvaluationAllocationsRequest>,
    ) -> Answer<ListAllocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListEvaluationAllocations", &request, options.as_ref())
            .await?;
        let id = request.into_inner().eval_id;
        let mut allocations = self.world().allocs.clone();
        allocations.retain(|alloc| alloc.eval_id == id && alloc.desired_status == "run");
        Ok(Response::new(ListAllocationsResponse {
            meta: Some(meta(100)),
            allocations,
        }))
    }
}

#[tonic::async_trait]
impl Deployments for Fake {
    async fn get(&self, request: Request<GetDeploymentRequest>) -> Answer<GetDeploymentResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetDeployment", &request, options.as_ref())
            .await?;
        let id = request.into_inner().deployment_id;
        let (deployment, index) = {
            let mut world = self.world();
            if let Some(next) = world.next_deployments.pop_front() {
                world
                    .deployments
                    .retain(|deployment| deployment.id != next.id);
                world.deployments.push(next);
            }
            let found = world
                .deployments
                .iter()
                .find(|deployment| deployment.id == id)
                .cloned();
            let Some(found) = found else {
                return Err(Status::not_found(format!("there is no deployment {id}")));
            };
            let index = found.modify_index;
            (found, index)
        };
        block(options.as_ref(), index).await;
        Ok(Response::new(GetDeploymentResponse {
            meta: Some(meta(index)),
            deployment: Some(deployment),
        }))
    }

    async fn list(
        &self,
        request: Request<ListDeploymentsRequest>,
    ) -> Answer<ListDeploymentsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListDeployments", &request, options.as_ref())
            .await?;
        let mut deployments = self.world().deployments.clone();
        deployments.retain(|it| lists_id(options.as_ref(), &it.namespace, &it.id));
        let (deployments, meta) = page(deployments, options.as_ref());
        Ok(Response::new(ListDeploymentsResponse { meta, deployments }))
    }

    async fn promote(
        &self,
        request: Request<PromoteDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Promote", &request, None).await?;
        let mut world = self.world();
        world.promote_requests.push(request.into_inner());
        world.updated_deployment()
    }

    async fn pause(
        &self,
        request: Request<PauseDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Pause", &request, None).await?;
        let world = self.world();
        if request.into_inner().pause {
            return Ok(Response::new(UpdateDeploymentResponse::default()));
        }
        world.updated_deployment()
    }

    async fn fail(
        &self,
        request: Request<FailDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Fail", &request, None).await?;
        self.world().updated_deployment()
    }

    async fn set_alloc_health(
        &self,
        _: Request<SetAllocHealthRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        Err(Status::unimplemented("no command does that"))
    }

    async fn unblock(
        &self,
        request: Request<UnblockDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Unblock", &request, None).await?;
        Err(Status::failed_precondition("there is one region"))
    }
}

#[tonic::async_trait]
impl Nodes for Fake {
    async fn update_eligibility(
        &self,
        request: Request<UpdateNodeEligibilityRequest>,
    ) -> Answer<UpdateNodeEligibilityResponse> {
        self.seen("UpdateEligibility", &request, None).await?;
        let message = request.into_inner();
        let mut world = self.world();
        let mut nodes = world.nodes.iter_mut();
        let found = nodes.find(|node| node.id == message.node_id);
        let node = found.ok_or_else(|| Status::not_found("no such node"))?;
        node.eligibility = message.eligibility;
        Ok(Response::new(UpdateNodeEligibilityResponse::default()))
    }

    /// Stores what is asked for; nobody carries it out.
    async fn update_drain(
        &self,
        request: Request<UpdateNodeDrainRequest>,
    ) -> Answer<UpdateNodeDrainResponse> {
        self.seen("UpdateDrain", &request, None).await?;
        let message = request.into_inner();
        let mut world = self.world();
        let mut nodes = world.nodes.iter_mut();
        let found = nodes.find(|node| node.id == message.node_id);
        let node = found.ok_or_else(|| Status::not_found("no such node"))?;
        let status = if message.drain_spec.is_some() {
            "draining"
        } else {
            "canceled"
        };
        node.drain = message.drain_spec.map(|spec| DrainStrategy {
            spec: Some(spec),
            ..DrainStrategy::default()
        });
        node.last_drain = Some(LastDrain {
            status: status.to_owned(),
            meta: message.meta,
            ..LastDrain::default()
        });
        let is_eligible = message.mark_eligible;
        node.eligibility = if is_eligible {
            "eligible"
        } else {
            "ineligible"
        }
        .to_owned();
        Ok(Response::new(UpdateNodeDrainResponse::default()))
    }

    async fn get(&self, request: Request<GetNodeRequest>) -> Answer<GetNodeResponse> {
        self.seen("GetNode", &request, None).await?;
        let world = self.world();
        let id = request.into_inner().node_id;
        let node = world.nodes.iter().find(|node| node.id == id).cloned();
        let missing = || Status::not_found("no such node");
        let node = Some(node.ok_or_else(missing)?);
        let meta = Some(meta(100));
        Ok(Response::new(GetNodeResponse { meta, node }))
    }

    async fn list(&self, request: Request<ListNodesRequest>) -> Answer<ListNodesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodes", &request, options.as_ref()).await?;
        let prefix = options
            .as_ref()
            .map(|options| options.prefix.clone())
            .unwrap_or_default();
        let mut nodes = self.world().nodes.clone();
        nodes.retain(|node| node.id.starts_with(&prefix));
        let (nodes, meta) = page(nodes, options.as_ref());
        Ok(Response::new(ListNodesResponse { meta, nodes }))
    }

    async fn list_allocations(
        &self,
        request: Request<ListNodeAllocationsRequest>,
    ) -> Answer<ListAllocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodeAllocations", &request, options.as_ref())
            .await?;
        let id = request.into_inner().node_id;
        let mut allocations = self.world().allocs.clone();
        allocations.retain(|alloc| alloc.node_id == id);
        Ok(Response::new(ListAllocationsResponse {
            meta: Some(meta(100)),
            allocations,
        }))
    }
}

#[tonic::async_trait]
impl ScalingPolicies for Fake {
    async fn list(
        &self,
        request: Request<ListScalingPoliciesRequest>,
    ) -> Answer<ListScalingPoliciesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListScalingPolicies", &request, options.as_ref())
            .await?;
        let ListScalingPoliciesRequest { job_id, r#type, .. } = request.into_inner();
        let mut policies = self.world().scaling_policies.clone();
        policies.retain(|it| {
            (job_id.is_empty() || it.job_id == job_id) && (r#type.is_empty() || it.r#type == r#type)
        });
        Ok(Response::new(ListScalingPoliciesResponse {
            meta: Some(meta(100)),
            policies,
        }))
    }

    async fn get(
        &self,
        request: Request<GetScalingPolicyRequest>,
    ) -> Answer<GetScalingPolicyResponse> {
        self.seen("GetScalingPolicy", &request, None).await?;
        let id = request.into_inner().policy_id;
        let world = self.world();
        let mut found = world.scaling_policies.iter();
        let found = found.find(|it| it.id.starts_with(&id)).cloned();
        let missing = || Status::not_found(format!("no scaling policy {id}"));
        Ok(Response::new(GetScalingPolicyResponse {
            meta: Some(meta(100)),
            policy: Some(found.ok_or_else(missing)?),
        }))
    }
}

#[tonic::async_trait]
impl Namespaces for Fake {
    async fn list(
        &self,
        request: Request<ListNamespacesRequest>,
    ) -> Answer<ListNamespacesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNamespaces", &request, options.as_ref())
            .await?;
        let (namespaces, meta) = page(self.world().namespaces.clone(), options.as_ref());
        Ok(Response::new(ListNamespacesResponse { meta, namespaces }))
    }

    async fn get(&self, request: Request<GetNamespaceRequest>) -> Answer<GetNamespaceResponse> {
        self.seen("GetNamespace", &request, None).await?;
        let name = request.into_inner().name;
        let world = self.world();
        let mut found = world.namespaces.iter().filter(|it| it.name == name);
        let missing = || Status::not_found(format!("namespace {name:?} not found"));
        Ok(Response::new(GetNamespaceResponse {
            meta: Some(meta(100)),
            namespace: Some(found.next().cloned().ok_or_else(missing)?),
        }))
    }

    async fn upsert(
        &self,
        request: Request<UpsertNamespaceRequest>,
    ) -> Answer<UpsertNamespaceResponse> {
        self.seen("UpsertNamespace", &request, None).await?;
        let request = request.into_inner();
        let wanted = request.namespace.unwrap();
        let mut world = self.world();
        let put = |world: &mut World, it: Namespace| {
            world.namespaces.retain(|other| other.name != it.name);
            world.namespaces.push(it);
        };
        if let Some(other) = world.other_namespaces.pop_front() {
            put(&mut world, other);
        }
        let mut found = world.namespaces.iter().filter(|it| it.name == wanted.name);
        let found = found.next().map_or(0, |it| it.modify_index);
        if request.check_index.is_some_and(|want| want != found) {
            return Err(Status::aborted("somebody has changed it meanwhile"));
        }
        put(&mut world, wanted);
        Ok(Response::new(UpsertNamespaceResponse { modify_index: 101 }))
    }

    async fn delete(
        &self,
        request: Request<DeleteNamespaceRequest>,
    ) -> Answer<DeleteNamespaceResponse> {
        self.seen("DeleteNamespace", &request, None).await?;
        let name = request.into_inner().name;
        let mut world = self.world();
        if !world.namespaces.iter().any(|it| it.name == name) {
            return Err(Status::not_found(format!("namespace {name:?} not found")));
        }
        world.namespaces.retain(|it| it.name != name);
        Ok(Response::new(DeleteNamespaceResponse { index: 101 }))
    }
}

impl Fake {
    fn pool(&self, name: &str) -> Result<NodePool, Status> {
        let world = self.world();
        let mut found = world.node_pools.iter().filter(|pool| pool.name == name);
        let missing = || Status::not_found(format!("node pool {name:?} not found"));
        found.next().cloned().ok_or_else(missing)
    }
}

#[tonic::async_trait]
impl NodePools for Fake {
    async fn list(&self, request: Request<ListNodePoolsRequest>) -> Answer<ListNodePoolsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodePools", &request, options.as_ref())
            .await?;
        let (node_pools, meta) = page(self.world().node_pools.clone(), options.as_ref());
        Ok(Response::new(ListNodePoolsResponse { meta, node_pools }))
    }

    async fn get(&self, request: Request<GetNodePoolRequest>) -> Answer<GetNodePoolResponse> {
        self.seen("GetNodePool", &request, None).await?;
        let pool = self.pool(&request.into_inner().name)?;
        Ok(Response::new(GetNodePoolResponse {
            meta: Some(meta(100)),
            node_pool: Some(pool),
        }))
    }

    async fn upsert(
        &self,
        request: Request<UpsertNodePoolRequest>,
    ) -> Answer<UpsertNodePoolResponse> {
        self.seen("UpsertNodePool", &request, None).await?;
        let pool = request.into_inner().node_pool.unwrap();
        if pool.name == "all" {
            let text = "modifying node pool \"all\" is not allowed: it is built in";
            return Err(Status::invalid_argument(text));
        }
        let mut world = self.world();
        world.node_pools.retain(|it| it.name != pool.name);
        world.node_pools.push(pool);
        Ok(Response::new(UpsertNodePoolResponse { modify_index: 101 }))
    }

    async fn delete(
        &self,
        request: Request<DeleteNodePoolRequest>,
    ) -> Answer<DeleteNodePoolResponse> {
        self.seen("DeleteNodePool", &request, None).await?;
        let name = request.into_inner().name;
        self.pool(&name)?;
        self.world().node_pools.retain(|it| it.name != name);
        Ok(Response::new(DeleteNodePoolResponse { index: 101 }))
    }

    async fn list_nodes(
        &self,
        request: Request<ListNodePoolNodesRequest>,
    ) -> Answer<ListNodesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodePoolNodes", &request, options.as_ref())
            .await?;
        let name = request.into_inner().name;
        self.pool(&name)?;
        let mut nodes = self.world().nodes.clone();
        nodes.retain(|node| node.node_pool == name);
        let (nodes, meta) = page(nodes, options.as_ref());
        Ok(Response::new(ListNodesResponse { meta, nodes }))
    }

    async fn list_jobs(
        &self,
        request: Request<ListNodePoolJobsRequest>,
    ) -> Answer<ListJobsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodePoolJobs", &request, options.as_ref())
            .await?;
        let name = request.into_inner().name;
        self.pool(&name)?;
        let (mut jobs, all) = {
            let world = self.world();
            (world.stubs.clone(), world.jobs.clone())
        };
        let is_in = |job: &Job| job.node_pool.as_deref() == Some(&*name);
        jobs.retain(|stub| {
            let mut versions = all.iter().filter(|job| job.id() == stub.id);
            versions.any(is_in) && lists(options.as_ref(), &stub.namespace, "")
        });
        let (jobs, meta) = page(jobs, options.as_ref());
        Ok(Response::new(ListJobsResponse { meta, jobs }))
    }
}

#[tonic::async_trait]
impl Operator for Fake {
    async fn list_leaders(
        &self,
        request: Request<ListLeadersRequest>,
    ) -> Answer<ListLeadersResponse> {
        self.seen("ListLeaders", &request, None).await?;
        let leaders = self.world().leaders.clone();
        Ok(Response::new(ListLeadersResponse {
            meta: Some(meta(100)),
            leaders,
        }))
    }

    async fn collect_garbage(
        &self,
        request: Request<CollectGarbageRequest>,
    ) -> Answer<CollectGarbageResponse> {
        self.seen("CollectGarbage", &request, None).await?;
        Ok(Response::new(self.world().garbage))
    }

    async fn get_version(&self, request: Request<GetVersionRequest>) -> Answer<GetVersionResponse> {
        self.seen("GetVersion", &request, None).await?;
        Ok(Response::new(GetVersionResponse {
            version: "9.8.7".to_owned(),
        }))
    }

    async fn get_scheduler_configuration(
        &self,
        request: Request<GetSchedulerConfigurationRequest>,
    ) -> Answer<GetSchedulerConfigurationResponse> {
        self.seen("GetSchedulerConfiguration", &request, None)
            .await?;
        let config = self.world().scheduler_config.clone();
        Ok(Response::new(GetSchedulerConfigurationResponse {
            meta: Some(meta(100)),
            scheduler_config: Some(config),
        }))
    }

    async fn set_scheduler_configuration(
        &self,
        request: Request<SetSchedulerConfigurationRequest>,
    ) -> Answer<SetSchedulerConfigurationResponse> {
        self.seen("SetSchedulerConfiguration", &request, None)
            .await?;
        let message = request.into_inner();
        let mut world = self.world();
        world.set_config_requests.push(message.clone());
        let mut modify_index = world.scheduler_config.modify_index;
        if let Some(other) = world.other_configs.pop_front() {
            modify_index += 1;
            world.scheduler_config = SchedulerConfiguration {
                modify_index,
                ..other
            };
        }
        if message.check_index.is_some_and(|it| it != modify_index) {
            return Err(Status::aborted("somebody was faster"));
        }
        modify_index += 1;
        world.scheduler_config = SchedulerConfiguration {
            modify_index,
            ..message.scheduler_config.unwrap()
        };
        Ok(Response::new(SetSchedulerConfigurationResponse {
            modify_index,
        }))
    }
}
