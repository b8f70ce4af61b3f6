//! Stored objects as the API and nodes get them: joined with state that is derived from other objects.
//!
//! Without I/O. [`assignments`] makes the messages of a node's stream, [`service_index`] has the services that nodes
//! look up by name; the rest answers reads of users.

pub mod assignments;
pub mod csi;
mod explanation;
mod scale_status;
mod scaling_policy;
pub mod service;
pub mod service_index;
mod signing_key;
mod volume;

use std::collections::BTreeMap;

use model::{Deployment, Indexed, Job, JobKey};
use proto::{AllocationRead, DeploymentGroupRead, JobRead, v1};
use state::{AllocView, GroupSummary, Snapshot};

pub use explanation::explanation;
pub use scale_status::scale_status;
pub use scaling_policy::scaling_policy;
pub use signing_key::{signing_key, signing_keys};
pub use volume::volume;

/// Returns the current job.
pub fn job(snapshot: &Snapshot, key: &JobKey, job: &Indexed<Job>) -> v1::Job {
    v1::Job::from_stored(job, read(snapshot, key, job.value.version))
}

/// Returns one kept version of a job; its status is the job's.
pub fn job_version(snapshot: &Snapshot, key: &JobKey, row: &Indexed<Job>) -> v1::Job {
    v1::Job::from_stored(row, read(snapshot, key, row.value.version))
}

fn read<'a>(snapshot: &'a Snapshot, key: &JobKey, version: u64) -> JobRead<'a> {
    JobRead {
        // Purged, but a version is still named by an allocation.
        status: snapshot
            .job_status(key)
            .map_or("dead", |status| status.as_str()),
        stable: snapshot.is_stable(key, version),
        tag: snapshot.version_tag(key, version),
    }
}

pub fn job_summary(snapshot: &Snapshot, key: &JobKey) -> v1::JobSummary {
    let groups = snapshot.job_summary(key).into_iter();
    v1::JobSummary {
        task_groups: groups.map(|(name, counts)| (name, group(counts))).collect(),
        children: snapshot
            .children_summary(key)
            .map(|children| v1::ChildrenSummary {
                pending: children.pending,
                running: children.running,
                dead: children.dead,
            }),
    }
}

fn group(counts: GroupSummary) -> v1::TaskGroupSummary {
    v1::TaskGroupSummary {
        queued: counts.queued,
        starting: counts.starting,
        running: counts.running,
        complete: counts.complete,
        failed: counts.failed,
        lost: counts.lost,
        unknown: counts.unknown,
    }
}

pub fn job_stub(snapshot: &Snapshot, job: &Indexed<Job>) -> v1::JobStub {
    let key = job.value.key();
    v1::JobStub {
        namespace: job.value.namespace.clone(),
        id: job.value.id.clone(),
        name: job.value.name.clone(),
        r#type: job.value.job_type.as_str().to_owned(),
        priority: u32::from(job.value.priority),
        status: read(snapshot, &key, job.value.version).status.to_owned(),
        stop: job.value.stop,
        version: job.value.version,
        submit_time_ns: job.value.submit_time.0,
        create_index: job.create_index,
        modify_index: job.modify_index,
        summary: Some(job_summary(snapshot, &key)),
        parent_id: job.value.parent_id.clone(),
        periodic: job.value.periodic.is_some(),
        parameterized: job.value.parameterized.is_some() && !job.value.dispatched,
    }
}

/// Returns both sides of an allocation, with its node's name and its job's type and node pool.
pub fn allocation(snapshot: &Snapshot, view: &AllocView) -> v1::Allocation {
    let node = snapshot.node(view.alloc.node_id);
    let job = snapshot.job_version(&view.alloc.job_key(), view.alloc.job_version);
    let read = AllocationRead {
        client_status: view.client_status(),
        node_name: node.map_or("", |node| &node.value.name),
        job_type: job.map_or("", |job| job.value.job_type.as_str()),
        create_index: view.create_index,
        modify_index: view.modify_index(),
        alloc_modify_index: view.alloc_modify_index,
    };
    let mut joined = v1::Allocation::joined(&view.alloc, view.client.as_deref(), read);
    joined.canary = snapshot.is_canary(view);
    // The job's pool, which may be `all`, not the node's. Not stored with each placement, because the job has
    // it: it would be a good part of the size.
    if let (Some(metric), Some(job)) = (&mut joined.metric, job) {
        metric.node_pool.clone_from(&job.value.node_pool);
    }
    joined
}

