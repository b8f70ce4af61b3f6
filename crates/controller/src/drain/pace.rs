//! `max_parallel`: how many allocations of a group may migrate at the same time.

use std::collections::BTreeMap;

use model::job::MigrateStrategy;
use model::{ClientStatus, Indexed, Job, JobKey, TaskGroup};
use state::{AllocView, Snapshot};

use super::candidate::Candidate;

/// Chooses the candidates of a job that leave now: all that are due, and of the rest of each group
/// as many as `max_parallel` allows.
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
        let Some((group, migrate)) = group.and_then(with_strategy) else {
            continue;
        };
        let others = snapshot
            .allocs_by_job(key)
            .filter(|view| &*view.alloc.task_group == name && !due.contains(&view.alloc.id));
        chosen.extend(paced(snapshot, group, migrate, others, candidates));
    }
    chosen
}

/// Returns a group with its migrate strategy. Groups of service jobs have one, by default if the job
/// file has none; allocations of other jobs are due, and not paced.
fn with_strategy(group: &TaskGroup) -> Option<(&TaskGroup, &MigrateStrategy)> {
    Some((group, group.migrate.as_ref()?))
}

/// Returns the group whose `max_parallel` limits an allocation; `None`: no limit, because the
/// allocation is obsolete and the next evaluation stops it.
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
    let group = job.value.task_group(&alloc.task_group)?;
    with_strategy(group).map(|(group, _)| group)
}

/// Returns the candidates of one group that leave now; `allocs` are the group's other allocations.
///
/// Missing ones count as migrating: replacements that are starting, unhealthy or not yet placed. So
/// once `max_parallel` migrate no other starts, and `count − max_parallel` stay healthy as far as
/// drains are concerned.
/// Source: Nomad's public behaviour, except that Nomad counts an unhealthy replacement as settled.
fn paced<'a, 'b>(
    snapshot: &Snapshot,
    group: &TaskGroup,
    migrate: &MigrateStrategy,
    allocs: impl Iterator<Item = &'b AllocView>,
    candidates: Vec<Candidate<'a>>,
) -> Vec<Candidate<'a>> {
    let (mut healthy, mut canaries_moving) = (0_u32, 0_u32);
    for view in allocs.filter(|view| !view.is_terminal()) {
        let is_marked = view.alloc.transition.migrate;
        let stands = !is_marked && is_healthy(view);
        if snapshot.is_canary(view) {
            canaries_moving += u32::from(is_marked || is_unsettled(view));
        } else {
            healthy += u32::from(stands);
        }
    }
    let mut ranked: Vec<(Rank, Candidate<'a>)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((rank(snapshot, candidate.view)?, candidate)))
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
    let allowed = migrate.max_parallel.saturating_sub(moving);
    ranked.truncate(usize::try_from(allowed).unwrap_or(usize::MAX));
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The order in which candidates leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Unhealthy.
    Broken,
    Healthy,
    Canary,
}

/// `None`: its health is still unknown, so it has to wait.
fn rank(snapshot: &Snapshot, view: &AllocView) -> Option<Rank> {
    if is_unsettled(view) {
        None
    } else if snapshot.is_canary(view) {
        Some(Rank::Canary)
    } else if is_healthy(view) {
        Some(Rank::Healthy)
    } else {
        Some(Rank::Broken)
    }
}

fn is_healthy(view: &AllocView) -> bool {
    view.client_status() == ClientStatus::Running
        && view.verdict().is_some_and(|verdict| verdict.healthy)
}

/// Tells whether its node has not reported its health yet.
fn is_unsettled(view: &AllocView) -> bool {
    match view.client_status() {
        ClientStatus::Pending => true,
        ClientStatus::Running => view.verdict().is_none(),
        _ => false,
    }
}
