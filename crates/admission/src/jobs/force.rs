//! Forced launch of a periodic job, even if it overlaps with an earlier one.

use model::{JobKey, Timestamp};
use state::{Snapshot, Write, set_trace_parent};

use super::decision::{Outcome, Receipt, RequestContext};
use super::limits::check_open_evals;
use super::missing::find_job;
use super::namespace_rules;
use super::refusal::JobRefusal;

/// Decides on launching `key` now; with `max_open_evals` open evaluations it is refused.
///
/// The launch record is compared and moved as in any launch, so that the cluster-controller does not
/// launch the same second.
///
/// # Errors
/// See [`JobRefusal`].
pub fn force(
    snapshot: &Snapshot,
    key: &JobKey,
    max_open_evals: usize,
    context: &RequestContext,
) -> Result<Outcome, JobRefusal> {
    if let Some(eval) = snapshot.eval(context.eval_id) {
        let job_index = snapshot.job(&eval.value.job).map(|job| job.create_index);
        return Ok(Outcome::Done {
            receipt: Receipt {
                job_id: eval.value.job.job_id.to_string(),
                eval_id: Some(context.eval_id),
                job_index,
            },
            index: eval.create_index,
        });
    }
    let stored = find_job(snapshot, key)?;
    let job = &stored.value;
    let job_id = &job.id;
    if job.periodic.is_none() {
        let message = format!("can't force launch non-periodic job {job_id:?}: dispatch or run it");
        return Err(JobRefusal::state(message));
    }
    if job.parameterized.is_some() && !job.dispatched {
        let message = format!(
            "job {job_id:?} is parameterized too, so its dispatches are launched: dispatch it first"
        );
        return Err(JobRefusal::state(message));
    }
    if job.stop {
        let message = format!("job {job_id:?} is stopped: run it again first");
        return Err(JobRefusal::state(message));
    }
    check_open_evals(snapshot, max_open_evals)?;
    let at = Timestamp::from_secs(context.now.as_secs());
    let launch = periodic_launch::launch(snapshot, job, at, context.eval_id, context.now);
    let Some((child, _)) = launch.child.clone() else {
        let message = format!("job {job_id:?} was launched within this very second: try again");
        return Err(JobRefusal::state(message));
    };
    let receipt = Receipt {
        job_id: child.id.clone(),
        eval_id: Some(context.eval_id),
        job_index: None,
    };
    let mut writes = launch.into_writes();
    set_trace_parent(&mut writes, &context.trace_parent);
    writes.push(Write::job_unchanged(stored));
    writes.extend(namespace_rules::require_for_job(snapshot, &child)?);
    Ok(Outcome::Commit {
        writes,
        receipt,
        adds_work: true,
    })
}
