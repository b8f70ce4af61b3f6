//! Allocations whose node was out of reach: who stays when it comes back, and who follows whom.

use model::job::{ReconcileChoice, TaskGroup};
use model::{ClientStatus, Timestamp};
use state::{AllocView, Snapshot};

/// How far a chain of successors is followed: longer ones are a broken history, not a real one.
const SUCCESSORS_MAX: usize = 1_000;

/// Returns who came after `view`, in order.
pub(crate) fn successors<'a>(snapshot: &'a Snapshot, view: &AllocView) -> Vec<&'a AllocView> {
    let mut found = Vec::new();
    let mut next = view.alloc.next_alloc;
    while let Some(successor) = next.and_then(|id| snapshot.alloc(id)) {
        if found.len() >= SUCCESSORS_MAX {
            break;
        }
        found.push(successor);
        next = successor.alloc.next_alloc;
    }
    found
}

/// Tells whether `original`, which runs, is to stay, and `replacement` to go.
pub(crate) fn keeps_original(
    group: &TaskGroup,
    batch: bool,
    original: &AllocView,
    replacement: &AllocView,
) -> bool {
    let is_newer = replacement.alloc.job_create_index != original.alloc.job_create_index
        || replacement.alloc.job_version > original.alloc.job_version;
    if is_newer {
        return false;
    }
    // One that has ended has lost, unless it has done the work.
    match replacement.client_status() {
        ClientStatus::Complete => return !batch,
        ClientStatus::Failed | ClientStatus::Lost => return true,
        ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown => {}
    }
    let choice = group
        .disconnect
        .map_or(ReconcileChoice::BestScore, |block| block.reconcile);
    match choice {
        ReconcileChoice::KeepOriginal => true,
        ReconcileChoice::KeepReplacement => false,
        ReconcileChoice::BestScore => has_best_score(original, replacement),
        ReconcileChoice::LongestRunning => {
            match (started_at(group, original), started_at(group, replacement)) {
                (None, None) => has_best_score(original, replacement),
                (Some(first), Some(second)) => first < second,
                (first, None) => first.is_some(),
                (None, Some(_)) => false,
            }
        }
    }
}

fn has_best_score(original: &AllocView, replacement: &AllocView) -> bool {
    let score = |view: &AllocView| {
        view.alloc
            .metric
            .as_ref()
            .map(|metric| metric.score_per_mille)
    };
    let replacement_runs = replacement.client_status() == ClientStatus::Running;
    !(score(replacement) > score(original) && replacement_runs)
}

/// Returns since when the leader task runs, or the first of the tasks when none leads.
fn started_at(group: &TaskGroup, view: &AllocView) -> Option<Timestamp> {
    let client = view.client.as_ref()?;
    let started = |name: &str| {
        let task = client.task_states.get(name)?;
        let at = if task.restarts > 0 {
            task.last_restart
        } else {
            task.started_at
        };
        (!at.is_never()).then_some(at)
    };
    let leader = group.tasks.iter().find(|task| task.leader);
    if let Some(leader) = leader {
        return started(&leader.name);
    }
    group
        .tasks
        .iter()
        .filter_map(|task| started(&task.name))
        .min()
}
