//! Registration: a job and an evaluation in one transaction. An unchanged job only gets the
//! evaluation, unless the request forces a version.

use model::{Evaluation, FieldErrors, Indexed, Job, JobKey, Timestamp, TriggeredBy};
use periodic_launch::first_launch;
use state::{Entity, Key, Snapshot, Write, job_versions};

use super::decision::{Answer, Decision, Proposal, RequestContext};
use super::limits::{check_open_evals, eval_priority};
use super::refusal::{FoundIndex, JobRefusal};
use super::submitted::SubmittedJob;
use super::version_at::{version_at, version_written_by};
use super::writes::{begin, evaluated, evaluation};
use super::{consul_clusters, dispatch, docker_config, namespace_rules};
use crate::cluster::scheduler_config;

/// The options of a registration.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegisterRequest {
    /// Refused unless the job's modify index is this one; 0: unless there is no such job.
    pub check_index: Option<u64>,
    /// 0: the job's.
    pub eval_priority: u32,
    /// Values of the stored job that stay.
    pub preserve: Preserve,
    /// An unchanged job gets a new version, too.
    pub force: bool,
    /// With this many open evaluations it is refused.
    pub max_open_evals: usize,
}

/// Values of the stored job that stay, matched by the names of groups and tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preserve {
    pub counts: bool,
    pub resources: bool,
}

/// Decides on the registration of `job`, which a [`SubmittedJob`] returned.
///
/// # Errors
/// See [`JobRefusal`].
pub fn register(
    snapshot: &Snapshot,
    job: &Job,
    request: &RegisterRequest,
    context: &RequestContext,
) -> Result<Decision, JobRefusal> {
    // First, because the check index would refuse a request that was committed before.
    if let Some(answer) = earlier_answer(snapshot, &job.key(), context) {
        return Ok(Decision::Done(answer));
    }
    if snapshot.scheduler_config().reject_job_registration {
        return Err(JobRefusal::Rejected);
    }
    let mut proposal = propose(snapshot, job, request, context)?;
    // Once registrations are disabled and acknowledged, none is committed any more.
    proposal.writes.push(scheduler_config::guard(snapshot));
    Ok(Decision::Commit(proposal))
}

/// Returns the writes that a dry run of a registration applies to a copy of the state.
///
/// # Errors
/// The job is refused. Open evaluations do not matter, nor whether registrations are disabled: a dry
/// run joins no queue.
pub fn propose_dry_run(
    snapshot: &Snapshot,
    job: &Job,
    context: &RequestContext,
) -> Result<Proposal, JobRefusal> {
    let request = RegisterRequest {
        max_open_evals: usize::MAX,
        ..RegisterRequest::default()
    };
    propose(snapshot, job, &request, context)
}

/// Checks a job file against the namespace and the node pool that it would join. Returns the writes of
/// its registration, whose size the caller checks; none if the stored job of this name refuses them,
/// which is not the file's fault.
///
/// # Errors
/// All invalid fields.
pub fn validate(
    snapshot: &Snapshot,
    submitted: &SubmittedJob,
    context: &RequestContext,
) -> Result<Vec<Write>, FieldErrors> {
    let job = submitted.in_pool(snapshot);
    namespace_rules::admit(snapshot, &job)?;
    docker_config::check(&job)?;
    consul_clusters::check(&job)?;
    let Ok(mut proposal) = propose_dry_run(snapshot, &job, context) else {
        return Ok(Vec::new());
    };
    proposal.writes.push(scheduler_config::guard(snapshot));
    Ok(proposal.writes)
}

