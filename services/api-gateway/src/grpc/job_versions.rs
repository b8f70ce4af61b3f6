//! `kafila.v1.Jobs`: versions of a job, listed with diffs, reverted to, marked and tagged.

use admission::jobs::marks::{self, LabelDecision, Tagged};
use admission::jobs::missing::NoSuchJob;
use admission::jobs::request_id::Verb;
use admission::jobs::revert::Target;
use admission::jobs::{self, RevertRequest, request_id};
use gateway_core::{Error, Step};
use jobdiff::JobDiff;
use model::{Indexed, Job, JobKey};
use proto::v1;
use proto::v1::revert_job_request::Target as Wanted;
use state::{Snapshot, Table};
use store::SizeClass;
use tonic::Request;
use tracing::info;

use super::job_answers::{eval_text, nanoseconds, step};
use super::query::{Api, Read, open};
use crate::gateway::Work;
use crate::reads::index;
use crate::reads::options::job_key as checked_job_key;

impl Api {
    pub(super) async fn list_job_versions(
        &self,
        request: Request<v1::ListJobVersionsRequest>,
    ) -> Result<v1::ListJobVersionsResponse, Error> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options.clone(), timeout);
        let key = read.job_key(&request.job_id)?;
        if request.diff_version.is_some() && !request.diff_tag.is_empty() {
            let message = "there is a diff_version too: want one to compare with";
            return Err(Error::invalid_field("diff_tag", message));
        }
        let tables = [Table::JobVersions];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let newest_first: Vec<_> = snapshot.job_versions(&key).rev().collect();
            // Versions may outlive a purged job because of its allocations; users do not see them.
            if newest_first.is_empty() || snapshot.job(&key).is_none() {
                return Err(NoSuchJob::new(snapshot, &key).into());
            }
            let rows: Vec<&Indexed<Job>> = newest_first.iter().map(|row| &***row).collect();
            let diffs = diffs(snapshot, &key, &request, &rows)?;
            let jobs = rows
                .iter()
                .map(|row| api_view::job_version(snapshot, &key, row))
                .collect();
            Ok(((jobs, diffs), String::new()))
        };
        let ((jobs, diffs), meta) = self.query(&read, &tables, index, answer).await?;
        Ok(v1::ListJobVersionsResponse { meta, jobs, diffs })
    }

    pub(super) async fn revert_job(
        &self,
        request: v1::RevertJobRequest,
    ) -> Result<v1::RegisterJobResponse, Error> {
        let gateway = &self.gateway;
        let _slot = gateway.begin_work()?;
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let to = match request.target {
            Some(Wanted::Version(version)) => Target::Version(version),
            Some(Wanted::Tag(tag)) => Target::Tag(tag),
            None => {
                let message = "missing: want the version to go back to, or its tag";
                return Err(Error::invalid_field("target", message));
            }
        };
        let subject = key.to_string();
        let derive = |id: &str| request_id::eval_id_of(Verb::Revert.as_str(), &subject, id);
        let context = self.request_context_of(&request.request_id, derive)?;
        let eval_id = context.eval_id;
        let asked = RevertRequest {
            job: key.clone(),
            to,
            prior_version: request.enforce_prior_version,
            eval_priority: request.eval_priority,
            max_open_evals: gateway.config.max_open_evals,
        };
        let decide = |snapshot: &Snapshot| {
            let decision = jobs::revert(snapshot, &asked, &context)?;
            Ok(Work {
                is_new: decision.adds_work(),
                step: step(decision, eval_id),
            })
        };
        let what = || format!("job {key}");
        let answer = gateway.execute_work(SizeClass::FollowUp, what, decide);
        let answer = answer.await?.expect("a revert of a missing job is refused");
        info!(
            namespace = %key.namespace, job_id = %key.job_id, %eval_id, to = ?asked.to,
            index = answer.index, "job reverted"
        );
        Ok(v1::RegisterJobResponse {
            eval_id: eval_text(answer),
            eval_create_index: answer.eval_create_index(),
            job_modify_index: answer.job_modify_index,
            warnings: Vec::new(),
            index: answer.index,
            changed: answer.changed,
            next_periodic_launch_ns: nanoseconds(answer.next_launch),
        })
    }

    pub(super) async fn set_job_stable(
        &self,
        request: v1::SetJobStableRequest,
    ) -> Result<v1::SetJobStableResponse, Error> {
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let (version, stable) = (request.version, request.stable);
        let decide = |snapshot: &Snapshot| marks::set_stable(snapshot, &key, version, stable);
        let ((), index) = self.mark(&key, decide).await?;
        info!(
            namespace = %key.namespace, job_id = %key.job_id, version, stable, index,
            "job version marked"
        );
        Ok(v1::SetJobStableResponse { index })
    }

    pub(super) async fn tag_job_version(
        &self,
        request: v1::TagJobVersionRequest,
    ) -> Result<v1::TagJobVersionResponse, Error> {
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let now = self.gateway.core.now();
        let asked = marks::TagRequest {
            job: key.clone(),
            name: request.name,
            description: request.description,
            version: request.version,
        };
        let decide = |snapshot: &Snapshot| marks::tag(snapshot, &asked, now);
        let (tagged, index) = self.mark(&key, decide).await?;
        info!(
            namespace = %key.namespace, job_id = %key.job_id, version = tagged.version,
            tag = asked.name, index, "job version tagged"
        );
        Ok(tag_answer(&tagged, index))
    }

    pub(super) async fn untag_job_version(
        &self,
        request: v1::UntagJobVersionRequest,
    ) -> Result<v1::TagJobVersionResponse, Error> {
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let name = request.name;
        let decide = |snapshot: &Snapshot| marks::untag(snapshot, &key, &name);
        let (tagged, index) = self.mark(&key, decide).await?;
        info!(
            namespace = %key.namespace, job_id = %key.job_id, version = tagged.version,
            tag = name, index, "job version untagged"
        );
        Ok(tag_answer(&tagged, index))
    }

    /// Commits a label of a version; returns the answer and its revision.
    async fn mark<T: Clone + Send + 'static>(
        &self,
        key: &JobKey,
        decide: impl Fn(&Snapshot) -> Result<LabelDecision<T>, marks::VersionRefusal> + Send + Sync,
    ) -> Result<(T, u64), Error> {
        let decide = |snapshot: &Snapshot| {
            Ok(match decide(snapshot)? {
                LabelDecision::Unchanged { answer, index } => Step::IfFresh((answer, index)),
                LabelDecision::Commit { answer, writes } => Step::Commit {
                    writes,
                    answer: Box::new(move |revision| (answer, revision)),
                },
            })
        };
        self.gateway
            .core
            .execute(|| format!("the versions of job {key}"), decide)
            .await
    }
}

