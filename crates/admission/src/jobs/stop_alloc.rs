//! Stop of one allocation by request: its transition asks the scheduler to stop and replace it.

use model::{AllocId, ClientStatus, DesiredTransition, TriggeredBy};
use state::{AllocView, Snapshot, Write};

use super::decision::{Outcome, Receipt, RequestContext};
use super::limits::check_open_evals;
use super::refusal::JobRefusal;
use super::writes::{evaluated, evaluation, transition_to};

/// Decides on the stop of `alloc_id`, which skips the shutdown delays if `no_shutdown_delay` is set, also
/// those of an allocation that is being stopped. With `max_open_evals` open evaluations it is refused.
///
/// # Errors
/// There is no such allocation, it has ended, its job is purged, or too many evaluations are open.
pub fn stop_alloc(
    snapshot: &Snapshot,
    alloc_id: AllocId,
    no_shutdown_delay: bool,
    max_open_evals: usize,
    context: &RequestContext,
) -> Result<Outcome, JobRefusal> {
    let Some(view) = snapshot.alloc(alloc_id) else {
        return Err(JobRefusal::state(format!(
            "allocation {alloc_id} has been garbage collected"
        )));
    };
    let stored = snapshot.job(&view.alloc.job_key());
    if let Some(eval) = snapshot.eval(context.eval_id) {
        return Ok(Outcome::Done {
            receipt: Receipt {
                job_id: view.alloc.job_id.to_string(),
                eval_id: Some(context.eval_id),
                job_index: stored.map(|job| job.modify_index),
            },
            index: eval.create_index,
        });
    }
    if let Some(reason) = ended(view, no_shutdown_delay) {
        return Err(JobRefusal::state(format!(
            "allocation {alloc_id} {reason}: there is nothing to stop"
        )));
    }
    let stored = stored.ok_or_else(|| {
        JobRefusal::state(format!(
            "the job of allocation {alloc_id} is purged, so its allocations are being stopped already"
        ))
    })?;
    check_open_evals(snapshot, max_open_evals)?;
    let job = &stored.value;
    let triggered_by = TriggeredBy::AllocStop;
    let eval = evaluation(context, job, job.job_type, job.priority, triggered_by);
    let receipt = Receipt {
        job_id: job.id.clone(),
        eval_id: Some(eval.id),
        job_index: Some(stored.modify_index),
    };
    let mut writes = evaluated(snapshot, stored);
    writes.push(Write::create_eval(eval));
    writes.push(mark(view, no_shutdown_delay, context));
    Ok(Outcome::Commit {
        writes,
        receipt,
        adds_work: false,
    })
}

/// Returns the state of an allocation that cannot be stopped any more. While it is being stopped, it can
/// be stopped without delays once.
fn ended(view: &AllocView, no_shutdown_delay: bool) -> Option<String> {
    let status = view.client_status();
    if status.is_terminal() {
        return Some(format!("has ended already ({})", status.as_str()));
    }
    let is_stopping = view.alloc.is_server_terminal() && status != ClientStatus::Unknown;
    let ends_delay = no_shutdown_delay && !view.alloc.transition.no_shutdown_delay;
    (is_stopping && !ends_delay).then(|| "is being stopped already".to_owned())
}

fn mark(view: &AllocView, no_shutdown_delay: bool, context: &RequestContext) -> Write {
    let set = view.alloc.transition;
    let transition = DesiredTransition {
        migrate: true,
        no_shutdown_delay: no_shutdown_delay || set.no_shutdown_delay,
        ..set
    };
    transition_to(view, transition, context.now)
}
