//! Dry runs, and the diff of two versions of a job.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

use crate::alloc::Allocation;
use crate::eval::Evaluation;
use crate::metric::AllocMetric;

/// The answer to a dry run; `warnings` are those of the job file as well.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Plan<'a> {
    annotations: Annotations<'a>,
    #[serde(rename = "FailedTGAllocs")]
    failed_task_groups: BTreeMap<&'a str, AllocMetric<'a>>,
    job_modify_index: u64,
    created_evals: Vec<Evaluation<'a>>,
    diff: Option<JobDiff<'a>>,
    warnings: String,
    /// RFC 3339; null: it would not be launched.
    next_periodic_launch: Option<String>,
    index: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Annotations<'a> {
    #[serde(rename = "DesiredTGUpdates")]
    desired_updates: BTreeMap<&'a str, DesiredUpdates>,
    preempted_allocs: Vec<Allocation<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DesiredUpdates {
    ignore: u64,
    place: u64,
    migrate: u64,
    stop: u64,
    in_place_update: u64,
    destructive_update: u64,
    canary: u64,
    preemptions: u64,
    disconnect: u64,
    reconnect: u64,
    reschedule_now: u64,
    reschedule_later: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct JobDiff<'a> {
    r#type: &'static str,
    #[serde(rename = "ID")]
    id: &'a str,
    fields: Vec<FieldDiff<'a>>,
    objects: Vec<ObjectDiff<'a>>,
    task_groups: Vec<TaskGroupDiff<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TaskGroupDiff<'a> {
    r#type: &'static str,
    name: &'a str,
    fields: Vec<FieldDiff<'a>>,
    objects: Vec<ObjectDiff<'a>>,
    tasks: Vec<TaskDiff<'a>>,
    updates: BTreeMap<&'a str, u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TaskDiff<'a> {
    r#type: &'static str,
    name: &'a str,
    fields: Vec<FieldDiff<'a>>,
    objects: Vec<ObjectDiff<'a>>,
    annotations: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectDiff<'a> {
    r#type: &'static str,
    name: &'a str,
    fields: Vec<FieldDiff<'a>>,
    objects: Vec<ObjectDiff<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FieldDiff<'a> {
    r#type: &'static str,
    name: &'a str,
    old: &'a str,
    new: &'a str,
    annotations: &'a [String],
}

impl<'a> Plan<'a> {
    /// `show_diff`: with the diff.
    pub fn new(answer: &'a v1::PlanJobResponse, warnings: &[String], show_diff: bool) -> Self {
        let annotations = answer.annotations.as_ref();
        let updates = annotations.into_iter().flat_map(|all| &all.desired_updates);
        let preempted = annotations
            .into_iter()
            .flat_map(|all| &all.preempted_allocations);
        let failed = answer.failed_task_groups.iter();
        Self {
            annotations: Annotations {
                desired_updates: updates
                    .map(|(group, updates)| (group.as_str(), updates.into()))
                    .collect(),
                preempted_allocs: preempted.map(Into::into).collect(),
            },
            failed_task_groups: failed
                .map(|(group, why)| (group.as_str(), why.into()))
                .collect(),
            job_modify_index: answer.job_modify_index,
            created_evals: all(&answer.created_evaluations),
            diff: answer.diff.as_ref().filter(|_| show_diff).map(Into::into),
            warnings: warnings.join("\n"),
            next_periodic_launch: crate::time::json(answer.next_periodic_launch_ns),
            index: answer.index,
        }
    }
}

fn all<'a, T, J: From<&'a T>>(items: &'a [T]) -> Vec<J> {
    items.iter().map(Into::into).collect()
}

fn word(diff_type: v1::DiffType) -> &'static str {
    match diff_type {
        v1::DiffType::Unspecified | v1::DiffType::None => "None",
        v1::DiffType::Added => "Added",
        v1::DiffType::Deleted => "Deleted",
        v1::DiffType::Edited => "Edited",
    }
}

impl From<&v1::DesiredUpdates> for DesiredUpdates {
    fn from(updates: &v1::DesiredUpdates) -> Self {
        Self {
            ignore: updates.ignore,
            place: updates.place,
            migrate: updates.migrate,
            stop: updates.stop,
            in_place_update: updates.in_place_update,
            destructive_update: updates.destructive_update,
            canary: updates.canary,
            preemptions: updates.preemptions,
            disconnect: updates.disconnect,
            reconnect: updates.reconnect,
            reschedule_now: updates.reschedule_now,
            reschedule_later: updates.reschedule_later,
        }
    }
}

impl<'a> From<&'a v1::JobDiff> for JobDiff<'a> {
    fn from(diff: &'a v1::JobDiff) -> Self {
        Self {
            r#type: word(diff.r#type()),
            id: &diff.id,
            fields: all(&diff.fields),
            objects: all(&diff.objects),
            task_groups: all(&diff.task_groups),
        }
    }
}

impl<'a> From<&'a v1::TaskGroupDiff> for TaskGroupDiff<'a> {
    fn from(diff: &'a v1::TaskGroupDiff) -> Self {
        let updates = diff.updates.iter();
        Self {
            r#type: word(diff.r#type()),
            name: &diff.name,
            fields: all(&diff.fields),
            objects: all(&diff.objects),
            tasks: all(&diff.tasks),
            updates: updates
                .map(|(word, count)| (word.as_str(), *count))
                .collect(),
        }
    }
}

impl<'a> From<&'a v1::TaskDiff> for TaskDiff<'a> {
    fn from(diff: &'a v1::TaskDiff) -> Self {
        Self {
            r#type: word(diff.r#type()),
            name: &diff.name,
            fields: all(&diff.fields),
            objects: all(&diff.objects),
            annotations: &diff.annotations,
        }
    }
}

impl<'a> From<&'a v1::ObjectDiff> for ObjectDiff<'a> {
    fn from(diff: &'a v1::ObjectDiff) -> Self {
        Self {
            r#type: word(diff.r#type()),
            name: &diff.name,
            fields: all(&diff.fields),
            objects: all(&diff.objects),
        }
    }
}

impl<'a> From<&'a v1::FieldDiff> for FieldDiff<'a> {
    fn from(diff: &'a v1::FieldDiff) -> Self {
        Self {
            r#type: word(diff.r#type()),
            name: &diff.name,
            old: &diff.old,
            new: &diff.new,
            annotations: &diff.annotations,
        }
    }
}
