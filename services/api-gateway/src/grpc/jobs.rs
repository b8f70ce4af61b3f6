//! `kafila.v1.Jobs`.

use admission::jobs::shutdown_delay::skip_delays;
use admission::jobs::{
    self, DeregisterRequest, Preserve, RegisterRequest, RequestContext, SubmittedJob, request_id,
};
use gateway_core::{Error, Step, too_large};
use model::{FieldErrors, JobKey, Timestamp};
use proto::v1;
use proto::v1::jobs_server::Jobs;
use state::Snapshot;
use store::SizeClass;
use tonic::{Request, Response, Status};
use tracing::info;

use super::job_answers::{eval_text, nanoseconds, step};
use super::query::{Api, List, open, reply};
use crate::gateway::Work;
use crate::reads::index::JOB_TABLES;
use crate::reads::options::job_key as checked_job_key;

/// The number of transactions that mark the allocations of one stop, each some hundreds of them: more
/// than any job has.
const SKIP_DELAYS_TXNS_MAX: usize = 10_000;

#[tonic::async_trait]
impl Jobs for Api {
    async fn register(
        &self,
        request: Request<v1::RegisterJobRequest>,
    ) -> Result<Response<v1::RegisterJobResponse>, Status> {
        reply(Box::pin(self.register_job(request.into_inner())).await)
    }

    async fn validate(
        &self,
        request: Request<v1::ValidateJobRequest>,
    ) -> Result<Response<v1::ValidateJobResponse>, Status> {
        let now = self.gateway.core.now();
        let result = match self.submitted(request.into_inner().job.as_ref(), now) {
            Ok(submitted) => {
                let snapshot = self.gateway.core.fresh().await?;
                self.check(&snapshot, &submitted, now).map(|()| submitted)
            }
            Err(errors) => Err(errors),
        };
        Ok(Response::new(match result {
            Ok(submitted) => v1::ValidateJobResponse {
                violations: Vec::new(),
                warnings: submitted.warnings,
            },
            Err(errors) => v1::ValidateJobResponse {
                violations: errors.0.into_iter().map(Into::into).collect(),
                warnings: Vec::new(),
            },
        }))
    }

    async fn plan(
        &self,
        request: Request<v1::PlanJobRequest>,
    ) -> Result<Response<v1::PlanJobResponse>, Status> {
        reply(Box::pin(self.plan_job(request.into_inner())).await)
    }

    async fn deregister(
        &self,
        request: Request<v1::DeregisterJobRequest>,
    ) -> Result<Response<v1::DeregisterJobResponse>, Status> {
        reply(Box::pin(self.deregister_job(request.into_inner())).await)
    }

    async fn get(
        &self,
        request: Request<v1::GetJobRequest>,
    ) -> Result<Response<v1::GetJobResponse>, Status> {
        reply(self.get_job(request).await)
    }

