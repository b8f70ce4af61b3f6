//! `kafila.v1.Jobs`.

use model::{EvalId, EvalStatus, FieldErrors, Job, JobKey, Timestamp, spec};
use proto::v1;
use proto::v1::jobs_server::Jobs;
use service_kit::current_trace_parent;
use state::{AllocView, Snapshot, Table};
use store::Room;
use tonic::{Request, Response, Status};
use tracing::info;
use upkeep::periodic::{self, Timetable};

use super::{Api, job_key, no_such_job, open};
use crate::admission::{
    self, Answer, Decision, DeregisterRequest, Preserve, RegisterRequest, Stamp, request_id,
};
use crate::error::Error;
use crate::gateway::Step;
use crate::reads::index::{self, JOB_TABLES};
use crate::reads::options::{job_key as checked_job_key, namespaces, uuid_prefix};
use crate::reads::page::Page;
use crate::reads::view;
use crate::settings::namespaces;

#[tonic::async_trait]
impl Jobs for Api {
    async fn register(
        &self,
        request: Request<v1::RegisterJobRequest>,
    ) -> Result<Response<v1::RegisterJobResponse>, Status> {
        let response = Box::pin(self.register_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn validate(
        &self,
        request: Request<v1::ValidateJobRequest>,
    ) -> Result<Response<v1::ValidateJobResponse>, Status> {
        let job = request.into_inner().job;
        let checked = read_spec(job).and_then(|spec| {
            let admitted = jobspec::canonicalise(&spec, self.gateway.now())?;
            Ok((names_no_pool(&spec), admitted))
        });
        let result = match checked {
            Ok((names_no_pool, admitted)) => {
                let snapshot = self.gateway.fresh().await?;
                let job = namespaces::with_node_pool(&snapshot, &admitted.job, names_no_pool);
                let joined = namespaces::admit(&snapshot, &job);
                drop(job);
                joined.map(|_| admitted)
            }
            Err(errors) => Err(errors),
        };
        Ok(Response::new(match result {
            Ok(admitted) => v1::ValidateJobResponse {
                violations: Vec::new(),
                warnings: admitted.warnings,
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
        let response = Box::pin(self.plan_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn deregister(
        &self,
        request: Request<v1::DeregisterJobRequest>,
    ) -> Result<Response<v1::DeregisterJobResponse>, Status> {
        let response = Box::pin(self.deregister_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn get(
        &self,
        request: Request<v1::GetJobRequest>,
    ) -> Result<Response<v1::GetJobResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let key = job_key(&options, &request.job_id).map_err(Error::from)?;
        let index = |snapshot: &Snapshot| index::of_job(snapshot, &key);
        let now = self.gateway.now();
        let answer = |snapshot: &Snapshot| {
            let job = find_job(snapshot, &key, request.version)?;
            let summary = Some(view::job_summary(snapshot, &key));
            let next = snapshot.job(&key);
            let next = next.and_then(|job| periodic::next_launch(snapshot, job, now));
            Ok(((job, summary, nanoseconds(next)), String::new()))
        };
        let ((job, summary, next_periodic_launch_ns), meta) = self
            .ask(&options, timeout, &JOB_TABLES, index, answer)
            .await?;
        Ok(Response::new(v1::GetJobResponse {
            meta,
            job: Some(job),
            summary,
            next_periodic_launch_ns,
        }))
    }

    async fn list(
        &self,
        request: Request<v1::ListJobsRequest>,
    ) -> Result<Response<v1::ListJobsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let namespaces = namespaces(&options);
        let page =
            Page::<JobKey>::new(options.per_page, &options.next_token).map_err(Error::from)?;
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &JOB_TABLES);
        let answer = |snapshot: &Snapshot| {
            let jobs = snapshot.jobs().filter(|job| {
                namespaces.contain(&job.value.namespace)
                    && job.value.id.starts_with(&options.prefix)
            });
            let (jobs, token) = page.of(jobs.map(|job| (job.value.key(), job)));
            Ok((
                jobs.into_iter()
                    .map(|job| view::job_stub(snapshot, job))
                    .collect(),
                token,
            ))
        };
        let (jobs, meta) = self
            .ask(&options, timeout, &JOB_TABLES, index, answer)
            .await?;
        Ok(Response::new(v1::ListJobsResponse { meta, jobs }))
    }

    async fn list_versions(
        &self,
        request: Request<v1::ListJobVersionsRequest>,
    ) -> Result<Response<v1::ListJobVersionsResponse>, Status> {
        Ok(Response::new(self.list_job_versions(request).await?))
    }

    async fn revert(
        &self,
        request: Request<v1::RevertJobRequest>,
    ) -> Result<Response<v1::RegisterJobResponse>, Status> {
        let response = Box::pin(self.revert_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn set_stable(
        &self,
        request: Request<v1::SetJobStableRequest>,
    ) -> Result<Response<v1::SetJobStableResponse>, Status> {
        let response = Box::pin(self.set_job_stable(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn tag_version(
        &self,
        request: Request<v1::TagJobVersionRequest>,
    ) -> Result<Response<v1::TagJobVersionResponse>, Status> {
        let response = Box::pin(self.tag_job_version(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn untag_version(
        &self,
        request: Request<v1::UntagJobVersionRequest>,
    ) -> Result<Response<v1::TagJobVersionResponse>, Status> {
        let response = Box::pin(self.untag_job_version(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn list_allocations(
        &self,
        request: Request<v1::ListJobAllocationsRequest>,
    ) -> Result<Response<v1::ListAllocationsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let key = job_key(&options, &request.job_id).map_err(Error::from)?;
        let prefix = uuid_prefix(&options).map_err(Error::from)?;
        let page = Page::new(options.per_page, &options.next_token)
            .map_err(Error::from)?
            .reversed(options.reverse);
        let tables = [Table::Allocs];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            // A purged job's allocations are all former ones: then they are what is asked for.
            let current = snapshot
                .job(&key)
                .filter(|_| !request.all)
                .map(|job| job.create_index);
            let allocs = snapshot.allocs_by_job(&key).filter(|view| {
                current.is_none_or(|current| view.alloc.job_create_index == current)
                    && prefix.is_none_or(|prefix| prefix.matches(view.alloc.id.0))
            });
            let keyed = allocs.map(|view: &AllocView| ((view.create_index, view.alloc.id), view));
            let (allocs, token) = page.of(keyed);
            let allocs = allocs
                .into_iter()
                .map(|alloc| view::allocation(snapshot, alloc));
            Ok((allocs.collect(), token))
        };
        let (allocations, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListAllocationsResponse {
            meta,
            allocations,
        }))
    }

    async fn list_evaluations(
        &self,
        request: Request<v1::ListJobEvaluationsRequest>,
    ) -> Result<Response<v1::ListEvaluationsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let key = job_key(&options, &request.job_id).map_err(Error::from)?;
        let prefix = uuid_prefix(&options).map_err(Error::from)?;
        let page = Page::<(u64, EvalId)>::new(options.per_page, &options.next_token)
            .map_err(Error::from)?
            .reversed(options.reverse);
        let tables = [Table::Evals];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let evals = snapshot
                .evals_by_job(&key)
                .filter(|eval| prefix.is_none_or(|prefix| prefix.matches(eval.value.id.0)));
            let (evals, token) =
                page.of(evals.map(|eval| ((eval.create_index, eval.value.id), eval)));
            Ok((
                evals.into_iter().map(|eval| (&**eval).into()).collect(),
                token,
            ))
        };
        let (evaluations, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListEvaluationsResponse {
            meta,
            evaluations,
        }))
    }

    async fn list_deployments(
        &self,
        request: Request<v1::ListJobDeploymentsRequest>,
    ) -> Result<Response<v1::ListDeploymentsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let key = job_key(&options, &request.job_id).map_err(Error::from)?;
        let prefix = uuid_prefix(&options).map_err(Error::from)?;
        let page = Page::new(options.per_page, &options.next_token)
            .map_err(Error::from)?
            .reversed(options.reverse);
        let tables = [Table::Deployments, Table::Allocs];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let current = snapshot.job(&key).map(|job| job.create_index);
            let deployments = snapshot.deployments_by_job(&key).filter(|deployment| {
                current.is_none_or(|current| deployment.value.job_create_index == current)
                    && prefix.is_none_or(|prefix| prefix.matches(deployment.value.id.0))
            });
            let keyed = deployments
                .map(|deployment| ((deployment.create_index, deployment.value.id), deployment));
            let (deployments, token) = page.of(keyed);
            let shown = deployments
                .into_iter()
                .map(|one| view::deployment(snapshot, one));
            Ok((shown.collect(), token))
        };
        let (deployments, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListDeploymentsResponse {
            meta,
            deployments,
        }))
    }

    async fn dispatch(
        &self,
        request: Request<v1::DispatchJobRequest>,
    ) -> Result<Response<v1::DispatchJobResponse>, Status> {
        let response = Box::pin(self.dispatch_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn force_periodic(
        &self,
        request: Request<v1::ForcePeriodicJobRequest>,
    ) -> Result<Response<v1::ForcePeriodicJobResponse>, Status> {
        let response = Box::pin(self.force_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn evaluate(
        &self,
        request: Request<v1::EvaluateJobRequest>,
    ) -> Result<Response<v1::EvaluateJobResponse>, Status> {
        let response = Box::pin(self.evaluate_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn scale(
        &self,
        request: Request<v1::ScaleJobRequest>,
    ) -> Result<Response<v1::ScaleJobResponse>, Status> {
        let response = Box::pin(self.scale_job(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn get_scale_status(
        &self,
        request: Request<v1::GetJobScaleStatusRequest>,
    ) -> Result<Response<v1::GetJobScaleStatusResponse>, Status> {
        self.job_scale_status(request).await
    }
}

impl Api {
    async fn register_job(
        &self,
        request: v1::RegisterJobRequest,
    ) -> Result<v1::RegisterJobResponse, Error> {
        let gateway = &self.gateway;
        let now = gateway.now();
        let spec = read_spec(request.job)?;
        let names_no_pool = names_no_pool(&spec);
        let admitted = jobspec::canonicalise(&spec, now)?;
        let job = admitted.job;
        let key = job.key();
        let eval_id = if request.request_id.is_empty() {
            gateway.next_eval_id()
        } else {
            request_id::eval_id(&key, &request.request_id)?
        };
        let stamp = Stamp {
            eval_id,
            now,
            trace_parent: current_trace_parent(),
        };
        let asked = RegisterRequest {
            check_index: request.check_index,
            eval_priority: request.eval_priority,
            preserve: Preserve {
                counts: request.preserve_counts,
                resources: request.preserve_resources,
            },
            max_open_evals: gateway.config.max_open_evals,
        };
        let decide = |snapshot: &Snapshot| {
            let job = namespaces::with_node_pool(snapshot, &job, names_no_pool);
            Ok(step(
                admission::register(snapshot, &job, &asked, &stamp)?,
                eval_id,
            ))
        };
        let result = gateway.carry_out(|| format!("job {key}"), decide).await;
        if matches!(
            result,
            Err(Error::Admission(admission::Refusal::Overloaded { .. }))
        ) {
            gateway.metrics.jobs_refused_overload.inc();
        }
        let answer = result?.expect("a registration never finds that there is no such job");
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
            warnings: admitted.warnings,
            index: answer.index,
            changed: answer.changed,
            next_periodic_launch_ns: nanoseconds(next_launch(&job, now)),
        })
    }

    async fn deregister_job(
        &self,
        request: v1::DeregisterJobRequest,
    ) -> Result<v1::DeregisterJobResponse, Error> {
        let gateway = &self.gateway;
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let eval_id = if request.request_id.is_empty() {
            gateway.next_eval_id()
        } else {
            // To stop and to purge are two requests, whatever their ids are.
            let verb = if request.purge { "purge" } else { "stop" };
            request_id::eval_id_of(verb, &key.to_string(), &request.request_id)?
        };
        let stamp = Stamp {
            eval_id,
            now: gateway.now(),
            trace_parent: current_trace_parent(),
        };
        let asked = DeregisterRequest {
            job: key.clone(),
            purge: request.purge,
            eval_priority: request.eval_priority,
        };
        let decide = |snapshot: &Snapshot| {
            Ok(step(
                admission::deregister(snapshot, &asked, &stamp)?,
                eval_id,
            ))
        };
        let what = || format!("job {key}");
        let answer = gateway.carry_out_with(Room::FollowUp, what, decide).await?;
        let Some(answer) = answer else {
            let index = gateway.replica.applied().max(1);
            return Ok(v1::DeregisterJobResponse {
                index,
                ..Default::default()
            });
        };
        info!(
            namespace = %key.namespace, job_id = %key.job_id, %eval_id, purge = request.purge,
            index = answer.index, "job deregistered"
        );
        Ok(v1::DeregisterJobResponse {
            eval_id: eval_text(answer),
            eval_create_index: answer.eval_create_index(),
            job_modify_index: answer.job_modify_index,
            index: answer.index,
        })
    }
}

/// Returns the next step of a decision; its answer is `None` where there is no such job.
pub(super) fn step(decision: Decision, eval_id: EvalId) -> Step<Option<Answer>> {
    match decision {
        Decision::Done(answer) => Step::Known(Some(answer)),
        Decision::NoSuchJob => Step::IfFresh(None),
        Decision::Commit(mut proposal) => Step::Commit {
            writes: std::mem::take(&mut proposal.writes),
            answer: Box::new(move |revision| Some(proposal.answer(eval_id, revision))),
        },
    }
}

pub(super) fn eval_text(answer: Answer) -> String {
    answer.eval_id.map_or_else(String::new, |id| id.to_string())
}

/// Returns when a periodic job that is registered `now` is launched first.
pub(super) fn next_launch(job: &Job, now: Timestamp) -> Option<Timestamp> {
    let periodic = job.periodic.as_ref().filter(|_| job.is_launched())?;
    Timetable::new(periodic).next(now)
}

/// `None`: never.
pub(super) fn nanoseconds(time: Option<Timestamp>) -> u64 {
    time.map_or(0, |time| time.0)
}

pub(super) fn read_spec(job: Option<v1::Job>) -> Result<spec::Job, FieldErrors> {
    match job {
        Some(job) => job.try_into(),
        None => {
            let mut errors = FieldErrors::default();
            errors.push("job", "missing: want the job to register");
            Err(errors)
        }
    }
}

/// Tells whether a job leaves its node pool to its namespace.
pub(super) fn names_no_pool(spec: &spec::Job) -> bool {
    spec.node_pool.as_deref().is_none_or(str::is_empty)
}

fn find_job(snapshot: &Snapshot, key: &JobKey, version: Option<u64>) -> Result<v1::Job, Error> {
    let Some(version) = version else {
        let job = snapshot
            .job(key)
            .ok_or_else(|| no_such_job(snapshot, key))?;
        return Ok(view::job(snapshot, key, job));
    };
    let row = snapshot.job_version(key, version);
    row.map(|row| view::job_version(snapshot, key, row))
        .ok_or_else(|| {
            let kept: Vec<String> = snapshot
                .job_versions(key)
                .map(|row| row.value.version.to_string())
                .collect();
            if kept.is_empty() {
                return no_such_job(snapshot, key);
            }
            Error::NoSuchVersion {
                job_id: key.job_id.to_string(),
                version,
                kept: kept.join(", "),
            }
        })
}

/// Reads the status that evaluations are filtered by; empty: any.
pub(super) fn eval_status(text: &str) -> Result<Option<EvalStatus>, FieldErrors> {
    if text.is_empty() {
        return Ok(None);
    }
    let found = EvalStatus::ALL
        .into_iter()
        .find(|status| status.as_str() == text);
    found.map(Some).ok_or_else(|| {
        let known: Vec<&str> = EvalStatus::ALL
            .iter()
            .map(|status| status.as_str())
            .collect();
        let mut errors = FieldErrors::default();
        errors.push(
            "status",
            format!(
                "{text:?} is no status of an evaluation: want one of {}, or none for any",
                known.join(", ")
            ),
        );
        errors
    })
}
