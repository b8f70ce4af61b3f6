//! Messages of a node's stream: allocations with their job versions.

use std::collections::{BTreeSet, HashMap, HashSet};

use model::{AllocId, JobKey, NodeId};
use placement::VolumeAsks;
use proto::internal::v1::{AllocationsUpdate, Assignment};
use proto::v1;
use state::{AllocView, Snapshot};

/// The number of sent job versions that a stream remembers, 100 bytes each. Beyond it forgets all
/// of them, and some are sent twice.
const MAX_REMEMBERED: usize = 10_000;

/// The job versions that a stream has sent.
#[derive(Debug, Default)]
pub struct SentJobs {
    /// With the create index of the row, because a later job may have the same name.
    versions: HashSet<(JobKey, u64, u64)>,
}

/// Returns all allocations of the node, as of the snapshot.
pub fn full(snapshot: &Snapshot, node_id: NodeId, sent: &mut SentJobs) -> AllocationsUpdate {
    let mut update = AllocationsUpdate {
        revision: snapshot.index(),
        full: true,
        ..Default::default()
    };
    for view in snapshot.allocs_by_node(node_id) {
        assign(snapshot, view, sent, &mut update);
    }
    update
}

/// Returns the named allocations as of the snapshot, which is at `revision` or later. Missing ones
/// have been collected.
pub fn changed(
    snapshot: &Snapshot,
    revision: u64,
    alloc_ids: &BTreeSet<AllocId>,
    sent: &mut SentJobs,
) -> AllocationsUpdate {
    let mut update = AllocationsUpdate {
        revision,
        ..Default::default()
    };
    for alloc_id in alloc_ids {
        match snapshot.alloc(*alloc_id) {
            Some(view) => assign(snapshot, view, sent, &mut update),
            None => update.removed_alloc_ids.push(alloc_id.to_string()),
        }
    }
    update
}

fn assign(
    snapshot: &Snapshot,
    view: &AllocView,
    sent: &mut SentJobs,
    update: &mut AllocationsUpdate,
) {
    let trace_parent = snapshot
        .eval(view.alloc.eval_id)
        .map_or_else(String::new, |eval| eval.value.trace_parent.clone());
    let allocation = Some(crate::allocation(snapshot, view));
    update.assignments.push(Assignment {
        allocation,
        trace_parent,
        volume_paths: volume_paths(snapshot, view),
        report_number: view.client.as_ref().map_or(0, |client| client.report),
    });
    update.jobs.extend(unsent_job(snapshot, view, sent));
}

/// Returns the paths of the registered volumes of an allocation: a node only knows the volumes of
/// its own configuration.
fn volume_paths(snapshot: &Snapshot, view: &AllocView) -> HashMap<String, String> {
    let alloc = &view.alloc;
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
    let group = job.and_then(|job| Some((job, job.value.task_group(&alloc.task_group)?)));
    let (Some((job, group)), Some(node)) = (group, snapshot.node(alloc.node_id)) else {
        return HashMap::new();
    };
    let mut asks = VolumeAsks::of_group(&job.value, group);
    asks.resolve(snapshot);
    asks.volumes_on(&node.value, alloc.name_index)
        .map(|volume| (volume.value.name.clone(), volume.value.host_path.clone()))
        .collect()
}

/// Returns the job version that an allocation names, unless the stream has sent it.
fn unsent_job(snapshot: &Snapshot, view: &AllocView, sent: &mut SentJobs) -> Option<v1::Job> {
    let key = view.alloc.job_key();
    let row = snapshot.job_version(&key, view.alloc.job_version)?;
    if sent.versions.len() >= MAX_REMEMBERED {
        sent.versions.clear();
    }
    let is_new = sent
        .versions
        .insert((key.clone(), row.value.version, row.create_index));
    is_new.then(|| crate::job_version(snapshot, &key, row))
}

#[cfg(test)]
mod tests;
