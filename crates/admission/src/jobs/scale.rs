//! Scaling of a group: its count and a scaling event in one transaction.

use std::collections::BTreeMap;

use model::job::JobType;
use model::{
    DeploymentId, FieldErrors, Indexed, Job, JobKey, ScalingEvent, ScalingEvents, TaskGroup,
    TriggeredBy,
};
use state::{Entity, Key, Snapshot, Write};

use super::decision::{Outcome, Receipt, RequestContext};
use super::limits::check_open_evals;
use super::missing::find_job;
use super::refusal::JobRefusal;
use super::version_at::version_at;
use super::writes::{evaluated, evaluation};
use super::{namespace_rules, register};
use crate::cluster::scheduler_config;

/// The size limits of one event, in bytes: a group's key holds twenty events.
const MAX_MESSAGE_BYTES: usize = 4_096;
const MAX_META_BYTES: usize = 4_096;

#[derive(Clone, Debug)]
pub struct ScaleRequest {
    pub job: JobKey,
    pub group: String,
    /// `None`: only the event is recorded.
    pub count: Option<u32>,
    pub message: String,
    pub error: bool,
    pub meta: BTreeMap<String, String>,
    /// Refused unless the job's modify index is this one; 0: any.
    pub check_index: u64,
    /// With this many open evaluations it is refused.
    pub max_open_evals: usize,
}

/// Decides on scaling a group.
///
/// # Errors
/// See [`JobRefusal`].
pub fn scale(
    snapshot: &Snapshot,
    request: &ScaleRequest,
    context: &RequestContext,
) -> Result<Outcome, JobRefusal> {
    if let Some(eval) = snapshot.eval(context.eval_id) {
        return Ok(again(snapshot, request, context, eval.create_index));
    }
    if snapshot.scheduler_config().reject_job_registration {
        return Err(JobRefusal::Rejected);
    }
    let stored = find_job(snapshot, &request.job)?;
    if request.check_index > 0 {
        register::check_index(Some(request.check_index), Some(stored))?;
    }
    let group = check(&stored.value, request)?;
    let mut writes = vec![scheduler_config::guard(snapshot)];
    let mut event = ScalingEvent {
        time: context.now,
        count: request.count,
        previous_count: group.count,
        message: request.message.clone(),
        error: request.error,
        meta: request.meta.clone(),
        ..ScalingEvent::default()
    };
    let mut receipt = Receipt {
        job_id: stored.value.id.clone(),
        eval_id: None,
        job_index: Some(stored.modify_index),
    };
    let Some(count) = request.count else {
        writes.push(Write::job_unchanged(stored));
        writes.push(record(snapshot, stored, request, event));
        return Ok(Outcome::Commit {
            writes,
            receipt,
            adds_work: false,
        });
    };
    if let Some(deployment_id) = active_deployment(snapshot, stored) {
        let message = format!(
            "job scaling blocked due to active deployment {deployment_id}: wait for it, or end it \
             with 'kafila deployment fail {deployment_id}'"
        );
        return Err(JobRefusal::state(message));
    }
    // A dead job may run again, so its namespace and its pool have to exist.
    writes.extend(namespace_rules::require_for_job(snapshot, &stored.value)?);
    check_open_evals(snapshot, request.max_open_evals)?;
    if count == group.count {
        writes.extend(evaluated(snapshot, stored));
    } else {
        let job = scaled(&stored.value, request, count, context);
        writes.extend(register::job_writes(snapshot, &job, Some(stored), context));
        receipt.job_index = None;
    }
    if !stored.value.is_parent() {
        let (job, triggered_by) = (&stored.value, TriggeredBy::JobScaling);
        let eval = evaluation(context, job, job.job_type, job.priority, triggered_by);
        receipt.eval_id = Some(eval.id);
        event.eval_id = Some(eval.id);
        writes.push(Write::create_eval(eval));
    }
    writes.push(record(snapshot, stored, request, event));
    Ok(Outcome::Commit {
        writes,
        receipt,
        adds_work: count > group.count,
    })
}

/// Returns the answer of an earlier attempt that was committed at `index`.
fn again(
    snapshot: &Snapshot,
    request: &ScaleRequest,
    context: &RequestContext,
    index: u64,
) -> Outcome {
    let version = version_at(snapshot, &request.job, index);
    Outcome::Done {
        receipt: Receipt {
            job_id: request.job.job_id.to_string(),
            eval_id: Some(context.eval_id),
            job_index: version.map(|version| version.create_index),
        },
        index,
    }
}