/// Returns the writes of a registration, whether registrations are enabled or not.
///
/// # Errors
/// Every [`JobRefusal`] that is about the job.
fn propose(
    snapshot: &Snapshot,
    job: &Job,
    request: &RegisterRequest,
    context: &RequestContext,
) -> Result<Proposal, JobRefusal> {
    let key = job.key();
    let stored = snapshot.job(&key).map(|stored| &**stored);
    check_index(request.check_index, stored)?;
    let priority = eval_priority(request.eval_priority)?.unwrap_or(job.priority);
    let mut owned = with_owned(stored, job);
    if let Some(stored) = stored {
        request.preserve.keep(&stored.value, &mut owned)?;
    }
    let job = &owned;
    check_update(stored, job)?;
    dispatch::check_owned(stored.map(|stored| &stored.value), job)?;
    docker_config::check(job)?;
    consul_clusters::check(job)?;
    let join = namespace_rules::admit(snapshot, job)?;
    check_open_evals(snapshot, request.max_open_evals)?;

    let mut writes = Vec::new();
    if !job.is_parent() {
        let triggered_by = TriggeredBy::JobRegister;
        let eval = evaluation(context, job, job.job_type, priority, triggered_by);
        writes.push(Write::create_eval(eval));
    }
    let changed = match stored {
        Some(stored) if !request.force && !stored.value.spec_differs(job) => {
            writes.extend(evaluated(snapshot, stored));
            false
        }
        _ => {
            writes.extend(version_writes(
                snapshot,
                job,
                stored,
                request.force,
                context,
            ));
            let before = stored.map(|stored| &stored.value);
            writes.extend(begin(snapshot, job, before, context.now));
            true
        }
    };
    writes.extend(join);
    let job_modify_index = stored.map_or(0, |stored| stored.modify_index);
    Ok(Proposal {
        writes,
        is_evaluated: !job.is_parent(),
        changed,
        job_modify_index,
        next_launch: first_launch(job, context.now),
        adds_work: true,
    })
}

/// Returns the writes that make `job` the current one, as a version of its own.
pub(super) fn job_writes(
    snapshot: &Snapshot,
    job: &Job,
    stored: Option<&Indexed<Job>>,
    context: &RequestContext,
) -> Vec<Write> {
    version_writes(snapshot, job, stored, false, context)
}

/// Returns the writes of a version; `is_forced`: ended allocations of earlier ones are replaced.
fn version_writes(
    snapshot: &Snapshot,
    job: &Job,
    stored: Option<&Indexed<Job>>,
    is_forced: bool,
    context: &RequestContext,
) -> Vec<Write> {
    let key = job.key();
    let version = match stored {
        Some(stored) => stored.value.version.saturating_add(1),
        None => snapshot.unused_version(&key),
    };
    let job = Box::new(Job {
        version,
        forced_version: if is_forced {
            Some(version)
        } else {
            job.forced_version
        },
        written_by: job.is_parent().then_some(context.eval_id),
        ..job.clone()
    });
    let mut writes = vec![Write::Create {
        key: Key::JobVersion(key.clone(), version),
        entity: Entity::JobVersion(job.clone()),
    }];
    let entity = Entity::Job(job);
    writes.push(match stored {
        Some(stored) => Write::Update {
            key: Key::Job(key.clone()),
            modify_index: stored.modify_index,
            entity,
        },
        None => Write::Create {
            key: Key::Job(key.clone()),
            entity,
        },
    });
    writes.extend(job_versions::prune(snapshot, &key));
    writes
}

/// Returns `job` with the server-owned fields of the stored job.
fn with_owned(stored: Option<&Indexed<Job>>, job: &Job) -> Job {
    let Some(Indexed { value: stored, .. }) = stored else {
        return job.clone();
    };
    Job {
        parent_id: stored.parent_id.clone(),
        dispatched: stored.dispatched,
        payload: stored.payload.clone(),
        dispatch_token: stored.dispatch_token.clone(),
        forced_version: stored.forced_version,
        ..job.clone()
    }
}

