//! Deregister: tells a job to stop, or forgets it, and has it looked at once more.
//!
//! Allocations are not touched here: they go on until the scheduler, which sees a stopped job or
//! none at all, stops them, so a node's capacity counts as taken until its tasks have ended. A
//! purge leaves the versions that they run, because a node that starts a new stream is told of an
//! allocation together with its job version, and must be able to read that it is to stop. These
//! rows are collected later, with the allocations'.
//! Source: Nomad's public behaviour, but for purge, which there forgets the allocations at once.

use std::collections::BTreeSet;

use model::{EvalId, Evaluation, Indexed, Job, JobKey, JobType, TriggeredBy};
use state::{Key, Snapshot};

use super::launches::{create_eval, evaluation, forget, unchanged};
use super::{Answer, Decision, Proposal, Refusal, Stamp, eval_priority, register, versions};
use crate::settings::volumes;
use crate::writes::Write;

/// How many versions a purge deletes at most, two operations each: with the job and the evaluation
/// well below a transaction's 1,000. Versions left over are numbers that a later job of the same
/// id does not use, and go when it is pruned.
const MAX_PURGED_VERSIONS: usize = 300;

/// How many claims of volumes a purge deletes at most; the cluster-controller deletes the others.
const MAX_PURGED_CLAIMS: usize = 100;

#[derive(Clone, Debug)]
pub struct DeregisterRequest {
    pub job: JobKey,
    pub purge: bool,
    /// 0: the job's.
    pub eval_priority: u32,
}

/// Decides on stopping or purging a job.
///
/// # Errors
/// The evaluation's priority is too high.
pub fn deregister(
    snapshot: &Snapshot,
    request: &DeregisterRequest,
    stamp: &Stamp,
) -> Result<Decision, Refusal> {
    let priority = eval_priority(request.eval_priority)?;
    if let Some(eval) = snapshot.eval(stamp.eval_id) {
        return Ok(Decision::Done(answer_again(
            snapshot,
            request,
            stamp.eval_id,
            eval,
        )));
    }
    let Some(stored) = snapshot.job(&request.job) else {
        return Ok(Decision::NoSuchJob);
    };
    let key = request.job.clone();
    let mut writes = Vec::new();
    // Nothing of a parent runs, and its children go on.
    let is_evaluated = !stored.value.is_parent();
    if is_evaluated {
        let priority = priority.unwrap_or(stored.value.priority);
        // Whatever the job's type: stopping is the same for all. Source: Nomad's public behaviour.
        let (job_type, triggered_by) = (JobType::Service, TriggeredBy::JobDeregister);
        let eval = evaluation(stamp, &stored.value, job_type, priority, triggered_by);
        writes.push(create_eval(eval));
    }
    let changed = request.purge || !stored.value.stop;
    if request.purge {
        writes.extend(purge(snapshot, &key, stored));
        writes.extend(forget(snapshot, stored));
    } else if stored.value.stop {
        writes.push(unchanged(stored));
    } else {
        let stopped = Job {
            stop: true,
            submit_time: stamp.now,
            ..stored.value.clone()
        };
        writes.extend(register::job_writes(snapshot, &stopped, Some(stored)));
    }
    let job_modify_index = stored.modify_index;
    Ok(Decision::Commit(Proposal {
        writes,
        is_evaluated,
        changed,
        job_modify_index,
    }))
}

/// Returns the deletions of a job, of its stable markers, of what its groups claim and of the versions
/// that nothing runs.
fn purge(snapshot: &Snapshot, key: &JobKey, stored: &Indexed<Job>) -> Vec<Write> {
    let mut writes = vec![Write::Delete {
        key: Key::Job(key.clone()),
        modify_index: stored.modify_index,
    }];
    let live = snapshot
        .allocs_by_job(key)
        .filter(|view| !view.is_client_terminal());
    let run: BTreeSet<u64> = live.map(|view| view.alloc.job_version).collect();
    let kept = snapshot.job_versions(key).map(|row| row.value.version);
    writes.push(match snapshot.job_tags(key) {
        Some(tags) => Write::Delete {
            key: Key::JobTags(key.clone()),
            modify_index: tags.modify_index,
        },
        None => versions::tags_unchanged(snapshot, key),
    });
    for version in kept.take(MAX_PURGED_VERSIONS) {
        let deletions = versions::deletions(snapshot, key, version);
        let is_run = run.contains(&version);
        let goes = |write: &Write| !(is_run && matches!(write.key(), Key::JobVersion(..)));
        writes.extend(deletions.into_iter().filter(goes));
    }
    let claims = snapshot.volume_claims_of(key).take(MAX_PURGED_CLAIMS);
    writes.extend(claims.map(|claim| volumes::delete_claim(claim)));
    writes
}

/// Returns what an attempt whose answer was lost would have been answered with.
fn answer_again(
    snapshot: &Snapshot,
    request: &DeregisterRequest,
    eval_id: EvalId,
    eval: &Indexed<Evaluation>,
) -> Answer {
    let written = eval.create_index;
    let indexes = snapshot
        .job_versions(&request.job)
        .map(|version| version.create_index);
    let last = indexes.filter(|index| *index <= written).max();
    let job_modify_index = if request.purge {
        written
    } else {
        last.unwrap_or(written)
    };
    Answer {
        eval_id: Some(eval_id),
        index: written,
        job_modify_index,
        changed: job_modify_index == written,
    }
}
