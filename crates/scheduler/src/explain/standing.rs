//! How a group stands, apart from what nodes say: what is there, what is done, what waits for its
//! time, and which deployment holds it up.

use std::collections::BTreeSet;

use model::{
    ClientStatus, DeploymentId, DeploymentStatus, Evaluation, Indexed, Job, JobType, Timestamp,
};
use state::{AllocView, Snapshot};

/// How many of a group there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// Placed, or updated last, by the evaluation.
    pub(super) placed: u32,
    pub(super) live: u32,
    pub(super) done: u32,
    pub(super) waiting: u32,
    pub(super) waits_until: Option<Timestamp>,
}

/// A deployment that keeps a group from having more placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub deployment_id: DeploymentId,
    pub by: HeldBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// It has failed: of its version nothing more is placed.
    Failed,
    Paused,
    /// Its canaries wait for somebody to promote them.
    Promotion,
}

impl HeldBy {
    /// `failed`, `paused` or `promotion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Paused => "paused",
            Self::Promotion => "promotion",
        }
    }
}

impl Standing {
    pub(super) fn new(
        snapshot: &Snapshot,
        eval: &Evaluation,
        job: &Job,
        group: &str,
        now: Timestamp,
    ) -> Self {
        let of_group = |view: &&AllocView| *view.alloc.task_group == *group;
        let placed = snapshot.allocs_by_eval(eval.id).filter(of_group);
        let mut standing = Self {
            placed: count(placed),
            ..Self::default()
        };
        let runs_to_end = matches!(job.job_type, JobType::Batch | JobType::Sysbatch);
        // Of a job that is everywhere all have the same number.
        let slot = |view: &AllocView| match job.job_type {
            JobType::Service | JobType::Batch => (view.alloc.name_index, None),
            JobType::System | JobType::Sysbatch => (0, Some(view.alloc.node_id)),
        };
        let (mut running, mut done) = (BTreeSet::new(), BTreeSet::new());
        for view in snapshot.allocs_by_job(&eval.job).filter(of_group) {
            if !view.is_terminal() {
                standing.live += 1;
                running.insert(slot(view));
            } else if runs_to_end
                && view.client_status() == ClientStatus::Complete
                && !view.alloc.is_server_terminal()
            {
                done.insert(slot(view));
            } else if let Some(until) = waits_until(snapshot, eval, view, now) {
                standing.waiting += 1;
                let earlier = standing.waits_until.into_iter().chain([until]).min();
                standing.waits_until = earlier;
            }
        }
        standing.done = count(done.difference(&running));
        standing
    }
}

/// Returns when one that has failed is to be placed again; `None`: it does not wait for that.
fn waits_until(
    snapshot: &Snapshot,
    eval: &Evaluation,
    view: &AllocView,
    now: Timestamp,
) -> Option<Timestamp> {
    let alloc = &view.alloc;
    if alloc.is_server_terminal() || alloc.next_alloc.is_some() {
        return None;
    }
    // An evaluation that waits is looked at as if its time had come.
    let followup = alloc.followup_eval_id.filter(|id| *id != eval.id)?;
    let followup = &snapshot.eval(followup)?.value;
    (followup.status == model::EvalStatus::Pending && followup.wait_until > now)
        .then_some(followup.wait_until)
}

/// Returns what holds up a group of the job's current version.
pub(super) fn held(snapshot: &Snapshot, job: &Indexed<Job>, group: &str) -> Option<Held> {
    let deployment = &snapshot.latest_deployment(&job.value.key())?.value;
    let of_group = deployment.groups.get(group)?;
    if deployment.job_version != job.value.version {
        return None;
    }
    let by = match deployment.status {
        DeploymentStatus::Failed => HeldBy::Failed,
        DeploymentStatus::Paused => HeldBy::Paused,
        status if status.is_active() && of_group.desired_canaries > 0 && !of_group.promoted => {
            HeldBy::Promotion
        }
        _ => return None,
    };
    Some(Held {
        deployment_id: deployment.id,
        by,
    })
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