fn scaled(job: &Job, request: &ScaleRequest, count: u32, context: &RequestContext) -> Job {
    let mut job = job.clone();
    job.submit_time = context.now;
    let mut groups = job.task_groups.iter_mut();
    if let Some(group) = groups.find(|group| group.name == request.group) {
        group.count = count;
    }
    job
}

/// Returns the deployment that blocks scaling: a new count would contradict its own counts.
///
/// Source: Nomad's public behaviour: a paused one is active.
fn active_deployment(snapshot: &Snapshot, job: &Indexed<Job>) -> Option<DeploymentId> {
    let key = job.value.key();
    let mut deployments = snapshot.deployments_by_job(&key);
    let active = deployments.find(|deployment| {
        deployment.value.status.is_active() && deployment.value.job_create_index == job.create_index
    });
    active.map(|deployment| deployment.value.id)
}

/// Checks the request, and returns its group. Source: Nomad's texts.
fn check<'a>(job: &'a Job, request: &ScaleRequest) -> Result<&'a TaskGroup, FieldErrors> {
    let mut errors = FieldErrors::default();
    if request.group.is_empty() {
        let message = "missing task group name for scaling action: want one of the job's groups";
        errors.push("task_group", message);
    }
    if request.error && request.count.is_some() {
        let message = "scaling action should not contain count if error is true: leave one out";
        errors.push("count", message);
    }
    if request.message.len() > MAX_MESSAGE_BYTES {
        let message = format!(
            "has {} bytes: want at most {MAX_MESSAGE_BYTES}",
            request.message.len()
        );
        errors.push("message", message);
    }
    let meta = request.meta.iter();
    let bytes: usize = meta.map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_META_BYTES {
        errors.push(
            "meta",
            format!("has {bytes} bytes: want at most {MAX_META_BYTES}"),
        );
    }
    let group = job.task_group(&request.group);
    if let Some(group) = group {
        check_count(job, group, request, &mut errors);
    } else if !request.group.is_empty() {
        let names: Vec<&str> = job
            .task_groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        let message = format!(
            "task group {:?} specified for scaling does not exist in job: it has {}",
            request.group,
            names.join(", "),
        );
        errors.push("task_group", message);
    }
    errors.into_result(())?;
    Ok(group.expect("a group that is missing is an error"))
}

fn check_count(job: &Job, group: &TaskGroup, request: &ScaleRequest, errors: &mut FieldErrors) {
    let Some(count) = request.count else { return };
    if job.job_type == JobType::System && count > 1 {
        let message = "jobs of type \"system\" can only be scaled between 0 and 1: want 0 or 1";
        errors.push("count", message);
    }
    if let Some(scaling) = &group.scaling {
        if count < scaling.min {
            let message = format!(
                "group count was less than scaling policy minimum: {count} < {}: want more",
                scaling.min
            );
            errors.push("count", message);
        }
        if count > scaling.max {
            let message = format!(
                "group count was greater than scaling policy maximum: {count} > {}: want less",
                scaling.max
            );
            errors.push("count", message);
        }
    }
    let groups = job.task_groups.iter();
    let others = groups.filter(|other| other.name != group.name);
    let total: u64 = others.map(|other| u64::from(other.count)).sum();
    let total = total + u64::from(count);
    if total > jobspec::MAX_TOTAL_COUNT {
        let limit = jobspec::MAX_TOTAL_COUNT;
        let message =
            format!("the counts of all groups would add up to {total}, more than {limit}");
        errors.push("count", message);
    }
}

/// Returns the write that adds `event` as the group's newest.
fn record(
    snapshot: &Snapshot,
    job: &Indexed<Job>,
    request: &ScaleRequest,
    event: ScalingEvent,
) -> Write {
    let key = Key::ScalingEvents(request.job.clone(), request.group.clone());
    let mut events = ScalingEvents {
        job_create_index: job.create_index,
        ..ScalingEvents::default()
    };
    let stored = snapshot.scaling_events(&request.job, &request.group);
    let written = stored.map_or(0, |stored| stored.modify_index);
    // Events of an earlier job of the same id are dropped.
    let own = stored.filter(|stored| stored.value.job_create_index == job.create_index);
    if let Some(own) = own {
        events = own.value.clone();
    }
    events.push(event, written);
    let entity = Entity::ScalingEvents(Box::new(events));
    match stored {
        Some(stored) => Write::Update {
            key,
            modify_index: stored.modify_index,
            entity,
        },
        None => Write::Create { key, entity },
    }
}
