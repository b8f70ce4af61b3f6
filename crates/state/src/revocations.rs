//! Queries of revoked nodes.

use std::sync::Arc;

use model::{Indexed, NodeId, NodeRevocation};

use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the revocation of a node; `None`: it is not revoked.
    pub fn node_revocation(&self, id: NodeId) -> Option<&Arc<Indexed<NodeRevocation>>> {
        self.tables().revocations.get(&id)
    }

    /// Returns every revoked node ordered by id, registered or not.
    pub fn node_revocations(
        &self,
    ) -> impl Iterator<Item = (NodeId, &Arc<Indexed<NodeRevocation>>)> {
        let revoked = self.tables().revocations.iter();
        revoked.map(|(id, revocation)| (*id, revocation))
    }
}