/// Returns a deployment with its groups' counts and progress deadlines.
pub fn deployment(snapshot: &Snapshot, deployment: &Indexed<Deployment>) -> v1::Deployment {
    deployment_at(snapshot, deployment, u64::MAX)
}

/// Returns the deployment as of `index`. The replica keeps only the last report of an allocation, so
/// one that has reported since counts as placed and nothing more.
pub fn deployment_at(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    index: u64,
) -> v1::Deployment {
    let mut groups: BTreeMap<String, DeploymentGroupRead> = BTreeMap::new();
    let mut counted = snapshot.deployment_counts_at(deployment.value.id, index);
    for (name, group) in &deployment.value.groups {
        if let Some(counts) = group.final_counts {
            counted.insert(name.clone(), counts);
        }
    }
    for (name, counts) in counted {
        let by = rollout::require_progress_by_at(snapshot, &deployment.value, &name, index);
        let read = groups.entry(name).or_default();
        read.placed_allocs = counts.placed;
        read.healthy_allocs = counts.healthy;
        read.unhealthy_allocs = counts.unhealthy;
        read.require_progress_by = by.unwrap_or_default();
    }
    v1::Deployment::from_stored(deployment, &groups)
}

#[cfg(test)]
mod tests {
    use model::{DeploymentCounts, DeploymentId, DeploymentStatus, NodeId, Timestamp};
    use state::{Change, Entity, Key, State};
    use test_kit::builders;

    use super::*;

    #[test]
    fn an_ended_deployment_shows_its_final_counts() {
        let counts = |placed| DeploymentCounts {
            placed,
            ..DeploymentCounts::default()
        };
        for (final_counts, shown) in [(None, 0), (Some(counts(3)), 3)] {
            let group = model::DeploymentGroup {
                final_counts,
                ..model::DeploymentGroup::default()
            };
            let job = builders::service("web", 3);
            let stored = Indexed {
                create_index: 1,
                modify_index: 2,
                value: Deployment {
                    id: DeploymentId::from_random(1),
                    job: job.key(),
                    job_version: 0,
                    job_modify_index: 1,
                    job_create_index: 1,
                    status: DeploymentStatus::Cancelled,
                    status_description: String::new(),
                    groups: [("web".to_owned(), group)].into(),
                    eval_priority: 50,
                    create_time: Timestamp(1),
                    modify_time: Timestamp(2),
                },
            };
            let snapshot = State::default().snapshot();
            let read = deployment(&snapshot, &stored);
            assert_eq!(read.task_groups["web"].placed_allocs, shown);
        }
    }

    #[test]
    fn a_placed_allocations_metric_names_the_node_pool_of_its_version() {
        let mut old = builders::service("web", 1);
        old.node_pool = "gpu".into();
        let mut alloc = builders::allocation(1, &old, NodeId::default());
        alloc.metric = Some(model::AllocMetric::default().into());
        let mut new = old.clone();
        (new.version, new.node_pool) = (old.version + 1, "default".into());
        let key = old.key();
        let version = |job: &Job| Key::JobVersion(key.clone(), job.version);
        let objects = [
            (version(&old), Entity::JobVersion(Box::new(old.clone()))),
            (version(&new), Entity::JobVersion(Box::new(new.clone()))),
            (Key::Job(key.clone()), Entity::Job(Box::new(new))),
            (Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc.clone()))),
        ];
        let changes = objects.into_iter().map(|(key, entity)| Change::Put {
            key,
            entity,
            create_index: 1,
            modify_index: 1,
        });
        let mut state = State::default();
        state.apply(1, changes.collect::<Vec<_>>());
        let snapshot = state.snapshot();
        let shown = allocation(&snapshot, snapshot.alloc(alloc.id).unwrap());
        assert_eq!(shown.metric.unwrap().node_pool, "gpu");
    }
}
