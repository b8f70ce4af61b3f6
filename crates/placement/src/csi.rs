//! Volumes of storage systems: the nodes on which a group's allocation can use them.
//!
//! **Use of a volume** is derived, as with directories of nodes: an allocation holds the volumes of its
//! group until it has ended on its node. Besides the holders, an attachment of a volume that is not
//! undone yet keeps others from writing.
//!
//! Source: Nomad's public behaviour, with the texts of its metrics. Ours: a volume that is used on
//! one node at a time stays on the node of its holder.
//!
//! In reading order: [`plugin`] sums up a plugin over its nodes, [`holders`] finds the allocations
//! that use a volume, `ask` checks one volume, and [`CsiAsks`] all of a group.

mod ask;
pub mod holders;
pub mod plugin;
#[cfg(test)]
mod tests;

use model::job::VolumeRequest;
use model::{CsiVolumeKey, Job, JobKey, Node, TaskGroup};
use state::Snapshot;

use self::ask::CheckedAsk;
use self::holders::Holder;

/// The reason of a node that cannot run plugins.
const LACKS_CSI: &str = "missing CSI support";

/// The volumes of storage systems that a group asks for, and whether it provides a plugin.
#[derive(Clone, Debug)]
pub struct CsiAsks {
    job: JobKey,
    asks: Vec<VolumeRequest>,
    provides_plugin: bool,
    snapshot: Snapshot,
    /// The requests that all allocations share, checked as far as no node matters.
    shared: Vec<CheckedAsk>,
}

impl CsiAsks {
    pub fn of_group(job: &Job, group: &TaskGroup) -> Self {
        let asks = group.volumes.values().filter(|ask| ask.is_csi());
        Self {
            job: job.key(),
            asks: asks.cloned().collect(),
            provides_plugin: group.tasks.iter().any(|task| task.csi_plugin.is_some()),
            snapshot: Snapshot::default(),
            shared: Vec::new(),
        }
    }

    /// Uses the volumes of `snapshot`; before, there are none.
    pub fn resolve(&mut self, snapshot: &Snapshot) {
        if !self.asks.is_empty() {
            self.snapshot = snapshot.clone();
            self.shared = self.checked(None, |_| Vec::new());
        }
    }

    /// Tells whether the group asks for no volume.
    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Tells whether nodes of one class may differ for the group.
    pub fn asks_nodes(&self) -> bool {
        self.provides_plugin || !self.asks.is_empty()
    }

    /// Tells whether allocations of the group ask for volumes of their own.
    pub fn differ_by_alloc(&self) -> bool {
        self.asks.iter().any(|ask| ask.per_alloc)
    }

    /// Checks the volumes that all allocations of the group share.
    ///
    /// # Errors
    /// The reason of `node`.
    pub fn check_shared(&self, node: &Node) -> Result<(), String> {
        if self.provides_plugin && !has_csi(node) {
            return Err(LACKS_CSI.to_owned());
        }
        check(&self.snapshot, &self.shared, node, &[])
    }

    /// Checks the volumes of the allocation with this name index. `planned`: the volumes that the plan
    /// brings to `node` already; `coming`: holders that `snapshot` does not show yet.
    ///
    /// # Errors
    /// The reason of `node`.
    pub fn check(
        &self,
        node: &Node,
        name_index: u32,
        planned: &[CsiVolumeKey],
        coming: impl Fn(&CsiVolumeKey) -> Vec<Holder>,
    ) -> Result<(), String> {
        if self.asks.is_empty() {
            return Ok(());
        }
        let asks = self.checked(Some(name_index), coming);
        check(&self.snapshot, &asks, node, planned)
    }

    /// Returns the volumes of the allocation with this name index.
    pub fn volumes(&self, name_index: u32) -> impl Iterator<Item = CsiVolumeKey> {
        self.asks.iter().map(move |ask| self.key(ask, name_index))
    }

    fn key(&self, ask: &VolumeRequest, name_index: u32) -> CsiVolumeKey {
        let source = ask.source_for(name_index);
        CsiVolumeKey::new(self.job.namespace.clone(), &*source)
    }

    /// `None`: the requests that all allocations share.
    fn checked(
        &self,
        name_index: Option<u32>,
        coming: impl Fn(&CsiVolumeKey) -> Vec<Holder>,
    ) -> Vec<CheckedAsk> {
        let asks = self.asks.iter();
        let asks = asks.filter(|ask| name_index.is_some() || !ask.per_alloc);
        asks.map(|ask| {
            let key = self.key(ask, name_index.unwrap_or_default());
            let coming = coming(&key);
            CheckedAsk::new(&self.snapshot, &self.job, ask, key, coming)
        })
        .collect()
    }
}

/// Tells whether a node supervises plugins.
pub fn has_csi(node: &Node) -> bool {
    let value = node.attributes.get(model::csi::CSI_ATTRIBUTE);
    value.is_some_and(|text| crate::check::parse_bool(text) == Some(true))
}

/// Checks `node` against every request, in the order of the reasons.
fn check(
    snapshot: &Snapshot,
    asks: &[CheckedAsk],
    node: &Node,
    planned: &[CsiVolumeKey],
) -> Result<(), String> {
    let missing: Vec<&str> = asks.iter().filter_map(CheckedAsk::missing).collect();
    if !missing.is_empty() {
        return Err(format!("missing CSI volume(s) {}", missing.join(", ")));
    }
    for ask in asks {
        ask.check_node(snapshot, node, planned)?;
    }
    Ok(())
}
