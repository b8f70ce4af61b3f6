//! Jobs: wrapped, in versions, and as the stubs of a list. A job itself is written by the crate `job-fields`.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

use crate::plan::JobDiff;

/// A job as `job inspect` prints it, in a form that `job run -json` reads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Wrapped<T> {
    pub job: T,
}

/// A job's history with its differences.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Versions<'a> {
    pub versions: Vec<v1::Job>,
    pub diffs: Vec<JobDiff<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct JobStub<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    #[serde(rename = "ParentID")]
    parent_id: &'a str,
    name: &'a str,
    namespace: &'a str,
    r#type: &'a str,
    priority: u32,
    periodic: bool,
    parameterized_job: bool,
    stop: bool,
    status: &'a str,
    version: u64,
    job_summary: JobSummary<'a>,
    create_index: u64,
    modify_index: u64,
    submit_time: u64,
}

impl<'a> From<&'a v1::JobStub> for JobStub<'a> {
    fn from(job: &'a v1::JobStub) -> Self {
        let summary = job.summary.as_ref();
        Self {
            id: &job.id,
            name: &job.name,
            namespace: &job.namespace,
            r#type: &job.r#type,
            priority: job.priority,
            parent_id: &job.parent_id,
            periodic: job.periodic,
            parameterized_job: job.parameterized,
            stop: job.stop,
            status: &job.status,
            version: job.version,
            job_summary: JobSummary::new(&job.namespace, &job.id, summary),
            create_index: job.create_index,
            modify_index: job.modify_index,
            submit_time: job.submit_time_ns,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct JobSummary<'a> {
    #[serde(rename = "JobID")]
    job_id: &'a str,
    namespace: &'a str,
    summary: BTreeMap<&'a str, TaskGroupSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Children>,
}

/// Of periodic and parameterized jobs only.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Children {
    pending: u32,
    running: u32,
    dead: u32,
}

impl<'a> JobSummary<'a> {
    fn new(namespace: &'a str, job_id: &'a str, summary: Option<&'a v1::JobSummary>) -> Self {
        let groups = summary.into_iter().flat_map(|summary| &summary.task_groups);
        Self {
            job_id,
            namespace,
            summary: groups
                .map(|(group, counts)| (group.as_str(), counts.into()))
                .collect(),
            children: summary
                .and_then(|summary| summary.children)
                .map(|children| Children {
                    pending: children.pending,
                    running: children.running,
                    dead: children.dead,
                }),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TaskGroupSummary {
    queued: u32,
    complete: u32,
    failed: u32,
    running: u32,
    starting: u32,
    lost: u32,
    unknown: u32,
}

impl From<&v1::TaskGroupSummary> for TaskGroupSummary {
    fn from(counts: &v1::TaskGroupSummary) -> Self {
        Self {
            queued: counts.queued,
            complete: counts.complete,
            failed: counts.failed,
            running: counts.running,
            starting: counts.starting,
            lost: counts.lost,
            unknown: counts.unknown,
        }
    }
}
