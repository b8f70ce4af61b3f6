//! How many of a group may be on the move at the same time.

use std::collections::BTreeMap;

use model::{ClientStatus, Indexed, Job, JobKey, TaskGroup};
use state::{AllocView, Snapshot};

use super::Candidate;

/// What `migrate { max_parallel }` is unless a group says otherwise. Source: Nomad's default.
const MAX_PARALLEL: u32 = 1;

/// Chooses who of a job's candidates leaves now: all that are due, and of the rest of each group
/// as many as its pace allows.
pub(super) fn choose<'a>(
    snapshot: &Snapshot,
    key: &JobKey,
    candidates: Vec<Candidate<'a>>,
) -> Vec<Candidate<'a>> {
    let mut chosen = Vec::new();
    let mut groups = BTreeMap::<&str, Vec<Candidate<'a>>>::new();
    for candidate in candidates {
        let group = paced_by(snapshot, key, &candidate);
        match group.filter(|_| !candidate.is_due) {
            Some(_) => {
                let group = &*candidate.view.alloc.task_group;
                groups.entry(group).or_default().push(candidate);
            }
            None => chosen.push(candidate),
        }
    }
    for (name, candidates) in groups {
        let due: Vec<_> = chosen
            .iter()
            .map(|candidate| candidate.view.alloc.id)
            .collect();
        let group = snapshot.job(key).and_then(|job| job.value.task_group(name));
        let Some(group) = group else { continue };
        let others = snapshot
            .allocs_by_job(key)
            .filter(|view| &*view.alloc.task_group == name && !due.contains(&view.alloc.id));
        chosen.extend(paced(snapshot, group, others, candidates));
    }
    chosen
}

/// Returns the group that says how fast an allocation may leave; `None`: nobody does, as it is not
/// wanted any more, and the scheduler stops it once it looks.
fn paced_by<'a>(
    snapshot: &'a Snapshot,
    key: &JobKey,
    candidate: &Candidate<'_>,
) -> Option<&'a TaskGroup> {
    let alloc = &candidate.view.alloc;
    let is_wanted = |job: &&std::sync::Arc<Indexed<Job>>| {
        job.create_index == alloc.job_create_index && !job.value.stop
    };
    let job = snapshot.job(key).filter(is_wanted)?;
    job.value.task_group(&alloc.task_group)
}

/// Returns who of one group's candidates leaves now; `allocs` are all of the group.
///
/// Whoever is neither healthy nor still to be moved counts as on the move: a replacement that is
/// being started, one that is found unhealthy, one without a place. So with `max_parallel` on the
/// move nobody follows, and `count − max_parallel` stay healthy as far as it is ours to say.
/// Source: Nomad's public behaviour, but that it takes a replacement that is unhealthy for settled.
fn paced<'a, 'b>(
    snapshot: &Snapshot,
    group: &TaskGroup,
    allocs: impl Iterator<Item = &'b AllocView>,
    candidates: Vec<Candidate<'a>>,
) -> Vec<Candidate<'a>> {
    let max_parallel = group
        .migrate
        .as_ref()
        .map_or(MAX_PARALLEL, |migrate| migrate.max_parallel);
    let (mut healthy, mut canaries_moving) = (0_u32, 0_u32);
    for view in allocs.filter(|view| !view.is_terminal()) {
        let is_marked = view.alloc.transition.migrate;
        let stands = !is_marked && is_healthy(group, view);
        if snapshot.is_canary(view) {
            canaries_moving += u32::from(is_marked || is_unsettled(group, view));
        } else {
            healthy += u32::from(stands);
        }
    }
    let mut ranked: Vec<(Rank, Candidate<'a>)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((rank(snapshot, group, candidate.view)?, candidate)))
        .collect();
    ranked.sort_by_key(|(rank, candidate)| {
        let alloc = &candidate.view.alloc;
        (*rank, alloc.name_index, alloc.id)
    });
    let broken = ranked.iter().filter(|(rank, _)| *rank == Rank::Broken);
    let broken = u32::try_from(broken.count()).unwrap_or(u32::MAX);
    let moving = group
        .count
        .saturating_sub(healthy)
        .saturating_sub(broken)
        .saturating_add(canaries_moving);
    let allowed = max_parallel.saturating_sub(moving);
    ranked.truncate(usize::try_from(allowed).unwrap_or(usize::MAX));
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Who leaves first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It serves nobody where it is.
    Broken,
    Healthy,
    Canary,
}

/// `None`: whether it is healthy is about to be found out, and it waits for that.
fn rank(snapshot: &Snapshot, group: &TaskGroup, view: &AllocView) -> Option<Rank> {
    if is_unsettled(group, view) {
        None
    } else if snapshot.is_canary(view) {
        Some(Rank::Canary)
    } else if is_healthy(group, view) {
        Some(Rank::Healthy)
    } else {
        Some(Rank::Broken)
    }
}

fn is_healthy(group: &TaskGroup, view: &AllocView) -> bool {
    let judged_well = view.verdict().is_some_and(|verdict| verdict.healthy);
    // Without a strategy its node does not judge it.
    let is_judged = group.migrate.is_some() || view.alloc.deployment_id.is_some();
    view.client_status() == ClientStatus::Running && (judged_well || !is_judged)
}

/// Tells whether its node has yet to say how it is.
fn is_unsettled(group: &TaskGroup, view: &AllocView) -> bool {
    match view.client_status() {
        ClientStatus::Pending => true,
        ClientStatus::Running => view.verdict().is_none() && !is_healthy(group, view),
        _ => false,
    }
}
