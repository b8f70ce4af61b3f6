//! Storage systems' volumes and plugins, joined with allocations and nodes.

use model::{CsiPluginInfo, CsiVolume, Indexed, Node};
use placement::csi::holders;
use placement::csi::plugin::Plugin;
use proto::v1;
use state::Snapshot;

/// Returns a volume with the state of its plugin and the numbers of its users.
pub fn volume(snapshot: &Snapshot, stored: &Indexed<CsiVolume>) -> v1::CsiVolume {
    let plugin = Plugin::find(snapshot, &stored.value.plugin_id).unwrap_or_default();
    let (mut readers, mut writers) = (0, 0);
    for (_, ask) in holders::of(snapshot, &stored.value.key()) {
        if ask.read_only {
            readers += 1;
        } else {
            writers += 1;
        }
    }
    v1::CsiVolume {
        schedulable: plugin.is_schedulable() && !stored.value.deleting,
        provider: plugin.provider,
        provider_version: plugin.provider_version,
        controller_required: plugin.needs_controller,
        controllers_healthy: plugin.controllers_healthy,
        controllers_expected: plugin.controllers,
        nodes_healthy: plugin.nodes_healthy,
        nodes_expected: plugin.nodes,
        current_readers: readers,
        current_writers: writers,
        ..stored.into()
    }
}

/// Returns the users of a volume, ordered by id.
pub fn users(snapshot: &Snapshot, stored: &Indexed<CsiVolume>) -> Vec<v1::CsiVolumeUser> {
    let key = stored.value.key();
    let users = holders::of(snapshot, &key).map(|(view, ask)| v1::CsiVolumeUser {
        alloc_id: view.alloc.id.to_string(),
        node_id: view.alloc.node_id.to_string(),
        job_id: view.alloc.job_id.to_string(),
        read_only: ask.read_only,
    });
    let mut users: Vec<_> = users.collect();
    users.sort_by(|one, other| one.alloc_id.cmp(&other.alloc_id));
    users
}

/// Returns a plugin; `None`: no node reports it.
pub fn plugin(snapshot: &Snapshot, id: &str) -> Option<v1::CsiPlugin> {
    let plugin = Plugin::find(snapshot, id)?;
    let of = |part: fn(&Node) -> &std::collections::BTreeMap<String, CsiPluginInfo>| {
        let nodes = snapshot.csi_nodes_with(id);
        nodes
            .filter_map(|node| {
                let info = part(&node.value).get(id)?;
                Some((node.value.id.to_string(), info.into()))
            })
            .collect()
    };
    Some(v1::CsiPlugin {
        id: id.to_owned(),
        provider: plugin.provider,
        provider_version: plugin.provider_version,
        controller_required: plugin.needs_controller,
        controllers_healthy: plugin.controllers_healthy,
        controllers_expected: plugin.controllers,
        nodes_healthy: plugin.nodes_healthy,
        nodes_expected: plugin.nodes,
        controllers: of(|node| &node.csi_controllers),
        nodes: of(|node| &node.csi_nodes),
        alloc_ids: plugin.alloc_ids.iter().map(ToString::to_string).collect(),
    })
}
