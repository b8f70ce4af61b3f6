//! The draining nodes, and whether a change may affect one of them.

use std::collections::BTreeSet;

use model::NodeId;
use state::{Change, Entity, Key, Snapshot};

/// The set of draining nodes, kept in step with the replica.
#[derive(Debug, Default)]
pub struct DrainingNodes {
    nodes: BTreeSet<NodeId>,
    is_dirty: bool,
}

impl DrainingNodes {
    /// Starts over: after an election, and whenever the change feed was interrupted.
    pub fn resync(&mut self, snapshot: &Snapshot) {
        let draining = snapshot.nodes().filter(|node| node.value.drain.is_some());
        self.nodes = draining.map(|node| node.value.id).collect();
        self.is_dirty = true;
    }

    /// Notes the changes of one revision.
    pub fn note(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Put {
                    key: Key::Node(id),
                    entity: Entity::Node(node),
                    ..
                } => {
                    if node.drain.is_some() {
                        self.nodes.insert(*id);
                    } else {
                        self.nodes.remove(id);
                    }
                    self.is_dirty = true;
                }
                Change::Delete { key: Key::Node(id) } => {
                    self.nodes.remove(id);
                }
                // A replacement that becomes healthy elsewhere lets the next allocation leave, so
                // every allocation counts, and every job for its `max_parallel`.
                Change::Put { key, .. } | Change::Delete { key } => {
                    let counts = matches!(key, Key::Alloc(_) | Key::AllocClient(_) | Key::Job(_));
                    self.is_dirty |= counts;
                }
            }
        }
    }

    /// Tells whether a relevant change has come since the last look.
    pub fn is_due(&self) -> bool {
        self.is_dirty && !self.nodes.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the nodes to look at, ordered by id.
    pub fn take(&mut self) -> Vec<NodeId> {
        self.is_dirty = false;
        self.nodes.iter().copied().collect()
    }

    /// Requests another look, because writes of the last one failed.
    pub fn look_again(&mut self) {
        self.is_dirty = true;
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }
}
