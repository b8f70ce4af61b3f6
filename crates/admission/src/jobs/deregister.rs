//! Deregistration: a job is stopped or purged, and evaluated.
//!
//! Allocations are not changed here. The scheduler stops them when it finds the job stopped or
//! missing, so a node's capacity is used until its tasks have ended. A purge keeps the versions that
//! they run: a new stream sends a node each allocation with its job version, which the node needs to
//! stop it. These versions are collected later, with the allocations.
//! Source: Nomad's public behaviour, except that its purge deletes the allocations at once.

use std::collections::BTreeSet;

use model::{EvalId, Evaluation, Indexed, Job, JobKey, JobType, TriggeredBy};
use state::{Key, Snapshot, Write, job_versions};

use super::decision::{Answer, Decision, Proposal, RequestContext};
use super::limits::eval_priority;
use super::refusal::JobRefusal;
use super::register;
use super::request_id::Verb;
use super::shutdown_delay::skip_delays;
use super::version_at::{version_at, version_written_by};
use super::writes::{evaluation, forget};
use crate::cluster::volumes;

/// The largest number of versions that a purge deletes, two operations each: with the job and the
/// evaluation well below a transaction's 1,000. A later job of the same id does not reuse the
/// numbers of the rest, and prunes them.
const MAX_PURGED_VERSIONS: usize = 300;

/// The largest number of volume claims that a purge deletes; the cluster-controller deletes the
/// others.
const MAX_PURGED_CLAIMS: usize = 100;

#[derive(Clone, Debug)]
pub struct DeregisterRequest {
    pub job: JobKey,
    pub purge: bool,
    /// 0: the job's.
    pub eval_priority: u32,
    /// Skips the shutdown delays of its allocations: of [`MAX_MARKED`] with this decision, of the others
    /// by [`skip_delays`].
    ///
    /// [`MAX_MARKED`]: super::evaluate::MAX_MARKED
    pub no_shutdown_delay: bool,
}

impl DeregisterRequest {
    pub fn verb(&self) -> Verb {
        if self.purge { Verb::Purge } else { Verb::Stop }
    }
}

/// Decides on stopping or purging a job.
///
/// # Errors
/// The evaluation's priority is too high.
pub fn deregister(
    snapshot: &Snapshot,
    request: &DeregisterRequest,
    context: &RequestContext,
) -> Result<Decision, JobRefusal> {
    let priority = eval_priority(request.eval_priority)?;
    if let Some(eval) = snapshot.eval(context.eval_id) {
        return Ok(Decision::Done(replay_answer(
            snapshot,
            request,
            context.eval_id,
            eval,
        )));
    }
    // Of a parent, which gets no evaluation. It may have been registered again since.
    if let Some(written) = version_written_by(snapshot, &request.job, context.eval_id) {
        return Ok(Decision::Done(Answer {
            eval_id: None,
            index: written.create_index,
            job_modify_index: written.create_index,
            changed: true,
            next_launch: None,
        }));
    }
    let Some(stored) = snapshot.job(&request.job) else {
        return Ok(Decision::NoSuchJob);
    };
    let key = request.job.clone();
    let mut writes = Vec::new();
    // A parent has no allocations, and its children go on.
    let is_evaluated = !stored.value.is_parent();
    if is_evaluated {
        let priority = priority.unwrap_or(stored.value.priority);
        // Stopping is the same for all job types. Source: Nomad's public behaviour.
        let (job_type, triggered_by) = (JobType::Service, TriggeredBy::JobDeregister);
        let eval = evaluation(context, &stored.value, job_type, priority, triggered_by);
        writes.push(Write::create_eval(eval));
    }
    let changed = request.purge || !stored.value.stop;
    if request.purge {
        writes.extend(purge(snapshot, &key, stored));
        writes.extend(forget(snapshot, stored));
    } else if stored.value.stop {
        writes.push(Write::job_unchanged(stored));
    } else {
        let stopped = Job {
            stop: true,
            submit_time: context.now,
            ..stored.value.clone()
        };
        writes.extend(register::job_writes(
            snapshot,
            &stopped,
            Some(stored),
            context,
        ));
    }
    if request.no_shutdown_delay {
        writes.extend(skip_delays(snapshot, &key, u64::MAX, context.now));
    }
    let job_modify_index = stored.modify_index;
    Ok(Decision::Commit(Proposal {
        writes,
        is_evaluated,
        changed,
        job_modify_index,
        next_launch: None,
        adds_work: false,
    }))
}

/// Returns the deletions of a job, its stable markers, its volume claims, and its versions without
/// allocations.
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
        None => job_versions::tags_unchanged(snapshot, key),
    });
    for version in kept.take(MAX_PURGED_VERSIONS) {
        let deletions = job_versions::deletions(snapshot, key, version);
        let is_run = run.contains(&version);
        let goes = |write: &Write| !(is_run && matches!(write.key(), Key::JobVersion(..)));
        writes.extend(deletions.into_iter().filter(goes));
    }
    let claims = snapshot.volume_claims_of(key).take(MAX_PURGED_CLAIMS);
    writes.extend(claims.map(|claim| volumes::delete_claim(claim)));
    writes
}

/// Returns the answer of an earlier attempt whose answer was lost.
fn replay_answer(
    snapshot: &Snapshot,
    request: &DeregisterRequest,
    eval_id: EvalId,
    eval: &Indexed<Evaluation>,
) -> Answer {
    let written = eval.create_index;
    let version = version_at(snapshot, &request.job, written).filter(|_| !request.purge);
    let job_modify_index = version.map_or(written, |version| version.create_index);
    Answer {
        eval_id: Some(eval_id),
        index: written,
        job_modify_index,
        changed: job_modify_index == written,
        next_launch: None,
    }
}
