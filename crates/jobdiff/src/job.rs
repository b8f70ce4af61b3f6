//! The diff of two jobs, their task groups and their tasks.

use std::collections::BTreeMap;

use job_fields::fields::{self, Message};
use model::Job;
use serde_json::{Map, Value};

use crate::compare::{Differences, diff_type, paired};
use crate::shape::Shape;
use crate::tree::{DiffType, JobDiff, TaskDiff, TaskGroupDiff};

/// Returns the differences between two versions of a job; `None` stands for no job.
///
/// With `contextual`, groups and tasks without differences are listed as well, and objects with
/// differences list their unchanged fields too.
///
/// Versions and times of submission do not count, nor does the order of groups, tasks, datacenters,
/// constraints, affinities and spreads.
pub fn diff(old: Option<&Job>, new: Option<&Job>, contextual: bool) -> JobDiff {
    let (old, new) = (old.map(job), new.map(job));
    let (old, new) = (old.as_ref(), new.as_ref());
    let own = own(old, new, contextual);
    let mut task_groups = parts(old, new, |old, new| group(old, new, contextual));
    let is_same = |group: &TaskGroupDiff| group.diff_type == DiffType::None;
    let all_same = own.is_empty() && task_groups.iter().all(is_same);
    if !contextual {
        task_groups.retain(|group| !is_same(group));
    }
    JobDiff {
        id: name(old, new),
        diff_type: diff_type(old, new, all_same),
        fields: own.fields,
        objects: own.objects,
        task_groups,
    }
}

fn group(old: Option<&Part>, new: Option<&Part>, contextual: bool) -> TaskGroupDiff {
    let own = own(old, new, contextual);
    let mut tasks = parts(old, new, |old, new| task(old, new, contextual));
    let is_same = |task: &TaskDiff| task.diff_type == DiffType::None;
    let all_same = own.is_empty() && tasks.iter().all(is_same);
    if !contextual {
        tasks.retain(|task| !is_same(task));
    }
    TaskGroupDiff {
        name: name(old, new),
        diff_type: diff_type(old, new, all_same),
        fields: own.fields,
        objects: own.objects,
        tasks,
        updates: BTreeMap::new(),
    }
}

fn task(old: Option<&Part>, new: Option<&Part>, contextual: bool) -> TaskDiff {
    let own = own(old, new, contextual);
    TaskDiff {
        name: name(old, new),
        diff_type: diff_type(old, new, own.is_empty()),
        fields: own.fields,
        objects: own.objects,
        annotations: Vec::new(),
    }
}

/// A job, a task group or a task.
struct Part {
    name: String,
    shape: Shape,
    /// The groups of a job, the tasks of a group.
    parts: Vec<Part>,
}

/// Returns the job as it is compared: the canonical one, in the JSON of the HTTP API.
fn job(job: &Job) -> Part {
    let json =
        serde_json::to_value(job_fields::Job::from(job)).expect("a job has only JSON's types");
    let mut groups = Vec::new();
    for json in list(&json, "TaskGroups") {
        let tasks = list(json, "Tasks").iter();
        let tasks = tasks.map(|task| part(&fields::TASK, "Name", task, Vec::new()));
        groups.push(part(&fields::TASK_GROUP, "Name", json, tasks.collect()));
    }
    part(&fields::JOB, "ID", &json, groups)
}

fn list<'a>(json: &'a Value, key: &str) -> &'a [Value] {
    json[key].as_array().map_or(&[], Vec::as_slice)
}

fn part(message: &'static Message, label: &str, json: &Value, parts: Vec<Part>) -> Part {
    let none = Map::new();
    Part {
        name: json[label].as_str().unwrap_or_default().to_owned(),
        shape: Shape::of(message.name, message, json.as_object().unwrap_or(&none)),
        parts,
    }
}

fn name(old: Option<&Part>, new: Option<&Part>) -> String {
    new.or(old).map_or(String::new(), |part| part.name.clone())
}

fn own(old: Option<&Part>, new: Option<&Part>, contextual: bool) -> Differences {
    let shape = |part: Option<&Part>| part.map(|part| part.shape.clone());
    Differences::of(shape(old).as_ref(), shape(new).as_ref(), contextual)
}

/// Compares the parts of two parts, ordered by name.
fn parts<D>(
    old: Option<&Part>,
    new: Option<&Part>,
    compare: impl Fn(Option<&Part>, Option<&Part>) -> D,
) -> Vec<D> {
    let pairs = paired(parts_of(old), parts_of(new), |part| part.name.as_str());
    pairs
        .into_values()
        .map(|(old, new)| compare(old, new))
        .collect()
}

fn parts_of(part: Option<&Part>) -> &[Part] {
    part.map_or(&[], |part| &part.parts)
}
