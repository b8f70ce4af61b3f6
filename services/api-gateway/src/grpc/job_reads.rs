//! `kafila.v1.Jobs`: reads of one job and of its allocations, evaluations and deployments.

use gateway_core::Error;
use model::JobKey;
use model::refusal::{Kind, Refusal};
use proto::v1;
use state::{Snapshot, Table};
use tonic::Request;

use super::allocations::page_of_allocs;
use super::deployments::{self, page_of_deployments};
use super::evaluations::page_of_evals;
use super::query::{Api, List, Read, open};
use crate::reads::index::{self, JOB_TABLES};

#[derive(Debug, thiserror::Error)]
#[error("no job {job_id:?} in namespace {namespace:?}{hint}")]
struct NoSuchJob {
    namespace: String,
    job_id: String,
    hint: String,
}

impl Refusal for NoSuchJob {
    fn kind(&self) -> Kind {
        Kind::NotFound
    }
}

#[derive(Debug, thiserror::Error)]
#[error("job {job_id:?} has no version {version}: it keeps {kept}")]
struct NoSuchVersion {
    job_id: String,
    version: u64,
    kept: String,
}

impl Refusal for NoSuchVersion {
    fn kind(&self) -> Kind {
        Kind::NotFound
    }
}

gateway_core::from_refusals!(NoSuchJob, NoSuchVersion);

impl Api {
    pub(super) async fn get_job(
        &self,
        request: Request<v1::GetJobRequest>,
    ) -> Result<v1::GetJobResponse, Error> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let key = read.job_key(&request.job_id)?;
        let index = |snapshot: &Snapshot| index::of_job(snapshot, &key);
        let now = self.gateway.core.now();
        let answer = |snapshot: &Snapshot| {
            let job = find_job(snapshot, &key, request.version)?;
            let next = snapshot.job(&key);
            let next = next.and_then(|job| periodic_launch::next_launch(snapshot, job, now));
            let response = v1::GetJobResponse {
                meta: None,
                job: Some(job),
                summary: Some(api_view::job_summary(snapshot, &key)),
                next_periodic_launch_ns: next.map_or(0, |time| time.0),
            };
            Ok((response, String::new()))
        };
        let (response, meta) = self.query(&read, &JOB_TABLES, index, answer).await?;
        Ok(v1::GetJobResponse { meta, ..response })
    }

    pub(super) async fn list_job_allocations(
        &self,
        request: Request<v1::ListJobAllocationsRequest>,
    ) -> Result<v1::ListAllocationsResponse, Error> {
        let (request, timeout) = open(request);
        let list = List::new(request.options, timeout)?.by_id()?.reversible();
        let key = list.job_key(&request.job_id)?;
        let answer = |snapshot: &Snapshot| {
            // After a purge all allocations belong to the former job, and are listed.
            let current = snapshot
                .job(&key)
                .filter(|_| !request.all)
                .map(|job| job.create_index);
            let allocs = snapshot.allocs_by_job(&key).filter(|view| {
                current.is_none_or(|current| view.alloc.job_create_index == current)
                    && list.has_id(view.alloc.id.0)
            });
            Ok(page_of_allocs(snapshot, &list, allocs))
        };
        let (allocations, meta) = self.list(&list, &[Table::Allocs], answer).await?;
        Ok(v1::ListAllocationsResponse { meta, allocations })
    }

    pub(super) async fn list_job_evaluations(
        &self,
        request: Request<v1::ListJobEvaluationsRequest>,
    ) -> Result<v1::ListEvaluationsResponse, Error> {
        let (request, timeout) = open(request);
        let list = List::new(request.options, timeout)?.by_id()?.reversible();
        let key = list.job_key(&request.job_id)?;
        let answer = |snapshot: &Snapshot| {
            let evals = snapshot.evals_by_job(&key);
            let evals = evals.filter(|eval| list.has_id(eval.value.id.0));
            Ok(page_of_evals(&list, evals))
        };
        let (evaluations, meta) = self.list(&list, &[Table::Evals], answer).await?;
        Ok(v1::ListEvaluationsResponse { meta, evaluations })
    }

    pub(super) async fn list_job_deployments(
        &self,
        request: Request<v1::ListJobDeploymentsRequest>,
    ) -> Result<v1::ListDeploymentsResponse, Error> {
        let (request, timeout) = open(request);
        let list = List::new(request.options, timeout)?.by_id()?.reversible();
        let key = list.job_key(&request.job_id)?;
        let answer = |snapshot: &Snapshot| {
            let current = snapshot.job(&key).map(|job| job.create_index);
            let deployments = snapshot.deployments_by_job(&key).filter(|one| {
                current.is_none_or(|current| one.value.job_create_index == current)
                    && list.has_id(one.value.id.0)
            });
            Ok(page_of_deployments(snapshot, &list, deployments))
        };
        let (deployments, meta) = self.list(&list, &deployments::TABLES, answer).await?;
        Ok(v1::ListDeploymentsResponse { meta, deployments })
    }
}

fn find_job(snapshot: &Snapshot, key: &JobKey, version: Option<u64>) -> Result<v1::Job, Error> {
    let Some(version) = version else {
        let job = snapshot
            .job(key)
            .ok_or_else(|| no_such_job(snapshot, key))?;
        return Ok(api_view::job(snapshot, key, job));
    };
    let row = snapshot.job_version(key, version);
    row.map(|row| api_view::job_version(snapshot, key, row))
        .ok_or_else(|| {
            let kept: Vec<String> = snapshot
                .job_versions(key)
                .map(|row| row.value.version.to_string())
                .collect();
            if kept.is_empty() {
                return no_such_job(snapshot, key);
            }
            NoSuchVersion {
                job_id: key.job_id.to_string(),
                version,
                kept: kept.join(", "),
            }
            .into()
        })
}

/// Returns the error of a missing job, with the jobs whose ids begin alike.
pub(super) fn no_such_job(snapshot: &Snapshot, key: &JobKey) -> Error {
    /// The largest number of similar ids that are named.
    const MAX_NAMED: usize = 5;
    let alike: Vec<&str> = snapshot
        .jobs()
        .map(|job| &job.value)
        .filter(|job| *job.namespace == *key.namespace && job.id.starts_with(&*key.job_id))
        .map(|job| job.id.as_str())
        .take(MAX_NAMED)
        .collect();
    let hint = if alike.is_empty() {
        String::new()
    } else {
        format!("; there is {}", alike.join(", "))
    };
    NoSuchJob {
        namespace: key.namespace.to_string(),
        job_id: key.job_id.to_string(),
        hint,
    }
    .into()
}
