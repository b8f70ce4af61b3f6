//! Garbage outside of jobs: ended deployments, nodes that are down, orphaned volume claims, expired
//! introduction tokens, leftovers.

use std::collections::BTreeMap;

use model::{Indexed, JobKey, NodeStatus, Timestamp, VolumeClaim};
use rustc_hash::FxHashSet;
use state::{Key, Snapshot, Write};

use super::batch::{Batch, Counts, Packer};
use super::thresholds::Thresholds;

/// Appends batches to `out`, which has those of the jobs.
pub(super) fn sweep(
    snapshot: &Snapshot,
    now: Timestamp,
    thresholds: &Thresholds,
    out: &mut Vec<Batch>,
) {
    let gone: FxHashSet<Key> = out
        .iter()
        .flat_map(|batch| &batch.writes)
        .filter(|write| matches!(write, Write::Delete { .. }))
        .map(|write| write.key().clone())
        .collect();
    let is_gone = |key: &Key| gone.contains(key);
    let mut orphans: BTreeMap<JobKey, Vec<&Indexed<VolumeClaim>>> = BTreeMap::new();
    let mut packer = Packer::new(None, None, out);
    for deployment in snapshot.deployments() {
        let (id, value) = (deployment.value.id, &deployment.value);
        let key = Key::Deployment(id);
        let newest = snapshot.latest_deployment(&value.job);
        // The scheduler reads the outcome of the job's newest deployment.
        let is_needed = newest.is_some_and(|newest| newest.value.id == id);
        // Writes of an allocation fail when its deployment is gone.
        let is_named = snapshot
            .allocs_by_deployment(id)
            .any(|view| !is_gone(&Key::Alloc(view.alloc.id)));
        let is_old = value.modify_time.plus(thresholds.deployment) <= now;
        if value.status.is_active() || is_needed || is_named || !is_old || is_gone(&key) {
            continue;
        }
        let counts = Counts {
            deployments: 1,
            ..Counts::default()
        };
        packer.add([(key, deployment.modify_index)], counts);
    }
    for node in snapshot.nodes() {
        let (id, value) = (node.value.id, &node.value);
        let has_live = snapshot.allocs_by_node(id).any(|view| !view.is_terminal());
        let is_old = value.status_updated_at.plus(thresholds.node) <= now;
        if value.status == NodeStatus::Down && !has_live && is_old {
            let counts = Counts {
                nodes: 1,
                ..Counts::default()
            };
            packer.add([(Key::Node(id), node.modify_index)], counts);
        }
    }
    for claim in snapshot.volume_claims() {
        let value = &claim.value;
        let volume = snapshot.volume(&value.volume_key());
        // A volume created later under the same name has another id.
        if volume.is_none_or(|volume| volume.value.id != value.volume_id) {
            let key = Key::VolumeClaim(value.id());
            packer.add([(key, claim.modify_index)], Counts::default());
        } else if snapshot.job(&value.job_key()).is_none() {
            orphans.entry(value.job_key()).or_default().push(claim);
        }
    }
    for (id, client, modify_index) in snapshot.clients_without_alloc() {
        if client.modify_time.plus(thresholds.eval) <= now {
            packer.add([(Key::AllocClient(id), modify_index)], Counts::default());
        }
    }
    for (parent, token, row) in snapshot.dispatch_tokens() {
        let child = JobKey::new(&*parent.namespace, row.value.child_id.as_str());
        let key = Key::DispatchToken(parent.clone(), token.to_owned());
        if snapshot.job(&child).is_none() && !is_gone(&key) {
            packer.add([(key, row.modify_index)], Counts::default());
        }
    }
    for token in snapshot.introduction_tokens() {
        let (id, value) = (token.value.id, &token.value);
        // Kept for a while, so that a late node is told that it has expired.
        if value.expires_at.plus(thresholds.eval) <= now {
            let key = Key::IntroductionToken(id);
            packer.add([(key, token.modify_index)], Counts::default());
        }
    }
    for (node_id, introduction) in snapshot.node_introductions() {
        // The pool of a node counts as long as the node has a certificate, or is known.
        let is_over = introduction.value.certified_until <= now;
        if is_over && snapshot.node(node_id).is_none() {
            let key = Key::NodeIntroduction(node_id);
            packer.add([(key, introduction.modify_index)], Counts::default());
        }
    }
    packer.close();
    for (job, claims) in orphans {
        // A job that is registered meanwhile under that id keeps its claims.
        let absent = Write::RequireAbsent { key: Key::Job(job) };
        let mut packer = Packer::new(Some(absent), None, out);
        for claim in claims {
            let key = Key::VolumeClaim(claim.value.id());
            packer.add([(key, claim.modify_index)], Counts::default());
        }
        packer.close();
    }
}