fn tag_answer(tagged: &Tagged, index: u64) -> v1::TagJobVersionResponse {
    v1::TagJobVersionResponse {
        tag: Some((&tagged.tag).into()),
        version: tagged.version,
        index,
    }
}

/// Returns the diffs, in the order of `rows`, which are newest first.
fn diffs(
    snapshot: &Snapshot,
    key: &JobKey,
    request: &v1::ListJobVersionsRequest,
    rows: &[&Indexed<Job>],
) -> Result<Vec<v1::JobDiff>, Error> {
    let base = match (request.diff_version, request.diff_tag.as_str()) {
        (Some(version), _) => Some(version),
        (None, "") => None,
        (None, tag) => Some(marks::find_tag(snapshot, key, tag)?),
    };
    let compare = |old: &Job, new: &Job| -> v1::JobDiff {
        let diff: JobDiff = jobdiff::diff(Some(old), Some(new), true);
        (&diff).into()
    };
    if let Some(base) = base {
        let base = marks::find_version(snapshot, key, base)?;
        let all = rows.iter();
        return Ok(all.map(|row| compare(&base.value, &row.value)).collect());
    }
    if !request.diffs {
        return Ok(Vec::new());
    }
    let pairs = rows.windows(2);
    Ok(pairs
        .map(|pair| compare(&pair[1].value, &pair[0].value))
        .collect())
}
