//! RPCs on jobs.

use proto::v1;

use super::transport::{Blocking, Connection};
use crate::error::Error;

/// A job with its summary.
pub(crate) struct FoundJob {
    pub(crate) job: v1::Job,
    pub(crate) summary: v1::JobSummary,
    /// The next periodic launch; 0: none.
    pub(crate) next_launch_ns: u64,
}

/// A job with its deployments and allocations.
#[derive(Clone, Debug)]
pub(crate) struct JobWithAllocs {
    pub(crate) job: v1::Job,
    pub(crate) deployments: Vec<v1::Deployment>,
    pub(crate) allocs: Vec<v1::Allocation>,
}

impl Connection {
    /// Lists jobs, sorted by namespace and id; `prefix` may be empty.
    pub(crate) async fn jobs(
        &self,
        namespace: &str,
        prefix: &str,
        per_page: u32,
    ) -> Result<Vec<v1::JobStub>, Error> {
        let options = v1::QueryOptions {
            prefix: prefix.to_owned(),
            per_page,
            ..self.options(namespace)
        };
        Ok(self.job_page(options).await?.0)
    }

    /// Lists a page of jobs; returns the token of the next one as well.
    pub(crate) async fn job_page(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::JobStub>, String), Error> {
        let message = v1::ListJobsRequest {
            options: Some(options),
        };
        let answer: v1::ListJobsResponse = self
            .call("querying jobs", self.api().jobs().list(message))
            .await?;
        Ok((answer.jobs, answer.meta.unwrap_or_default().next_token))
    }

    /// Returns a job with its summary; `version` selects an earlier one.
    pub(crate) async fn job(
        &self,
        namespace: &str,
        job_id: &str,
        version: Option<u64>,
    ) -> Result<FoundJob, Error> {
        let message = v1::GetJobRequest {
            options: Some(self.options(namespace)),
            job_id: job_id.to_owned(),
            version,
        };
        let doing = format!("querying job {job_id:?}");
        let answer: v1::GetJobResponse = self.call(&doing, self.api().jobs().get(message)).await?;
        Ok(FoundJob {
            job: answer.job.unwrap_or_default(),
            summary: answer.summary.unwrap_or_default(),
            next_launch_ns: answer.next_periodic_launch_ns,
        })
    }

    /// Stores a job. Idempotent by the ID of the request.
    pub(crate) async fn register(
        &self,
        message: v1::RegisterJobRequest,
    ) -> Result<v1::RegisterJobResponse, Error> {
        self.call("submitting job", self.api().jobs().register(message))
            .await
    }

    pub(crate) async fn validate(&self, job: v1::Job) -> Result<v1::ValidateJobResponse, Error> {
        let message = v1::ValidateJobRequest { job: Some(job) };
        self.call("validating job", self.api().jobs().validate(message))
            .await
    }

    /// Makes a dry run of a registration, with its diff.
    pub(crate) async fn plan(&self, job: v1::Job) -> Result<v1::PlanJobResponse, Error> {
        let message = v1::PlanJobRequest {
            job: Some(job),
            diff: true,
        };
        self.call("planning job", self.api().jobs().plan(message))
            .await
    }

    /// Stops a job. Idempotent by the ID of the request.
    pub(crate) async fn deregister(
        &self,
        message: v1::DeregisterJobRequest,
    ) -> Result<v1::DeregisterJobResponse, Error> {
        let doing = format!("deregistering job with id {} err", message.job_id);
        self.call(&doing, self.api().jobs().deregister(message))
            .await
    }

    /// `all` includes allocations of earlier jobs with the same ID.
    pub(crate) async fn job_allocations(
        &self,
        namespace: &str,
        job_id: &str,
        all: bool,
    ) -> Result<Vec<v1::Allocation>, Error> {
        let options = self.options(namespace);
        Ok(self.job_allocations_page(options, job_id, all).await?.0)
    }

    /// Lists allocations of a job, with the token of the next page.
    pub(crate) async fn job_allocations_page(
        &self,
        options: v1::QueryOptions,
        job_id: &str,
        all: bool,
    ) -> Result<(Vec<v1::Allocation>, String), Error> {
        let message = v1::ListJobAllocationsRequest {
            options: Some(options),
            job_id: job_id.to_owned(),
            all,
        };
        let doing = format!("querying allocations of job {job_id:?}");
        let answer: v1::ListAllocationsResponse = self
            .call(&doing, self.api().jobs().list_allocations(message))
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.allocations, next_token))
    }

    pub(crate) async fn job_evaluations(
        &self,
        namespace: &str,
        job_id: &str,
    ) -> Result<Vec<v1::Evaluation>, Error> {
        let message = v1::ListJobEvaluationsRequest {
            options: Some(self.options(namespace)),
            job_id: job_id.to_owned(),
        };
        let doing = format!("querying evaluations of job {job_id:?}");
        let answer: v1::ListEvaluationsResponse = self
            .call(&doing, self.api().jobs().list_evaluations(message))
            .await?;
        Ok(answer.evaluations)
    }

    /// Returns the deployments of a job and, with `all`, of earlier ones with the same ID.
    pub(crate) async fn deployments_of_id(
        &self,
        namespace: &str,
        job_id: &str,
        all: bool,
    ) -> Result<Vec<v1::Deployment>, Error> {
        let message = v1::ListJobDeploymentsRequest {
            options: Some(self.options(namespace)),
            job_id: job_id.to_owned(),
            all,
        };
        let doing = format!("querying deployments of job {job_id:?}");
        let call = self.api().jobs().list_deployments(message);
        let answer: v1::ListDeploymentsResponse = self.call(&doing, call).await?;
        Ok(answer.deployments)
    }

    /// Returns the deployments of a job, and the index of the read.
    pub(crate) async fn job_deployments(
        &self,
        namespace: &str,
        job_id: &str,
        blocking: Blocking,
    ) -> Result<(Vec<v1::Deployment>, u64), Error> {
        let message = v1::ListJobDeploymentsRequest {
            options: Some(self.blocking_options(namespace, blocking)),
            job_id: job_id.to_owned(),
            all: false,
        };
        let doing = format!("querying deployments of job {job_id:?}");
        let answer: v1::ListDeploymentsResponse = self
            .call_waiting(
                &doing,
                self.api()
                    .jobs()
                    .list_deployments(message)
                    .blocking(blocking.after, blocking.wait),
            )
            .await?;
        let index = answer.meta.unwrap_or_default().index;
        Ok((answer.deployments, index))
    }

    /// Returns a job with its deployments and allocations.
    pub(crate) async fn job_with_allocs(
        &self,
        namespace: &str,
        job_id: &str,
    ) -> Result<JobWithAllocs, Error> {
        let (found, (deployments, _), allocs) = futures::try_join!(
            self.job(namespace, job_id, None),
            self.job_deployments(namespace, job_id, Blocking::default()),
            self.job_allocations(namespace, job_id, false),
        )?;
        Ok(JobWithAllocs {
            job: found.job,
            deployments,
            allocs,
        })
    }
}
