//! `kafila.v1.Jobs`: reads of one job and of its allocations, evaluations and deployments.

use admission::jobs::missing;
use gateway_core::Error;
use listing::JobIncarnation;
use model::JobKey;
use proto::v1;
use state::{Snapshot, Table};
use tonic::Request;

use super::allocations::page_of_allocs;
use super::deployments::{self, page_of_deployments};
use super::evaluations::page_of_evals;
use super::query::{Api, List, Read, open};
use crate::reads::index::{self, JOB_TABLES};

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
            let incarnation = JobIncarnation::of(snapshot, &key, request.all);
            let allocs = snapshot.allocs_by_job(&key).filter(|view| {
                incarnation.contains(view.alloc.job_create_index) && list.has_id(view.alloc.id.0)
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
            let incarnation = JobIncarnation::of(snapshot, &key, request.all);
            let deployments = snapshot.deployments_by_job(&key).filter(|one| {
                incarnation.contains(one.value.job_create_index) && list.has_id(one.value.id.0)
            });
            Ok(page_of_deployments(snapshot, &list, deployments))
        };
        let (deployments, meta) = self.list(&list, &deployments::TABLES, answer).await?;
        Ok(v1::ListDeploymentsResponse { meta, deployments })
    }
}

fn find_job(snapshot: &Snapshot, key: &JobKey, version: Option<u64>) -> Result<v1::Job, Error> {
    Ok(match version {
        None => api_view::job(snapshot, key, missing::find_job(snapshot, key)?),
        Some(version) => {
            let row = missing::find_version(snapshot, key, version)?;
            api_view::job_version(snapshot, key, row)
        }
    })
}
