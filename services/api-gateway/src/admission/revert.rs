//! Revert: a former version of a job, registered again as a new one.

use model::{Job, JobKey};
use state::Snapshot;

use super::{Decision, Refusal, RegisterRequest, Stamp, marks, register, versions};

/// What to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Version(u64),
    /// The version of that name.
    Tag(String),
}

#[derive(Clone, Debug)]
pub struct RevertRequest {
    pub job: JobKey,
    pub to: Target,
    /// Only if this is the job's version.
    pub prior_version: Option<u64>,
    /// 0: the job's.
    pub eval_priority: u32,
    /// How many evaluations may be open before jobs are refused.
    pub max_open_evals: usize,
}

/// Decides on taking a job back. What it goes back to runs, even if that version was the stop of
/// the job; it is neither stable nor has it a name.
///
/// # Errors
/// See [`marks::Refusal`], and every [`Refusal`] of a registration.
pub fn revert(
    snapshot: &Snapshot,
    request: &RevertRequest,
    stamp: &Stamp,
) -> Result<Decision, Refusal> {
    let key = &request.job;
    // First of all: once it is carried out, the version is the current one.
    if let Some(eval) = snapshot.eval(stamp.eval_id) {
        let answer = register::answer_again(snapshot, key, eval);
        return Ok(Decision::Done(answer));
    }
    let Some(stored) = snapshot.job(key) else {
        return Ok(Decision::NoSuchJob);
    };
    let current = stored.value.version;
    if let Some(want) = request.prior_version.filter(|want| *want != current) {
        return Err(marks::Refusal::PriorVersion { current, want }.into());
    }
    let version = match &request.to {
        Target::Version(version) => *version,
        Target::Tag(name) => marks::find_tag(snapshot, key, name)?,
    };
    if version == current {
        return Err(marks::Refusal::CurrentVersion.into());
    }
    let former = marks::find_version(snapshot, key, version)?;
    let job = Job {
        stop: false,
        submit_time: stamp.now,
        ..former.value.clone()
    };
    let asked = RegisterRequest {
        check_index: Some(stored.modify_index),
        eval_priority: request.eval_priority,
        max_open_evals: request.max_open_evals,
        ..RegisterRequest::default()
    };
    let mut decision = register::register(snapshot, &job, &asked, stamp)?;
    if let (Decision::Commit(proposal), Target::Tag(_)) = (&mut decision, &request.to) {
        // The name may be another version's by now.
        let tags = versions::tags_unchanged(snapshot, key);
        if !proposal.writes.contains(&tags) {
            proposal.writes.push(tags);
        }
    }
    Ok(decision)
}
