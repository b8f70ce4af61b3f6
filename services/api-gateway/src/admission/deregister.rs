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
use state::{Entity, Key, Snapshot};

use super::{Answer, Decision, Proposal, Refusal, Stamp, eval_priority, register, versions};
use crate::settings::volumes;
use crate::writes::Write;

/// How many versions a purge deletes at most, two operations each: with the job and the evaluation
/// well below a transaction's 1,000. Versions left over are numbers that a later job of the same
/// id does not use, and go when it is pruned.
const MAX_PURGED_VERSIONS: usize = 400;

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
    let mut eval = Evaluation::pending(
        stamp.eval_id,
        key.clone(),
        // Whatever the job's type: stopping is the same for all. Source: Nomad's public behaviour.
        JobType::Service,
        priority.unwrap_or(stored.value.priority),
        TriggeredBy::JobDeregister,
        stamp.now,
    );
    eval.trace_parent.clone_from(&stamp.trace_parent);
    let mut writes = vec![Write::Create {
        key: Key::Eval(eval.id),
        entity: Entity::Eval(Box::new(eval)),
    }];
    let changed = request.purge || !stored.value.stop;
    if request.purge {
        writes.extend(purge(snapshot, &key, stored));
    } else if stored.value.stop {
        writes.push(Write::RequireUnchanged {
            key: Key::Job(key),
            modify_index: stored.modify_index,
        });
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
        eval_id,
        eval_create_index: written,
        job_modify_index,
        changed: job_modify_index == written,
    }
}
