//! Storage systems' volumes, as they are shown and as they are registered, plugins and snapshots.

use std::collections::BTreeMap;

use proto::v1;
use serde::{Deserialize, Serialize};

/// The output can be registered again: the fields that the gateway sets are ignored then.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default, deny_unknown_fields)]
pub struct CsiVolume {
    #[serde(rename = "ID")]
    pub id: String,
    name: String,
    #[serde(rename = "Type", skip_serializing)]
    volume_type: String,
    #[serde(rename = "ExternalID")]
    external_id: String,
    namespace: String,
    #[serde(rename = "PluginID")]
    plugin_id: String,
    requested_capabilities: Vec<Capability>,
    mount_options: Option<MountOptions>,
    parameters: BTreeMap<String, String>,
    context: BTreeMap<String, String>,
    capacity: u64,
    requested_capacity_min: u64,
    requested_capacity_max: u64,
    #[serde(rename = "CloneID")]
    clone_id: String,
    #[serde(rename = "SnapshotID")]
    snapshot_id: String,
    requested_topologies: Option<RequestedTopologies>,
    topologies: Vec<Topology>,
    /// Allocation → nothing: Nomad's form.
    read_allocs: BTreeMap<String, Option<()>>,
    write_allocs: BTreeMap<String, Option<()>>,
    schedulable: bool,
    provider: String,
    provider_version: String,
    controller_required: bool,
    controllers_healthy: u32,
    controllers_expected: u32,
    nodes_healthy: u32,
    nodes_expected: u32,
    current_readers: u32,
    current_writers: u32,
    create_index: u64,
    /// Unix nanoseconds, as are the other times.
    create_time: u64,
    modify_index: u64,
    modify_time: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default, deny_unknown_fields)]
struct Capability {
    attachment_mode: String,
    access_mode: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MountOptions {
    #[serde(rename = "FSType")]
    fs_type: String,
    #[serde(rename = "MountFlags")]
    mount_flags: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default, deny_unknown_fields)]
struct RequestedTopologies {
    required: Vec<Topology>,
    preferred: Vec<Topology>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default, deny_unknown_fields)]
struct Topology {
    segments: BTreeMap<String, String>,
}

fn shown(topologies: Vec<v1::CsiTopology>) -> Vec<Topology> {
    let topologies = topologies.into_iter().map(|one| Topology {
        segments: one.segments.into_iter().collect(),
    });
    topologies.collect()
}

fn read(topologies: Vec<Topology>) -> Vec<v1::CsiTopology> {
    let topologies = topologies.into_iter().map(|one| v1::CsiTopology {
        segments: one.segments.into_iter().collect(),
    });
    topologies.collect()
}

impl From<&v1::CsiVolume> for CsiVolume {
    fn from(volume: &v1::CsiVolume) -> Self {
        let volume = volume.clone();
        let capabilities = volume.capabilities.into_iter();
        let has_options = !volume.fs_type.is_empty() || !volume.mount_flags.is_empty();
        let (required, preferred) = (volume.required_topologies, volume.preferred_topologies);
        let has_topologies = !required.is_empty() || !preferred.is_empty();
        Self {
            id: volume.id,
            name: volume.name,
            volume_type: String::new(),
            external_id: volume.external_id,
            namespace: volume.namespace,
            plugin_id: volume.plugin_id,
            requested_capabilities: capabilities
                .map(|capability| Capability {
                    attachment_mode: capability.attachment_mode,
                    access_mode: capability.access_mode,
                })
                .collect(),
            mount_options: has_options.then_some(MountOptions {
                fs_type: volume.fs_type,
                mount_flags: volume.mount_flags,
            }),
            parameters: volume.parameters.into_iter().collect(),
            context: volume.context.into_iter().collect(),
            capacity: volume.capacity_bytes,
            requested_capacity_min: volume.capacity_min_bytes,
            requested_capacity_max: volume.capacity_max_bytes,
            clone_id: volume.clone_id,
            snapshot_id: volume.snapshot_id,
            requested_topologies: has_topologies.then(|| RequestedTopologies {
                required: shown(required),
                preferred: shown(preferred),
            }),
            topologies: shown(volume.topologies),
            read_allocs: BTreeMap::new(),
            write_allocs: BTreeMap::new(),
            schedulable: volume.schedulable,
            provider: volume.provider,
            provider_version: volume.provider_version,
            controller_required: volume.controller_required,
            controllers_healthy: volume.controllers_healthy,
            controllers_expected: volume.controllers_expected,
            nodes_healthy: volume.nodes_healthy,
            nodes_expected: volume.nodes_expected,
            current_readers: volume.current_readers,
            current_writers: volume.current_writers,
            create_index: volume.create_index,
            create_time: volume.create_time_ns,
            modify_index: volume.modify_index,
            modify_time: volume.modify_time_ns,
        }
    }
}

