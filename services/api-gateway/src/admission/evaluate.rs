//! Evaluate: has a job looked at once more, and failed allocations replaced whatever their policy
//! says.

use model::{Allocation, ClientStatus, DesiredTransition, Indexed, Job, JobKey, TriggeredBy};
use state::{AllocView, Entity, Key, Snapshot};

use super::launches::{create_eval, evaluated, evaluation};
use super::{Made, Outcome, Refusal, Stamp, refuse_beyond};
use crate::settings::namespaces;
use crate::writes::Write;

/// How many allocations are marked at once: each is written whole, some KiB with its reschedules, and a
/// transaction has 1 MiB. The next call marks the next ones.
pub const MAX_MARKED: usize = 100;

/// How a job is to be looked at once more.
#[derive(Clone, Copy, Debug)]
pub struct EvaluateRequest {
    /// Failed allocations are replaced whatever their policy says.
    pub force_reschedule: bool,
    /// How many evaluations may be open before it is refused.
    pub max_open_evals: usize,
}

/// Decides on an evaluation of `key`.
///
/// # Errors
/// See [`Refusal`].
pub fn evaluate(
    snapshot: &Snapshot,
    key: &JobKey,
    request: EvaluateRequest,
    stamp: &Stamp,
) -> Result<Outcome, Refusal> {
    let stored = snapshot.job(key);
    if let Some(eval) = snapshot.eval(stamp.eval_id) {
        return Ok(Outcome::Done {
            made: Made {
                job_id: key.job_id.to_string(),
                eval_id: Some(stamp.eval_id),
                job_index: stored.map(|job| job.modify_index),
            },
            index: eval.create_index,
        });
    }
    let stored = stored.ok_or_else(|| Refusal::no_such_job(key))?;
    let job = &stored.value;
    if job.is_parent() {
        let (what, instead) = if job.periodic.is_some() {
            ("periodic", "kafila job periodic force")
        } else {
            ("parameterized", "kafila job dispatch")
        };
        let message = format!("can't evaluate {what} job {:?}: use {instead}", job.id);
        return Err(Refusal::state(message));
    }
    refuse_beyond(snapshot, request.max_open_evals)?;
    let triggered_by = TriggeredBy::JobRegister;
    let eval = evaluation(stamp, job, job.job_type, job.priority, triggered_by);
    let made = Made {
        job_id: job.id.clone(),
        eval_id: Some(eval.id),
        job_index: Some(stored.modify_index),
    };
    let mut writes = evaluated(snapshot, stored);
    writes.push(create_eval(eval));
    if !job.stop {
        // What was dead may live again: its namespace and its pool are to be there.
        writes.extend(namespaces::join_as_job(snapshot, job)?);
    }
    if request.force_reschedule {
        let views = snapshot.allocs_by_job(key);
        let failed = views.filter(|view| may_be_forced(stored, view));
        writes.extend(failed.take(MAX_MARKED).map(|view| mark(view, stamp)));
    }
    Ok(Outcome::Commit { writes, made })
}

/// Tells whether a mark makes a difference to an allocation.
fn may_be_forced(job: &Indexed<Job>, view: &AllocView) -> bool {
    let alloc = &view.alloc;
    let group = job.value.task_group(&alloc.task_group);
    view.client_status() == ClientStatus::Failed
        && alloc.next_alloc.is_none()
        && !alloc.transition.force_reschedule
        && alloc.job_create_index == job.create_index
        && group.is_some_and(|group| group.reschedule.is_some())
}

fn mark(view: &AllocView, stamp: &Stamp) -> Write {
    let alloc = Allocation {
        transition: DesiredTransition {
            force_reschedule: true,
            ..view.alloc.transition
        },
        modify_time: stamp.now,
        ..(*view.alloc).clone()
    };
    Write::Update {
        key: Key::Alloc(alloc.id),
        modify_index: view.alloc_modify_index,
        entity: Entity::Alloc(Box::new(alloc)),
    }
}