    async fn list(
        &self,
        request: Request<v1::ListJobsRequest>,
    ) -> Result<Response<v1::ListJobsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<JobKey>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let jobs = snapshot.jobs().filter(|job| {
                list.has_namespace(&job.value.namespace) && list.has_name(&job.value.id)
            });
            let keyed = jobs.map(|job| (job.value.key(), job));
            Ok(list.page(keyed, |job| api_view::job_stub(snapshot, job)))
        };
        let (jobs, meta) = Api::list(self, &list, &JOB_TABLES, answer).await?;
        Ok(Response::new(v1::ListJobsResponse { meta, jobs }))
    }

    async fn list_versions(
        &self,
        request: Request<v1::ListJobVersionsRequest>,
    ) -> Result<Response<v1::ListJobVersionsResponse>, Status> {
        reply(self.list_job_versions(request).await)
    }

    async fn revert(
        &self,
        request: Request<v1::RevertJobRequest>,
    ) -> Result<Response<v1::RegisterJobResponse>, Status> {
        reply(Box::pin(self.revert_job(request.into_inner())).await)
    }

    async fn set_stable(
        &self,
        request: Request<v1::SetJobStableRequest>,
    ) -> Result<Response<v1::SetJobStableResponse>, Status> {
        reply(Box::pin(self.set_job_stable(request.into_inner())).await)
    }

    async fn tag_version(
        &self,
        request: Request<v1::TagJobVersionRequest>,
    ) -> Result<Response<v1::TagJobVersionResponse>, Status> {
        reply(Box::pin(self.tag_job_version(request.into_inner())).await)
    }

    async fn untag_version(
        &self,
        request: Request<v1::UntagJobVersionRequest>,
    ) -> Result<Response<v1::TagJobVersionResponse>, Status> {
        reply(Box::pin(self.untag_job_version(request.into_inner())).await)
    }

    async fn list_allocations(
        &self,
        request: Request<v1::ListJobAllocationsRequest>,
    ) -> Result<Response<v1::ListAllocationsResponse>, Status> {
        reply(self.list_job_allocations(request).await)
    }

    async fn list_evaluations(
        &self,
        request: Request<v1::ListJobEvaluationsRequest>,
    ) -> Result<Response<v1::ListEvaluationsResponse>, Status> {
        reply(self.list_job_evaluations(request).await)
    }

    async fn list_deployments(
        &self,
        request: Request<v1::ListJobDeploymentsRequest>,
    ) -> Result<Response<v1::ListDeploymentsResponse>, Status> {
        reply(self.list_job_deployments(request).await)
    }

    async fn dispatch(
        &self,
        request: Request<v1::DispatchJobRequest>,
    ) -> Result<Response<v1::DispatchJobResponse>, Status> {
        reply(Box::pin(self.dispatch_job(request.into_inner())).await)
    }

    async fn force_periodic(
        &self,
        request: Request<v1::ForcePeriodicJobRequest>,
    ) -> Result<Response<v1::ForcePeriodicJobResponse>, Status> {
        reply(Box::pin(self.force_job(request.into_inner())).await)
    }

    async fn evaluate(
        &self,
        request: Request<v1::EvaluateJobRequest>,
    ) -> Result<Response<v1::EvaluateJobResponse>, Status> {
        reply(Box::pin(self.evaluate_job(request.into_inner())).await)
    }

    async fn scale(
        &self,
        request: Request<v1::ScaleJobRequest>,
    ) -> Result<Response<v1::ScaleJobResponse>, Status> {
        reply(Box::pin(self.scale_job(request.into_inner())).await)
    }

    async fn get_scale_status(
        &self,
        request: Request<v1::GetJobScaleStatusRequest>,
    ) -> Result<Response<v1::GetJobScaleStatusResponse>, Status> {
        reply(self.job_scale_status(request).await)
    }
}

impl Api {
    /// Checks a job file, and that its registration fits into a transaction.
    fn check(
        &self,
        snapshot: &Snapshot,
        submitted: &SubmittedJob,
        now: Timestamp,
    ) -> Result<(), FieldErrors> {
        let core = &self.gateway.core;
        let context = RequestContext {
            now,
            ..self.request_context()
        };
        let writes = jobs::validate(snapshot, submitted, &context)?;
        let Err(failure) = core.writer.txn().with(&writes) else {
            return Ok(());
        };
        too_large::field_errors(&writes, &failure).map_or(Ok(()), Err)
    }

