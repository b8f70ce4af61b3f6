//! Evaluation of a job by request, optionally with failed allocations rescheduled regardless of their
//! policy.

use model::{ClientStatus, DesiredTransition, Indexed, Job, JobKey, TriggeredBy};
use state::{AllocView, Snapshot, Write};

use super::decision::{Outcome, Receipt, RequestContext};
use super::limits::check_open_evals;
use super::missing::NoSuchJob;
use super::namespace_rules;
use super::refusal::JobRefusal;
use super::writes::{evaluated, evaluation, transition_to};

/// The largest number of allocations that one request marks: each is written whole, some KiB with
/// its reschedules, and a transaction has 1 MiB. The next request marks further ones.
pub const MAX_MARKED: usize = 100;

/// The options of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct EvaluateRequest {
    /// Failed allocations are replaced regardless of their reschedule policy.
    pub force_reschedule: bool,
    /// With this many open evaluations it is refused.
    pub max_open_evals: usize,
}

/// Decides on an evaluation of `key`.
///
/// # Errors
/// See [`JobRefusal`].
pub fn evaluate(
    snapshot: &Snapshot,
    key: &JobKey,
    request: EvaluateRequest,
    context: &RequestContext,
) -> Result<Outcome, JobRefusal> {
    let stored = snapshot.job(key);
    if let Some(eval) = snapshot.eval(context.eval_id) {
        return Ok(Outcome::Done {
            receipt: Receipt {
                job_id: key.job_id.to_string(),
                eval_id: Some(context.eval_id),
                job_index: stored.map(|job| job.modify_index),
            },
            index: eval.create_index,
        });
    }
    let stored = stored.ok_or_else(|| NoSuchJob::new(snapshot, key))?;
    let job = &stored.value;
    if job.is_parent() {
        let (what, instead) = if job.periodic.is_some() {
            ("periodic", "kafila job periodic force")
        } else {
            ("parameterized", "kafila job dispatch")
        };
        let message = format!("can't evaluate {what} job {:?}: use {instead}", job.id);
        return Err(JobRefusal::state(message));
    }
    check_open_evals(snapshot, request.max_open_evals)?;
    let triggered_by = TriggeredBy::JobRegister;
    let eval = evaluation(context, job, job.job_type, job.priority, triggered_by);
    let receipt = Receipt {
        job_id: job.id.clone(),
        eval_id: Some(eval.id),
        job_index: Some(stored.modify_index),
    };
    let mut writes = evaluated(snapshot, stored);
    writes.push(Write::create_eval(eval));
    if !job.stop {
        // A dead job may run again, so its namespace and its pool have to exist.
        writes.extend(namespace_rules::require_for_job(snapshot, job)?);
    }
    if request.force_reschedule {
        let views = snapshot.allocs_by_job(key);
        let failed = views.filter(|view| may_be_forced(stored, view));
        writes.extend(failed.take(MAX_MARKED).map(|view| mark(view, context)));
    }
    // The job has been accepted already.
    Ok(Outcome::Commit {
        writes,
        receipt,
        adds_work: false,
    })
}

/// Tells whether the mark affects an allocation.
fn may_be_forced(job: &Indexed<Job>, view: &AllocView) -> bool {
    let alloc = &view.alloc;
    let group = job.value.task_group(&alloc.task_group);
    view.client_status() == ClientStatus::Failed
        && alloc.next_alloc.is_none()
        && !alloc.transition.force_reschedule
        && alloc.job_create_index == job.create_index
        && group.is_some_and(|group| group.reschedule.is_some())
}

fn mark(view: &AllocView, context: &RequestContext) -> Write {
    let transition = DesiredTransition {
        force_reschedule: true,
        ..view.alloc.transition
    };
    transition_to(view, transition, context.now)
}
