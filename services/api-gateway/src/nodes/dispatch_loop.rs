//! Follows every change once and tells whom it concerns: blocked reads and nodes' streams.
//!
//! One loop for all of them: a thousand streams cost a look-up for each changed allocation, not a
//! thousand readers of every change.

use std::collections::{BTreeSet, HashMap};

use model::{AllocId, NodeId};
use state::{Change, Entity, Key, Snapshot, Table};
use store::{Delta, Subscription};
use tokio_util::sync::CancellationToken;

use crate::gateway::Shared;

/// Which node an allocation is on, for those that are deleted: the change names the allocation
/// only. 32 bytes for each allocation of the cluster.
type NodeOf = HashMap<AllocId, NodeId>;

/// Runs until stopped, or until the replica has.
pub async fn run(gateway: Shared, subscribed: (Snapshot, Subscription), stop: CancellationToken) {
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
                gateway.tables.note_all(snapshot.index());
                gateway.sessions.note_full();
            }
            Some(Delta::Changes { revision, changes }) => {
                let (tables, by_node) = sort(&changes, &mut node_of);
                for table in tables {
                    gateway.tables.note(table, revision);
                }
                gateway.sessions.note(revision, by_node);
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

/// Returns the tables that changed, and the allocations by the node that has to hear of them.
///
/// A node need not hear of its own reports; all the rest of an allocation is the servers'.
fn sort(
    changes: &[Change],
    node_of: &mut NodeOf,
) -> (Vec<Table>, HashMap<NodeId, BTreeSet<AllocId>>) {
    let mut tables = Vec::new();
    let mut by_node: HashMap<NodeId, BTreeSet<AllocId>> = HashMap::new();
    for change in changes {
        let (Change::Put { key, .. } | Change::Delete { key }) = change;
        if !tables.contains(&key.table()) {
            tables.push(key.table());
        }
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
    (tables, by_node)
}

#[cfg(test)]
mod tests {
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
        let (tables, by_node) = sort(&puts, &mut node_of);
        assert_eq!(tables, [Table::Allocs]);
        for alloc in &allocs {
            assert_eq!(by_node[&alloc.node_id], BTreeSet::from([alloc.id]));
        }
        let gone = Change::Delete {
            key: Key::Alloc(allocs[0].id),
        };
        let (_, by_node) = sort(&[gone], &mut node_of);
        assert_eq!(
            by_node,
            HashMap::from([(allocs[0].node_id, BTreeSet::from([allocs[0].id]))])
        );
        assert_eq!(node_of.len(), 1);
    }

    #[test]
    fn a_node_does_not_hear_of_its_own_reports() {
        let report = put(
            Key::AllocClient(AllocId::from_random(1)),
            Entity::AllocClient(Box::default()),
        );
        let (tables, by_node) = sort(&[report], &mut NodeOf::new());
        assert_eq!(
            (tables.as_slice(), by_node.len()),
            ([Table::Allocs].as_slice(), 0)
        );
    }
}
