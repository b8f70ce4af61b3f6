//! Revert of a job: a former version is registered again as a new one.

use model::{Job, JobKey};
use state::{Snapshot, job_versions};

use super::decision::{Decision, RequestContext};
use super::missing::find_job;
use super::refusal::JobRefusal;
use super::register::RegisterRequest;
use super::{marks, register};

/// The version to revert to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Version(u64),
    /// The version with this tag.
    Tag(String),
}

#[derive(Clone, Debug)]
pub struct RevertRequest {
    pub job: JobKey,
    pub to: Target,
    /// Refused unless this is the job's version.
    pub prior_version: Option<u64>,
    /// 0: the job's.
    pub eval_priority: u32,
    /// With this many open evaluations it is refused.
    pub max_open_evals: usize,
}

/// Decides on a revert. The new version runs even if the former one stopped the job; it is neither
/// stable nor tagged.
///
/// # Errors
/// See [`marks::VersionRefusal`], and every [`JobRefusal`] of a registration.
pub fn revert(
    snapshot: &Snapshot,
    request: &RevertRequest,
    context: &RequestContext,
) -> Result<Decision, JobRefusal> {
    let key = &request.job;
    // First, because after the first attempt the version is the current one.
    if let Some(answer) = register::earlier_answer(snapshot, key, context) {
        return Ok(Decision::Done(answer));
    }
    let stored = find_job(snapshot, key)?;
    let current = stored.value.version;
    if let Some(want) = request.prior_version.filter(|want| *want != current) {
        return Err(marks::VersionRefusal::PriorVersion { current, want }.into());
    }
    let version = match &request.to {
        Target::Version(version) => *version,
        Target::Tag(name) => marks::find_tag(snapshot, key, name)?,
    };
    if version == current {
        return Err(marks::VersionRefusal::CurrentVersion.into());
    }
    let former = marks::find_version(snapshot, key, version)?;
    let job = Job {
        stop: false,
        submit_time: context.now,
        ..former.value.clone()
    };
    let asked = RegisterRequest {
        check_index: Some(stored.modify_index),
        eval_priority: request.eval_priority,
        max_open_evals: request.max_open_evals,
        ..RegisterRequest::default()
    };
    let mut decision = register::register(snapshot, &job, &asked, context)?;
    if let (Decision::Commit(proposal), Target::Tag(_)) = (&mut decision, &request.to) {
        // The tag may belong to another version by now.
        let tags = job_versions::tags_unchanged(snapshot, key);
        if !proposal.writes.contains(&tags) {
            proposal.writes.push(tags);
        }
    }
    Ok(decision)
}