impl CsiVolume {
    /// Adds the allocations that use the volume.
    #[must_use]
    pub fn with_users(mut self, users: &[v1::CsiVolumeUser]) -> Self {
        for user in users {
            let allocs = if user.read_only {
                &mut self.read_allocs
            } else {
                &mut self.write_allocs
            };
            allocs.insert(user.alloc_id.clone(), None);
        }
        self
    }
}

impl From<CsiVolume> for v1::CsiVolume {
    fn from(volume: CsiVolume) -> Self {
        let capabilities = volume.requested_capabilities.into_iter();
        let options = volume.mount_options.unwrap_or_default();
        let topologies = volume.requested_topologies.unwrap_or_default();
        Self {
            namespace: volume.namespace,
            id: volume.id,
            name: volume.name,
            external_id: volume.external_id,
            plugin_id: volume.plugin_id,
            capabilities: capabilities
                .map(|capability| v1::VolumeCapability {
                    access_mode: capability.access_mode,
                    attachment_mode: capability.attachment_mode,
                })
                .collect(),
            fs_type: options.fs_type,
            mount_flags: options.mount_flags,
            parameters: volume.parameters.into_iter().collect(),
            context: volume.context.into_iter().collect(),
            capacity_bytes: volume.capacity,
            capacity_min_bytes: volume.requested_capacity_min,
            capacity_max_bytes: volume.requested_capacity_max,
            clone_id: volume.clone_id,
            snapshot_id: volume.snapshot_id,
            required_topologies: read(topologies.required),
            preferred_topologies: read(topologies.preferred),
            topologies: read(volume.topologies),
            ..Self::default()
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CsiPlugin {
    #[serde(rename = "ID")]
    id: String,
    provider: String,
    version: String,
    controller_required: bool,
    controllers: BTreeMap<String, CsiInfo>,
    nodes: BTreeMap<String, CsiInfo>,
    controllers_healthy: u32,
    controllers_expected: u32,
    nodes_healthy: u32,
    nodes_expected: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CsiInfo {
    #[serde(rename = "PluginID")]
    plugin_id: String,
    #[serde(rename = "AllocID")]
    alloc_id: String,
    healthy: bool,
    health_description: String,
    requires_controller_plugin: bool,
}

impl From<&v1::CsiPlugin> for CsiPlugin {
    fn from(plugin: &v1::CsiPlugin) -> Self {
        let infos = |infos: &std::collections::HashMap<String, v1::CsiPluginInfo>| {
            let infos = infos.iter().map(|(node_id, info)| {
                let info = CsiInfo {
                    plugin_id: plugin.id.clone(),
                    alloc_id: info.alloc_id.clone(),
                    healthy: info.healthy,
                    health_description: info.description.clone(),
                    requires_controller_plugin: info.needs_controller,
                };
                (node_id.clone(), info)
            });
            infos.collect()
        };
        Self {
            id: plugin.id.clone(),
            provider: plugin.provider.clone(),
            version: plugin.provider_version.clone(),
            controller_required: plugin.controller_required,
            controllers: infos(&plugin.controllers),
            nodes: infos(&plugin.nodes),
            controllers_healthy: plugin.controllers_healthy,
            controllers_expected: plugin.controllers_expected,
            nodes_healthy: plugin.nodes_healthy,
            nodes_expected: plugin.nodes_expected,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CsiSnapshot {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "ExternalSourceVolumeID")]
    external_volume_id: String,
    size_bytes: u64,
    /// Unix seconds.
    create_time: u64,
    is_ready: bool,
}

impl From<&v1::CsiSnapshot> for CsiSnapshot {
    fn from(snapshot: &v1::CsiSnapshot) -> Self {
        Self {
            id: snapshot.id.clone(),
            external_volume_id: snapshot.external_volume_id.clone(),
            size_bytes: snapshot.size_bytes,
            create_time: snapshot.create_time_ns / 1_000_000_000,
            is_ready: snapshot.ready,
        }
    }
}
