//! The loop that notes changed allocations in the sessions of their nodes, and wakes the sessions of
//! revoked nodes, which end.
//!
//! One loop for all streams: a thousand streams cost one look-up for each changed allocation, not a
//! thousand readers of every change.

use std::collections::{BTreeSet, HashMap};

use model::{AllocId, NodeId};
use state::{Change, Entity, Key, Snapshot};
use store::{Delta, Subscription};
use tokio_util::sync::CancellationToken;

use crate::sessions::Sessions;

/// The node of each allocation, because a deletion names the allocation only. 32 bytes for each
/// allocation of the cluster.
type NodeOf = HashMap<AllocId, NodeId>;

/// Runs until stopped, or until the replica stops.
pub async fn run(
    sessions: Sessions,
    subscribed: (Snapshot, Subscription),
    stop: CancellationToken,
) {
    let (snapshot, mut subscription) = subscribed;
    let mut node_of = node_of_all(&snapshot);
    loop {
        let delta = tokio::select! {
            () = stop.cancelled() => return,
            delta = subscription.next() => delta,
        };
        match delta {
            None => return,
            Some(Delta::Resnapshot(snapshot)) => {
                node_of = node_of_all(&snapshot);
                sessions.note_full();
            }
            Some(Delta::Changes { revision, changes }) => {
                sessions.note(revision, by_node(&changes, &mut node_of));
                for node_id in revoked(&changes) {
                    sessions.note_full_of(node_id);
                }
            }
        }
    }
}

fn node_of_all(snapshot: &Snapshot) -> NodeOf {
    snapshot
        .allocs()
        .map(|view| (view.alloc.id, view.alloc.node_id))
        .collect()
}

/// Returns the canaries of the promoted groups of a deployment that has changed: their nodes register the
/// tags of services in Consul. They get each later change of the deployment, too, which changes nothing there.
fn promoted(change: &Change) -> impl Iterator<Item = &AllocId> {
    let deployment = match change {
        Change::Put {
            entity: Entity::Deployment(deployment),
            ..
        } => Some(deployment),
        _ => None,
    };
    let groups = deployment
        .into_iter()
        .flat_map(|deployment| deployment.groups.values());
    let promoted = groups.filter(|group| group.promoted);
    promoted.flat_map(|group| &group.placed_canaries)
}

/// Returns the nodes that the changes revoke.
fn revoked(changes: &[Change]) -> impl Iterator<Item = NodeId> {
    changes.iter().filter_map(|change| match change {
        Change::Put {
            key: Key::NodeRevocation(node_id),
            ..
        } => Some(*node_id),
        _ => None,
    })
}

/// Returns the changed allocations of each node, except for the node's own reports.
fn by_node(changes: &[Change], node_of: &mut NodeOf) -> HashMap<NodeId, BTreeSet<AllocId>> {
    let mut by_node: HashMap<NodeId, BTreeSet<AllocId>> = HashMap::new();
    for change in changes {
        for alloc_id in promoted(change) {
            if let Some(node_id) = node_of.get(alloc_id) {
                by_node.entry(*node_id).or_default().insert(*alloc_id);
            }
        }
        let (Change::Put { key, .. } | Change::Delete { key }) = change;
        let Key::Alloc(alloc_id) = key else { continue };
        let node_id = match change {
            Change::Put {
                entity: Entity::Alloc(alloc),
                ..
            } => {
                node_of.insert(*alloc_id, alloc.node_id);
                Some(alloc.node_id)
            }
            _ => node_of.remove(alloc_id),
        };
        if let Some(node_id) = node_id {
            by_node.entry(node_id).or_default().insert(*alloc_id);
        }
    }
    by_node
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{Deployment, DeploymentGroup, DeploymentId, DeploymentStatus, Timestamp};
    use test_kit::builders;

    use super::*;

    fn put(key: Key, entity: Entity) -> Change {
        Change::Put {
            key,
            entity,
            create_index: 1,
            modify_index: 5,
        }
    }

    #[test]
    fn a_change_reaches_the_node_that_the_allocation_is_on_and_so_does_its_end() {
        let job = builders::service("web", 2);
        let nodes = [builders::node(1).id, builders::node(2).id];
        let allocs = [1, 2].map(|n| builders::allocation(n, &job, nodes[(n % 2) as usize]));
        let puts = allocs
            .clone()
            .map(|alloc| put(Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc))));
        let mut node_of = NodeOf::new();
        let changed = by_node(&puts, &mut node_of);
        for alloc in &allocs {
            assert_eq!(changed[&alloc.node_id], BTreeSet::from([alloc.id]));
        }
        let gone = Change::Delete {
            key: Key::Alloc(allocs[0].id),
        };
        let changed = by_node(&[gone], &mut node_of);
        assert_eq!(
            changed,
            HashMap::from([(allocs[0].node_id, BTreeSet::from([allocs[0].id]))])
        );
        assert_eq!(node_of.len(), 1);
    }

    #[test]
    fn the_promotion_of_canaries_reaches_their_nodes() {
        let job = builders::service("web", 1);
        let node_id = builders::node(1).id;
        let alloc = builders::allocation(1, &job, node_id);
        let deployment = |promoted| Deployment {
            id: DeploymentId::from_random(1),
            job: job.key(),
            job_version: 1,
            job_modify_index: 5,
            job_create_index: 1,
            status: DeploymentStatus::Running,
            status_description: String::new(),
            groups: BTreeMap::from([(
                alloc.task_group.to_string(),
                DeploymentGroup {
                    promoted,
                    placed_canaries: vec![alloc.id],
                    ..DeploymentGroup::default()
                },
            )]),
            eval_priority: 50,
            create_time: Timestamp(1),
            modify_time: Timestamp(1),
        };
        let of = |promoted| {
            let deployment = deployment(promoted);
            let key = Key::Deployment(deployment.id);
            put(key, Entity::Deployment(Box::new(deployment)))
        };
        let mut node_of = NodeOf::from([(alloc.id, node_id)]);
        assert_eq!(by_node(&[of(false)], &mut node_of), HashMap::new());
        let changed = by_node(&[of(true)], &mut node_of);
        assert_eq!(
            changed,
            HashMap::from([(node_id, BTreeSet::from([alloc.id]))])
        );
    }

    #[test]
    fn a_node_does_not_hear_of_its_own_reports() {
        let report = put(
            Key::AllocClient(AllocId::from_random(1)),
            Entity::AllocClient(Box::default()),
        );
        assert_eq!(by_node(&[report], &mut NodeOf::new()), HashMap::new());
    }

    #[test]
    fn a_revocation_concerns_its_node_and_its_end_concerns_none() {
        let key = |number| Key::NodeRevocation(builders::node(number).id);
        let changes = [
            put(key(1), Entity::NodeRevocation(Box::default())),
            Change::Delete { key: key(2) },
        ];
        let nodes: Vec<NodeId> = revoked(&changes).collect();
        assert_eq!(nodes, [builders::node(1).id]);
    }
}
