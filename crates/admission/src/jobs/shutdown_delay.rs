//! Stops without shutdown delays: marks of allocations, which their nodes read with the stop, or while
//! they wait.

use model::{DesiredTransition, JobKey, Timestamp};
use state::{AllocView, Snapshot, Write};

use super::evaluate::MAX_MARKED;
use super::writes::transition_to;

/// Returns the marks of the job's allocations that would wait before their tasks end, at most
/// [`MAX_MARKED`]. Allocations that are newer than `until_index` are those of a later job or start.
pub fn skip_delays(
    snapshot: &Snapshot,
    job: &JobKey,
    until_index: u64,
    now: Timestamp,
) -> Vec<Write> {
    let views = snapshot.allocs_by_job(job);
    let waiting = views.filter(|view| view.create_index <= until_index && waits(snapshot, view));
    let marks = waiting.take(MAX_MARKED).map(|view| {
        let transition = DesiredTransition {
            no_shutdown_delay: true,
            ..view.alloc.transition
        };
        transition_to(view, transition, now)
    });
    marks.collect()
}

/// Tells whether a stop of the allocation has delays.
fn waits(snapshot: &Snapshot, view: &AllocView) -> bool {
    let alloc = &view.alloc;
    if view.is_client_terminal() || alloc.transition.no_shutdown_delay {
        return false;
    }
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
    let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
    group.is_some_and(|group| {
        let tasks = group.tasks.iter().map(|task| task.shutdown_delay);
        let mut delays = tasks.chain([group.shutdown_delay]);
        delays.any(|delay| !delay.is_zero())
    })
}
