//! One plugin over all nodes that report it: which of its services are healthy.

use model::csi::CsiControllerInfo;
use model::{AllocId, CsiPluginInfo, Indexed, Node, NodeStatus};
use state::Snapshot;

/// A plugin, summed up.
#[derive(Clone, Debug, Default)]
pub struct Plugin {
    pub provider: String,
    pub provider_version: String,
    /// Volumes need a controller service besides that of the node.
    pub needs_controller: bool,
    pub controllers_healthy: u32,
    pub controllers: u32,
    pub nodes_healthy: u32,
    pub nodes: u32,
    /// Allocations that provide it, on any node; ordered, each once.
    pub alloc_ids: Vec<AllocId>,
}

impl Plugin {
    /// Returns the plugin; `None`: no node reports it.
    pub fn find(snapshot: &Snapshot, id: &str) -> Option<Self> {
        let mut plugin = Self::default();
        let mut is_known = false;
        for node in snapshot.csi_nodes_with(id) {
            is_known = true;
            let is_up = node.value.status == NodeStatus::Ready;
            if let Some(info) = node.value.csi_nodes.get(id) {
                plugin.nodes += 1;
                plugin.nodes_healthy += u32::from(is_up && info.healthy);
                plugin.note(info);
            }
            if let Some(info) = node.value.csi_controllers.get(id) {
                plugin.controllers += 1;
                plugin.controllers_healthy += u32::from(is_up && info.healthy);
                plugin.note(info);
            }
        }
        plugin.alloc_ids.sort_unstable();
        plugin.alloc_ids.dedup();
        is_known.then_some(plugin)
    }

    fn note(&mut self, info: &CsiPluginInfo) {
        if !info.provider.is_empty() {
            self.provider.clone_from(&info.provider);
            self.provider_version.clone_from(&info.provider_version);
        }
        self.needs_controller |= info.needs_controller;
        self.alloc_ids.push(info.alloc_id);
    }

    /// Tells whether volumes of the plugin can be used at all.
    pub fn is_schedulable(&self) -> bool {
        self.nodes_healthy > 0 && (!self.needs_controller || self.controllers_healthy > 0)
    }
}

/// Returns the healthy controllers of a plugin on nodes that are up, ordered by node.
pub fn controllers<'s>(
    snapshot: &'s Snapshot,
    id: &'s str,
) -> impl Iterator<Item = (&'s Indexed<Node>, CsiControllerInfo)> {
    let nodes = snapshot.csi_nodes_with(id);
    let up = nodes.filter(|node| node.value.status == NodeStatus::Ready);
    up.filter_map(|node| {
        let info = node.value.csi_controllers.get(id)?;
        let controller = info.controller.filter(|_| info.healthy)?;
        Some((&**node, controller))
    })
}

/// Tells whether the plugin attaches volumes to nodes; `None`: no controller is known that would say.
pub fn attaches(snapshot: &Snapshot, id: &str) -> Option<bool> {
    let mut known = None;
    for node in snapshot.csi_nodes_with(id) {
        let info = node.value.csi_controllers.get(id);
        if let Some(controller) = info.and_then(|info| info.controller) {
            known = Some(known.unwrap_or(false) || controller.attaches);
        }
        let needs = node.value.csi_nodes.get(id);
        if known.is_none() && needs.is_some_and(|info| !info.needs_controller) {
            known = Some(false);
        }
    }
    known
}
