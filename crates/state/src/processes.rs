//! Queries of registered processes.

use model::{Indexed, ProcessInfo, ProcessKey};

use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns every registered process, ordered by service and address. One that was killed stays
    /// until its lease expires.
    pub fn processes(&self) -> impl Iterator<Item = (&ProcessKey, &Indexed<ProcessInfo>)> {
        self.tables().processes.iter()
    }

    /// Tells whether the process leads its service.
    pub fn leads(&self, process: &ProcessKey) -> bool {
        let leader = self.leader(&process.service);
        leader.is_some_and(|leader| leader.value.address == process.address)
    }
}