impl Preserve {
    /// Copies the values that stay into `job`.
    ///
    /// # Errors
    /// The total count would be too large.
    fn keep(self, stored: &Job, job: &mut Job) -> Result<(), FieldErrors> {
        for group in &mut job.task_groups {
            let Some(former) = stored.task_groups.iter().find(|it| it.name == group.name) else {
                continue;
            };
            if self.counts {
                group.count = former.count;
            }
            if !self.resources {
                continue;
            }
            for task in &mut group.tasks {
                if let Some(former) = former.tasks.iter().find(|it| it.name == task.name) {
                    task.resources = former.resources.clone();
                }
            }
        }
        let mut errors = FieldErrors::default();
        let counts = job.task_groups.iter().map(|group| u64::from(group.count));
        let total: u64 = counts.sum();
        if self.counts && total > jobspec::MAX_TOTAL_COUNT {
            errors.push(
                "count",
                format!(
                    "with the counts that the stored job has they add up to {total}, more than {}: \
                     scale its groups down first, or register without preserving counts",
                    jobspec::MAX_TOTAL_COUNT
                ),
            );
        }
        errors.into_result(())
    }
}

pub(super) fn check_index(
    want: Option<u64>,
    stored: Option<&Indexed<Job>>,
) -> Result<(), JobRefusal> {
    let Some(want) = want else { return Ok(()) };
    let found = match (want, stored) {
        (0, Some(_)) => FoundIndex::Exists,
        (0, None) => return Ok(()),
        (_, None) => FoundIndex::Missing,
        (_, Some(stored)) if stored.modify_index != want => FoundIndex::Other(stored.modify_index),
        _ => return Ok(()),
    };
    Err(JobRefusal::CheckIndex { want, found })
}

/// Checks changes that an existing job does not allow.
fn check_update(stored: Option<&Indexed<Job>>, job: &Job) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if let Some(stored) = stored.filter(|stored| stored.value.job_type != job.job_type) {
        errors.push(
            "type",
            format!(
                "cannot change from {} to {}: purge the job first, or give this one another id",
                stored.value.job_type.as_str(),
                job.job_type.as_str()
            ),
        );
    }
    let Some(Indexed { value: stored, .. }) = stored else {
        return errors.into_result(());
    };
    let toggles = [
        (
            "periodic",
            stored.periodic.is_some(),
            job.periodic.is_some(),
        ),
        (
            "parameterized",
            stored.parameterized.is_some(),
            job.parameterized.is_some(),
        ),
    ];
    for (field, was, is) in toggles {
        if was != is {
            let verb = if is { "become" } else { "cease to be" };
            let message = format!(
                "job can't {verb} {field} while it is registered: purge it first, or give this \
                 one another id"
            );
            errors.push(field, message);
        }
    }
    if stored.dispatched && stored.spec_differs(job) {
        let message = format!(
            "{:?} was dispatched, and a dispatched job is read-only: change its parent, and \
             dispatch that",
            job.id
        );
        errors.push("id", message);
    }
    errors.into_result(())
}

/// Returns the answer of an earlier attempt of the request, from the objects that it wrote; `None`: it wrote none.
pub(super) fn earlier_answer(
    snapshot: &Snapshot,
    key: &JobKey,
    context: &RequestContext,
) -> Option<Answer> {
    if let Some(eval) = snapshot.eval(context.eval_id) {
        return Some(replay_answer(snapshot, key, eval, context.now));
    }
    let written = version_written_by(snapshot, key, context.eval_id)?;
    Some(Answer {
        eval_id: None,
        index: written.create_index,
        job_modify_index: written.create_index,
        changed: true,
        next_launch: first_launch(&written.value, context.now),
    })
}

/// Returns the answer of a request that wrote `eval`: the same transaction creates a job version and its
/// evaluation, or the version existed before.
fn replay_answer(
    snapshot: &Snapshot,
    key: &JobKey,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
) -> Answer {
    let written = eval.create_index;
    let version = version_at(snapshot, key, written);
    // Its version is gone if the job was purged since; the registration wrote one with its
    // evaluation, unless the job was the same as before.
    let job_modify_index = version.map_or(written, |version| version.create_index);
    Answer {
        eval_id: Some(eval.value.id),
        index: written,
        job_modify_index,
        changed: job_modify_index == written,
        next_launch: version.and_then(|version| first_launch(&version.value, now)),
    }
}
