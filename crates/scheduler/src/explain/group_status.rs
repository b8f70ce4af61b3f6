//! Status of a task group apart from nodes: its allocations by state, and the deployment that holds
//! back placements.

use std::collections::BTreeSet;

use model::{
    ClientStatus, DeploymentId, DeploymentStatus, Evaluation, Indexed, Job, JobType, Timestamp,
};
use placement::reschedule::has_place;
use state::{AllocView, Snapshot};

/// Numbers of a group's allocations by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupStatus {
    /// Placed or last updated by the evaluation.
    pub(super) placed: u32,
    pub(super) live: u32,
    pub(super) done: u32,
    pub(super) waiting: u32,
    pub(super) waits_until: Option<Timestamp>,
}

/// A deployment that holds back placements of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeploymentHold {
    pub deployment_id: DeploymentId,
    pub reason: HoldReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// It has failed: no more allocations of its version are placed.
    Failed,
    Paused,
    /// Its canaries have not been promoted yet.
    Promotion,
}

impl HoldReason {
    /// `failed`, `paused` or `promotion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Paused => "paused",
            Self::Promotion => "promotion",
        }
    }
}

impl GroupStatus {
    pub(super) fn new(
        snapshot: &Snapshot,
        eval: &Evaluation,
        job: &Job,
        group: &str,
        now: Timestamp,
    ) -> Self {
        let of_group = |view: &&AllocView| *view.alloc.task_group == *group;
        let placed = snapshot.allocs_by_eval(eval.id).filter(of_group);
        let mut status = Self {
            placed: count(placed),
            ..Self::default()
        };
        let runs_to_end = job.job_type.runs_to_end();
        // Allocations of system jobs share one name index.
        let slot = |view: &AllocView| match job.job_type {
            JobType::Service | JobType::Batch => (view.alloc.name_index, None),
            JobType::System | JobType::Sysbatch => (0, Some(view.alloc.node_id)),
        };
        let (mut running, mut done) = (BTreeSet::new(), BTreeSet::new());
        for view in snapshot.allocs_by_job(&eval.job).filter(of_group) {
            if !view.is_terminal() {
                status.live += 1;
                running.insert(slot(view));
            } else if runs_to_end
                && view.client_status() == ClientStatus::Complete
                && !view.alloc.is_server_terminal()
            {
                done.insert(slot(view));
            } else if let Some(until) = waits_until(snapshot, eval, view, now) {
                status.waiting += 1;
                let earlier = status.waits_until.into_iter().chain([until]).min();
                status.waits_until = earlier;
            }
        }
        status.done = count(done.difference(&running));
        status
    }
}

/// Returns when the reschedule delay of a failed allocation ends; `None`: it has none.
fn waits_until(
    snapshot: &Snapshot,
    eval: &Evaluation,
    view: &AllocView,
    now: Timestamp,
) -> Option<Timestamp> {
    let alloc = &view.alloc;
    if !has_place(alloc) {
        return None;
    }
    // A delayed evaluation is explained as of the end of its delay.
    let followup = alloc.followup_eval_id.filter(|id| *id != eval.id)?;
    let followup = &snapshot.eval(followup)?.value;
    (followup.status == model::EvalStatus::Pending && followup.wait_until > now)
        .then_some(followup.wait_until)
}

/// Returns the deployment that holds back a group of the job's current version.
pub(super) fn hold(snapshot: &Snapshot, job: &Indexed<Job>, group: &str) -> Option<DeploymentHold> {
    let deployment = &snapshot.latest_deployment(&job.value.key())?.value;
    let of_group = deployment.groups.get(group)?;
    if deployment.job_version != job.value.version {
        return None;
    }
    let reason = match deployment.status {
        DeploymentStatus::Failed => HoldReason::Failed,
        DeploymentStatus::Paused => HoldReason::Paused,
        status if status.is_active() && of_group.desired_canaries > 0 && !of_group.promoted => {
            HoldReason::Promotion
        }
        _ => return None,
    };
    Some(DeploymentHold {
        deployment_id: deployment.id,
        reason,
    })
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
