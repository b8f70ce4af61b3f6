//! Which nodes are draining, and whether anything has happened that may matter to one.

use std::collections::BTreeSet;

use model::NodeId;
use state::{Change, Entity, Key, Snapshot};

/// The draining nodes, kept along with the replica.
#[derive(Debug, Default)]
pub struct Draining {
    nodes: BTreeSet<NodeId>,
    is_dirty: bool,
}

impl Draining {
    /// Begins anew: after an election, and whenever the change feed has been lost.
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
                // A replacement elsewhere that becomes healthy lets the next one go, so every
                // allocation counts, and every job for its pace.
                Change::Put { key, .. } | Change::Delete { key } => {
                    let counts = matches!(key, Key::Alloc(_) | Key::AllocClient(_) | Key::Job(_));
                    self.is_dirty |= counts;
                }
            }
        }
    }

    /// Tells whether a look may find something new.
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

    /// A look was not carried out as it was decided: another one is due.
    pub fn look_again(&mut self) {
        self.is_dirty = true;
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }
}
