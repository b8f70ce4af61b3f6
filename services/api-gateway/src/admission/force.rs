//! Force: launches a periodic job now, whether it overlaps or not.

use model::{JobKey, Timestamp};
use state::Snapshot;
use upkeep::periodic;

use super::launches::{create_eval, create_job, put_record, unchanged};
use super::{Made, Outcome, Refusal, Stamp, refuse_beyond};
use crate::settings::namespaces;

/// Decides on launching `key` now; `max_open_evals` is how many evaluations may be open before it is
/// refused.
///
/// The launch record is compared and moved as in any launch, so that the clock does not launch the
/// same second.
///
/// # Errors
/// See [`Refusal`].
pub fn force(
    snapshot: &Snapshot,
    key: &JobKey,
    max_open_evals: usize,
    stamp: &Stamp,
) -> Result<Outcome, Refusal> {
    if let Some(eval) = snapshot.eval(stamp.eval_id) {
        let job_index = snapshot.job(&eval.value.job).map(|job| job.create_index);
        return Ok(Outcome::Done {
            made: Made {
                job_id: eval.value.job.job_id.to_string(),
                eval_id: Some(stamp.eval_id),
                job_index,
            },
            index: eval.create_index,
        });
    }
    let stored = snapshot.job(key).ok_or_else(|| Refusal::no_such_job(key))?;
    let job = &stored.value;
    let job_id = &job.id;
    if job.periodic.is_none() {
        let message = format!("can't force launch non-periodic job {job_id:?}: dispatch or run it");
        return Err(Refusal::state(message));
    }
    if job.parameterized.is_some() && !job.dispatched {
        let message = format!(
            "job {job_id:?} is parameterized too, so its dispatches are launched: dispatch it first"
        );
        return Err(Refusal::state(message));
    }
    if job.stop {
        let message = format!("job {job_id:?} is stopped: run it again first");
        return Err(Refusal::state(message));
    }
    refuse_beyond(snapshot, max_open_evals)?;
    let at = Timestamp::from_secs(stamp.now.as_secs());
    let launch = periodic::launch(snapshot, job, at, stamp.eval_id, stamp.now);
    let Some((child, mut eval)) = launch.child else {
        let message = format!("job {job_id:?} was launched within this very second: try again");
        return Err(Refusal::state(message));
    };
    eval.trace_parent.clone_from(&stamp.trace_parent);
    let made = Made {
        job_id: child.id.clone(),
        eval_id: Some(eval.id),
        job_index: None,
    };
    let mut writes = vec![
        unchanged(stored),
        create_eval(eval),
        put_record(key.clone(), launch.record, launch.record_index),
    ];
    writes.extend(namespaces::join_as_job(snapshot, &child)?);
    writes.extend(create_job(child));
    Ok(Outcome::Commit { writes, made })
}
