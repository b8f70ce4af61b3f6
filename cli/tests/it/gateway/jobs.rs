//! Job RPCs of the fake gateway.

use proto::v1::jobs_server::Jobs;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, block, lists, meta, page};

#[tonic::async_trait]
impl Jobs for Fake {
    async fn register(&self, request: Request<RegisterJobRequest>) -> Answer<RegisterJobResponse> {
        self.seen("Register", &request, None).await?;
        let mut state = self.state();
        state.register_requests.push(request.into_inner());
        let answer = match state.registered.len() {
            0 => Err(Status::internal("the test did not say what to answer")),
            1 => state.registered[0].clone(),
            _ => state.registered.pop_front().unwrap(),
        };
        answer.map(Response::new)
    }

    async fn validate(&self, request: Request<ValidateJobRequest>) -> Answer<ValidateJobResponse> {
        self.seen("Validate", &request, None).await?;
        Ok(Response::new(self.state().validated.clone()))
    }

    async fn plan(&self, request: Request<PlanJobRequest>) -> Answer<PlanJobResponse> {
        self.seen("Plan", &request, None).await?;
        let mut state = self.state();
        state.plan_requests.push(request.into_inner());
        let answer = state.planned.clone();
        answer
            .expect("the test says what to answer")
            .map(Response::new)
    }

    async fn deregister(
        &self,
        request: Request<DeregisterJobRequest>,
    ) -> Answer<DeregisterJobResponse> {
        self.seen("Deregister", &request, None).await?;
        let mut state = self.state();
        state.deregister_requests.push(request.into_inner());
        Ok(Response::new(state.deregistered.clone()))
    }

    async fn get(&self, request: Request<GetJobRequest>) -> Answer<GetJobResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetJob", &request, options.as_ref()).await?;
        let message = request.into_inner();
        let state = self.state();
        let mut found = state.jobs.iter().filter(|job| job.id() == message.job_id);
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
            next_periodic_launch_ns: state.next_launch_ns,
        }))
    }

    async fn list(&self, request: Request<ListJobsRequest>) -> Answer<ListJobsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListJobs", &request, options.as_ref()).await?;
        let mut jobs = self.state().stubs.clone();
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
        let mut state = self.state();
        let mut answer = ListJobVersionsResponse {
            meta: Some(meta(100)),
            jobs: state.jobs.iter().rev().cloned().collect(),
            diffs: state.diffs.clone(),
        };
        if !message.diffs {
            answer.diffs.clear();
        }
        state.versions_requests.push(message);
        Ok(Response::new(answer))
    }

    async fn revert(&self, request: Request<RevertJobRequest>) -> Answer<RegisterJobResponse> {
        self.seen("Revert", &request, None).await?;
        let mut state = self.state();
        state.revert_requests.push(request.into_inner());
        state.registered[0].clone().map(Response::new)
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
        self.state().tag_requests.push(message);
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
        let mut allocations = self.state().allocs.clone();
        allocations.retain(|alloc| alloc.job_id == message.job_id);
        if !message.all {
            allocations.retain(|alloc| alloc.job_create_index == 10);
        }
        let (allocations, meta) = page(allocations, options.as_ref());
        Ok(Response::new(ListAllocationsResponse { meta, allocations }))
    }

    async fn list_evaluations(
        &self,
        request: Request<ListJobEvaluationsRequest>,
    ) -> Answer<ListEvaluationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListJobEvaluations", &request, options.as_ref())
            .await?;
        let job_id = request.into_inner().job_id;
        let mut evaluations = self.state().evals.clone();
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
        let ListJobDeploymentsRequest { job_id, all, .. } = request.into_inner();
        let state = self.state();
        let mut deployments = state.deployments.clone();
        let current = state.stubs.iter().find(|stub| stub.id == job_id);
        let current = current.map(|stub| stub.create_index);
        deployments.retain(|deployment| {
            let is_former = current.is_some_and(|index| deployment.job_create_index != index);
            deployment.job_id == job_id && (all || !is_former)
        });
        drop(state);
        Ok(Response::new(ListDeploymentsResponse {
            meta: Some(meta(100)),
            deployments,
        }))
    }

    async fn dispatch(&self, request: Request<DispatchJobRequest>) -> Answer<DispatchJobResponse> {
        self.seen("Dispatch", &request, None).await?;
        let mut state = self.state();
        state.dispatch_requests.push(request.into_inner());
        Ok(Response::new(state.dispatched.clone()))
    }

    async fn force_periodic(
        &self,
        request: Request<ForcePeriodicJobRequest>,
    ) -> Answer<ForcePeriodicJobResponse> {
        self.seen("ForcePeriodic", &request, None).await?;
        let mut state = self.state();
        state.force_requests.push(request.into_inner());
        Ok(Response::new(state.forced.clone()))
    }

    async fn evaluate(&self, request: Request<EvaluateJobRequest>) -> Answer<EvaluateJobResponse> {
        self.seen("Evaluate", &request, None).await?;
        let mut state = self.state();
        state.evaluate_requests.push(request.into_inner());
        Ok(Response::new(state.evaluated.clone()))
    }

    async fn scale(&self, request: Request<ScaleJobRequest>) -> Answer<ScaleJobResponse> {
        self.seen("Scale", &request, None).await?;
        let mut state = self.state();
        state.scale_requests.push(request.into_inner());
        Ok(Response::new(state.scaled.clone()))
    }

    async fn get_scale_status(
        &self,
        request: Request<GetJobScaleStatusRequest>,
    ) -> Answer<GetJobScaleStatusResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetScaleStatus", &request, options.as_ref())
            .await?;
        Ok(Response::new(self.state().scale_status.clone()))
    }
}
