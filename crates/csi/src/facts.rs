//! Facts that a plugin states about itself: its name, its services, and what they can do.

use std::collections::BTreeMap;

/// Facts of a plugin, whatever services it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginFacts {
    /// As in `ebs.csi.aws.com`.
    pub name: String,
    pub version: String,
    pub has_controller: bool,
    /// Volumes are reachable from some nodes only.
    pub has_topology: bool,
}

/// Facts of a plugin's controller service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerFacts {
    pub creates: bool,
    /// Volumes are attached to a node before it mounts them.
    pub attaches: bool,
    pub lists: bool,
    pub lists_attached_nodes: bool,
    pub snapshots: bool,
    pub lists_snapshots: bool,
    pub clones: bool,
    /// Understands `readonly` of an attachment.
    pub attaches_read_only: bool,
}

/// Facts of a plugin's node service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The plugin's own name of the node.
    pub node_id: String,
    /// 0: no limit.
    pub max_volumes: u64,
    /// Segments of the node, as in `zone` → `a`; empty: volumes are reachable everywhere.
    pub topology: BTreeMap<String, String>,
    /// Volumes are staged once on a node before they are published to allocations.
    pub stages: bool,
}
