//! Facts of a suite at rest: without faults or changes, and after all timeouts.

use std::collections::BTreeMap;

use model::{ClientStatus, DeploymentStatus, EvalStatus, Indexed, Job, JobType};
use state::Snapshot;

use crate::addresses;
use crate::violation::{Fact, Violation};

/// Checks a state at rest: no evaluation is pending, and every job runs its counts as far as there is
/// room; a stopped or deleted one runs nothing.
///
/// A job with a failed rollout may run less: no more of that version is placed until the job is
/// changed. Source: Nomad's public behaviour.
/// The same holds for a group whose canaries wait for room: nothing else is placed before they are
/// promoted, also if the old allocations had to leave their nodes.
/// Until then a group runs its canaries beside its count.
/// Batch jobs are left out of the counts: successful allocations do not run again.
/// The ports of services and system jobs are on addresses of their nodes.
pub fn check_at_rest(snapshot: &Snapshot) -> Vec<Violation> {
    let mut found = Vec::new();
    let revision = snapshot.index();
    for eval in snapshot.open_evals() {
        // Blocked and delayed evaluations are allowed at rest.
        let waits = eval.value.status == EvalStatus::Blocked || !eval.value.wait_until.is_never();
        if !waits {
            let text = format!(
                "evaluation {} of {} is pending",
                eval.value.id, eval.value.job
            );
            found.push(Violation {
                revision,
                fact: Fact::EvaluationsEnd,
                found: text,
            });
        }
    }
    for text in wrong_counts(snapshot) {
        found.push(Violation {
            revision,
            fact: Fact::CountIsMet,
            found: text,
        });
    }
    for text in addresses::lost(snapshot) {
        found.push(Violation {
            revision,
            fact: Fact::PortsAreOnTheirNodes,
            found: text,
        });
    }
    found
}

fn wrong_counts(snapshot: &Snapshot) -> Vec<String> {
    let mut live = BTreeMap::<_, Live>::new();
    for view in snapshot.allocs().filter(|view| !view.is_terminal()) {
        if view.client_status() == ClientStatus::Unknown {
            continue;
        }
        // Allocations of a purged and recreated job are replaced like older versions.
        let alloc = &view.alloc;
        let group = (alloc.job_key(), alloc.task_group.to_string());
        let job = snapshot.job(&group.0);
        let live = live.entry(group).or_default();
        live.all += 1;
        let is_current = job.is_some_and(|job| {
            job.value.version == alloc.job_version && job.create_index == alloc.job_create_index
        });
        live.current += u32::from(is_current);
    }
    let mut wrong = Vec::new();
    for job in snapshot
        .jobs()
        .filter(|job| job.value.job_type == JobType::Service)
    {
        let key = job.value.key();
        let queued = snapshot.job_summary(&key);
        for group in &job.value.task_groups {
            let runs = live.remove(&(key.clone(), group.name.clone()));
            let runs = runs.unwrap_or_default();
            let waits = queued
                .get(&group.name)
                .map(|summary| summary.queued)
                .unwrap_or_default();
            let wanted = if job.value.stop { 0 } else { group.count };
            let canaries = awaited_canaries(snapshot, job, &group.name);
            let may_be_fewer = has_failed(snapshot, job) || (waits > 0 && canaries > 0);
            let least = if may_be_fewer { 0 } else { wanted };
            let most = wanted + canaries;
            // An outdated one stays until its update has room, and is not in excess.
            let is_met =
                least <= runs.all + waits && runs.all <= most && runs.current + waits <= most;
            if !is_met {
                wrong.push(format!(
                    "{key} {}: {} of {wanted}, {} of them current, {waits} queued",
                    group.name, runs.all, runs.current
                ));
            }
        }
    }
    // Their number depends on the nodes, or on the work.
    let has_running_work = |key: &model::JobKey| {
        snapshot
            .job(key)
            .is_some_and(|job| job.value.job_type != JobType::Service && !job.value.stop)
    };
    for ((key, group), runs) in live {
        if !has_running_work(&key) {
            wrong.push(format!(
                "{key} {group}: {} of a job that is stopped or gone",
                runs.all
            ));
        }
    }
    wrong
}

/// Running allocations of a group.
#[derive(Clone, Copy, Default)]
struct Live {
    all: u32,
    /// Of the current version.
    current: u32,
}

/// Returns the number of canaries of the group that the rollout of the current version wants to be
/// promoted.
fn awaited_canaries(snapshot: &Snapshot, job: &Indexed<Job>, group: &str) -> u32 {
    let rollout = snapshot.latest_deployment(&job.value.key());
    let rollout = rollout.filter(|rollout| {
        rollout.value.job_version == job.value.version
            && rollout.value.status == DeploymentStatus::Running
    });
    let group = rollout.and_then(|rollout| rollout.value.groups.get(group));
    let group = group.filter(|group| group.awaits_promotion());
    group.map_or(0, |group| group.desired_canaries)
}

/// Returns true if the rollout of the current version has failed.
fn has_failed(snapshot: &Snapshot, job: &Indexed<Job>) -> bool {
    let rollout = snapshot.latest_deployment(&job.value.key());
    rollout.is_some_and(|rollout| {
        rollout.value.job_version == job.value.version
            && rollout.value.status == DeploymentStatus::Failed
    })
}
