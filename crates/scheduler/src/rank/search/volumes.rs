//! Volume checks of one node: the volumes of the allocation, other writers, and claims.

use std::collections::BTreeSet;

use model::NodeId;
use placement::VolumeWrites;

use crate::rank::search::Search;

impl Search<'_, '_> {
    /// Tells whether a node that has the group's volumes is suitable for the allocation.
    pub(crate) fn volumes_serve(&self, position: usize) -> bool {
        self.has_own_volumes(position) && !self.volume_is_taken(position)
    }

    /// Returns the nodes that claims tie the group's next allocation to.
    pub(crate) fn ties(&self) -> Option<BTreeSet<NodeId>> {
        let volumes = &self.requirements.volumes;
        if volumes.is_empty() {
            return None;
        }
        volumes.tied_to(|node_id| {
            let slot = self.cluster.position(node_id);
            let slot = slot.and_then(|position| self.cluster.slot(position));
            slot.is_some_and(|slot| slot.of_group > 0)
        })
    }

    /// Tells whether another writer of a volume rules a node out.
    pub(crate) fn volume_is_taken(&self, position: usize) -> bool {
        let volumes = &self.requirements.volumes;
        if volumes.is_empty() {
            return false;
        }
        let cluster = &self.cluster;
        let node = cluster.table.node(position);
        node.is_some_and(|node| {
            volumes.is_taken(&node.value, self.name_index, || {
                let replacing = self.replacing;
                let there = VolumeWrites::on_node(cluster.snapshot, node.value.id, replacing);
                there.chain(cluster.writes(position).cloned())
            })
        })
    }

    /// Returns why a node cannot give the allocation its storage systems' volumes. Those that all
    /// allocations share were checked with the node, before the plan brought volumes to it.
    pub(crate) fn csi_fault(&self, position: usize) -> Option<String> {
        let csi = &self.requirements.csi;
        let planned = self.cluster.csi(position);
        if csi.is_empty() || (planned.is_empty() && !csi.differ_by_alloc()) {
            return None;
        }
        let node = self.cluster.table.node(position)?;
        let checked = csi.check(&node.value, self.name_index, planned, |_| Vec::new());
        checked.err()
    }

    /// Tells whether a node has the allocation's own volumes, and claims allow it.
    pub(crate) fn has_own_volumes(&self, position: usize) -> bool {
        if self.csi_fault(position).is_some() {
            return false;
        }
        if let Some(tied_to) = &self.tied_to
            && !tied_to.contains(&self.cluster.row(position).id)
        {
            return false;
        }
        let Some(name_index) = self.own_volumes_of else {
            return true;
        };
        let node = self.cluster.table.node(position);
        node.is_some_and(|node| self.requirements.volumes.pass(&node.value, name_index))
    }
}