    async fn register_job(
        &self,
        request: v1::RegisterJobRequest,
    ) -> Result<v1::RegisterJobResponse, Error> {
        let gateway = &self.gateway;
        let _slot = gateway.begin_work()?;
        let now = gateway.core.now();
        let submitted = self.submitted(request.job.as_ref(), now)?;
        let key = submitted.key();
        let derive = |id: &str| request_id::eval_id(&key, id);
        let context = self.request_context_of(&request.request_id, derive)?;
        let eval_id = context.eval_id;
        let asked = RegisterRequest {
            check_index: request.check_index,
            eval_priority: request.eval_priority,
            preserve: Preserve {
                counts: request.preserve_counts,
                resources: request.preserve_resources,
            },
            force: request.force,
            max_open_evals: gateway.config.max_open_evals,
        };
        let decide = |snapshot: &Snapshot| {
            let job = submitted.in_pool(snapshot);
            let decision = jobs::register(snapshot, &job, &asked, &context)?;
            Ok(Work {
                is_new: decision.adds_work(),
                step: step(decision, eval_id),
            })
        };
        let what = || format!("job {key}");
        let answer = gateway.execute_work_together(what, decide).await?;
        let answer = answer.expect("a registration never finds that there is no such job");
        let counter = if answer.changed {
            &gateway.metrics.jobs_registered
        } else {
            &gateway.metrics.jobs_unchanged
        };
        counter.inc();
        info!(
            namespace = %key.namespace, job_id = %key.job_id, %eval_id,
            index = answer.index, changed = answer.changed, "job registered"
        );
        Ok(v1::RegisterJobResponse {
            eval_id: eval_text(answer),
            eval_create_index: answer.eval_create_index(),
            job_modify_index: answer.job_modify_index,
            warnings: submitted.warnings,
            index: answer.index,
            changed: answer.changed,
            next_periodic_launch_ns: nanoseconds(answer.next_launch),
        })
    }

    async fn deregister_job(
        &self,
        request: v1::DeregisterJobRequest,
    ) -> Result<v1::DeregisterJobResponse, Error> {
        let gateway = &self.gateway;
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let asked = DeregisterRequest {
            job: key.clone(),
            purge: request.purge,
            eval_priority: request.eval_priority,
            no_shutdown_delay: request.no_shutdown_delay,
        };
        let subject = key.to_string();
        let derive = |id: &str| request_id::eval_id_of(asked.verb().as_str(), &subject, id);
        let context = self.request_context_of(&request.request_id, derive)?;
        let eval_id = context.eval_id;
        let decide =
            |snapshot: &Snapshot| Ok(step(jobs::deregister(snapshot, &asked, &context)?, eval_id));
        let what = || format!("job {key}");
        let answer = gateway
            .core
            .execute_in(SizeClass::FollowUp, what, decide)
            .await?;
        let Some(answer) = answer else {
            let index = gateway.core.replica.applied().max(1);
            return Ok(v1::DeregisterJobResponse {
                index,
                ..Default::default()
            });
        };
        info!(
            namespace = %key.namespace, job_id = %key.job_id, %eval_id, purge = request.purge,
            index = answer.index, "job deregistered"
        );
        if request.no_shutdown_delay {
            self.skip_delays(&key, answer.index).await?;
        }
        Ok(v1::DeregisterJobResponse {
            eval_id: eval_text(answer),
            eval_create_index: answer.eval_create_index(),
            job_modify_index: answer.job_modify_index,
            index: answer.index,
        })
    }

    /// Skips the shutdown delays of the allocations that the transaction of a stop did not mark. Their
    /// nodes may have begun to stop them: a mark ends a delay, too.
    async fn skip_delays(&self, key: &JobKey, stopped_index: u64) -> Result<(), Error> {
        let core = &self.gateway.core;
        let now = core.now();
        let decide = |snapshot: &Snapshot| {
            let writes = skip_delays(snapshot, key, stopped_index, now);
            Ok(if writes.is_empty() {
                Step::IfFresh(false)
            } else {
                Step::Commit {
                    writes,
                    answer: Box::new(|_| true),
                }
            })
        };
        let what = || format!("allocations of job {key}");
        for _ in 0..SKIP_DELAYS_TXNS_MAX {
            if !core.execute_in(SizeClass::FollowUp, what, decide).await? {
                break;
            }
        }
        Ok(())
    }
}
