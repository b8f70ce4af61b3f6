//! What is asked about jobs.

use proto::v1;
use proto::v1::jobs_client::JobsClient;

use super::{Blocking, Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

pub(super) fn client(
    channel: service_kit::TracedChannel,
) -> JobsClient<service_kit::TracedChannel> {
    JobsClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

/// A job, and what is read with it.
pub(crate) struct FoundJob {
    pub(crate) job: v1::Job,
    pub(crate) summary: v1::JobSummary,
    /// When it is launched next; 0: it is not.
    pub(crate) next_launch_ns: u64,
}

/// A job as it is now, what rolls it out, and what runs of it.
#[derive(Clone, Debug)]
pub(crate) struct JobAtWork {
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
        let message = v1::ListJobsRequest {
            options: Some(options),
        };
        let answer: v1::ListJobsResponse = self
            .call("querying jobs", message, |channel, request| async move {
                client(channel).list(request).await
            })
            .await?;
        Ok(answer.jobs)
    }

    /// Returns a job with its summary; `version`: a former one.
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
        let answer: v1::GetJobResponse = self
            .call(&doing, message, |channel, request| async move {
                client(channel).get(request).await
            })
            .await?;
        Ok(FoundJob {
            job: answer.job.unwrap_or_default(),
            summary: answer.summary.unwrap_or_default(),
            next_launch_ns: answer.next_periodic_launch_ns,
        })
    }

    /// Stores a job. The request's id makes it safe to ask again when no answer came.
    pub(crate) async fn register(
        &self,
        message: v1::RegisterJobRequest,
    ) -> Result<v1::RegisterJobResponse, Error> {
        self.call_until_answered("submitting job", message, |channel, request| async move {
            client(channel).register(request).await
        })
        .await
    }

    pub(crate) async fn validate(&self, job: v1::Job) -> Result<v1::ValidateJobResponse, Error> {
        let message = v1::ValidateJobRequest { job: Some(job) };
        self.call("validating job", message, |channel, request| async move {
            client(channel).validate(request).await
        })
        .await
    }

    /// Tries a registration out, with its differences.
    pub(crate) async fn plan(&self, job: v1::Job) -> Result<v1::PlanJobResponse, Error> {
        let message = v1::PlanJobRequest {
            job: Some(job),
            diff: true,
        };
        self.call("planning job", message, |channel, request| async move {
            client(channel).plan(request).await
        })
        .await
    }

    /// Stops a job. Its request id makes a second try safe.
    pub(crate) async fn deregister(
        &self,
        message: v1::DeregisterJobRequest,
    ) -> Result<v1::DeregisterJobResponse, Error> {
        let doing = format!("deregistering job with id {} err", message.job_id);
        self.call_until_answered(&doing, message, |channel, request| async move {
            client(channel).deregister(request).await
        })
        .await
    }

    /// `all`: those of former jobs of the same id as well.
    pub(crate) async fn job_allocations(
        &self,
        namespace: &str,
        job_id: &str,
        all: bool,
    ) -> Result<Vec<v1::Allocation>, Error> {
        let message = v1::ListJobAllocationsRequest {
            options: Some(self.options(namespace)),
            job_id: job_id.to_owned(),
            all,
        };
        let doing = format!("querying allocations of job {job_id:?}");
        let answer: v1::ListAllocationsResponse = self
            .call(&doing, message, |channel, request| async move {
                client(channel).list_allocations(request).await
            })
            .await?;
        Ok(answer.allocations)
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
            .call(&doing, message, |channel, request| async move {
                client(channel).list_evaluations(request).await
            })
            .await?;
        Ok(answer.evaluations)
    }

    /// Returns the deployments of a job, and the index they were read at.
    pub(crate) async fn job_deployments(
        &self,
        namespace: &str,
        job_id: &str,
        blocking: Blocking,
    ) -> Result<(Vec<v1::Deployment>, u64), Error> {
        let message = v1::ListJobDeploymentsRequest {
            options: Some(self.blocking_options(namespace, blocking)),
            job_id: job_id.to_owned(),
        };
        let doing = format!("querying deployments of job {job_id:?}");
        let answer: v1::ListDeploymentsResponse = self
            .call_within(
                &doing,
                message,
                blocking.wait,
                |channel, request| async move { client(channel).list_deployments(request).await },
            )
            .await?;
        let index = answer.meta.unwrap_or_default().index;
        Ok((answer.deployments, index))
    }
    /// Returns a job with its deployments and allocations.
    pub(crate) async fn job_at_work(
        &self,
        namespace: &str,
        job_id: &str,
    ) -> Result<JobAtWork, Error> {
        let (found, (deployments, _), allocs) = futures::try_join!(
            self.job(namespace, job_id, None),
            self.job_deployments(namespace, job_id, Blocking::default()),
            self.job_allocations(namespace, job_id, false),
        )?;
        Ok(JobAtWork {
            job: found.job,
            deployments,
            allocs,
        })
    }
}
